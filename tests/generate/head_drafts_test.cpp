// SPDX-License-Identifier: Apache-2.0
// Heads of known acceptance. The model's next token follows from the last one alone; one head sees
// only the token of its row, so that all of its drafts are right, the other only the features, so
// that the first draft of each step is right if these are of the row before, and the others are
// wrong. Which drafts are accepted thus shows whether tokens and features are those of one row,
// however the text came to be.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "generate/batch_run.h"
#include "generate/draft/drafter_list.h"
#include "generate/head_world.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

/// Families, and for how many tokens of a draft there are heads; 1: the same one for all.
constexpr std::pair<const char*, int32_t> kFamilies[] = {
    {"exaone4", 1}, {"exaone4", 3}, {"qwen35", 1}, {"gemma4", 1}};

/// What the model says behind a text.
Tokens follow(int32_t last, size_t n) {
  Tokens said;
  for (size_t i = 0; i < n; ++i) said.push_back(last = after(last));
  return said;
}

/// Generators with heads of one kind over one model.
class Heads {
 public:
  explicit Heads(const HeadModelSpec& spec) : spec_(spec), model_(head_model(spec)) {}
  [[nodiscard]] std::shared_ptr<const Generator> generator(int32_t most, HeadGenerator of = {}) {
    auto drafter = head_drafter(*model_, most);
    of.drafter = of.drafter == nullptr
                     ? std::shared_ptr<Drafter>(drafter)
                     : std::make_shared<DrafterList>(std::move(of.drafter), std::move(drafter));
    return head_generator(model_, std::move(of));
  }
  /// Generates, and looks at what was drafted, of which `least` tokens in steps of up to `most`.
  void expect_right(Session& session, const Tokens& prompt, int32_t n, int32_t most) const {
    const Tokens before = tokens_of(session);
    const int32_t last = prompt.empty() ? before.back() : prompt.back();
    const GenResult result = answer_of(session, prompt, greedy_call(n));
    EXPECT_EQ(result.tokens, follow(last, result.tokens.size()));
    EXPECT_EQ(result.tokens.size(), static_cast<size_t>(n));
    if (spec_.blocks > 1) most = std::min(most, spec_.blocks);
    if (most <= 0 || n < 3) return;
    if (spec_.head == Head::kToken) {
      EXPECT_EQ(result.usage.accepted, result.usage.drafted);
      // The first token is the prompt's; then steps of a token and as many drafts as there may be.
      EXPECT_EQ(result.usage.drafted, n - 1 - (n - 1 + most) / (most + 1));
    } else {
      // Each step after the first token gives two.
      EXPECT_EQ(result.usage.accepted, (n - 1) / 2);
    }
  }

 private:
  HeadModelSpec spec_;
  std::shared_ptr<const model::Model> model_;
};

/// Of all drafts by position: how many of the first and of the later ones were right.
void expect_by_position(const Generator& generator, Head head) {
  const DraftUse& use = generator.draft_use();
  EXPECT_GT(use.tried[0], 0);
  EXPECT_EQ(use.right[0], use.tried[0]);
  for (size_t i = 1; i < use.tried.size(); ++i) {
    EXPECT_EQ(use.right[i], head == Head::kToken ? use.tried[i].load() : 0) << i;
  }
}

TEST(HeadDrafts, AreRightWhateverPromptsAndChunks) {
  for (const auto& [family, heads_of] : kFamilies) {
    for (const Head head : {Head::kToken, Head::kFeatures}) {
      Heads heads({family, head, 256, heads_of});
      test::Thinned thinned(5);
      for (const int32_t chunk : {1, 2, 3, 32, 33, 256}) {
        for (const int32_t most : {1, 2, 4, 15}) {
          SCOPED_TRACE(testing::Message()
                       << family << heads_of << ", head " << static_cast<int32_t>(head)
                       << ", chunks of " << chunk << ", drafts of " << most);
          const auto generator = heads.generator(most, {.chunk = chunk});
          for (const int32_t length : {1, 2, 3, 31, 32, 33, 34, 35, 64, 65, 66, 100}) {
            if (thinned.skips()) continue;
            const auto session = generator->new_session().value();
            // A step has no more rows than a chunk.
            heads.expect_right(*session, text_of(3, static_cast<size_t>(length)), 24,
                               std::min(most, chunk - 1));
          }
          if (chunk > 1) expect_by_position(*generator, head);
        }
      }
    }
  }
}

TEST(HeadDrafts, AreRightForManySessions) {
  for (const auto& [family, heads_of] : kFamilies) {
    for (const Head head : {Head::kToken, Head::kFeatures}) {
      for (const size_t n : {size_t{1}, size_t{4}, size_t{64}}) {
        SCOPED_TRACE(testing::Message() << family << heads_of << ", head "
                                        << static_cast<int32_t>(head) << ", " << n << " sessions");
        Heads heads({family, head, 256, heads_of});
        const auto generator = heads.generator(2, {.chunk = 256, .max_sequences = 64});
        std::vector<BatchRequest> requests(n);
        std::vector<Tokens> prompts;
        for (size_t i = 0; i < n; ++i)
          prompts.push_back(text_of(static_cast<uint32_t>(i), 1 + 7 * i % 61));
        for (size_t i = 0; i < n; ++i) {
          requests[i].prompt.tokens = prompts[i];
          requests[i].params = greedy_call(40);
        }
        const auto results = run_batch(*generator, requests, nullptr, nullptr);
        for (size_t i = 0; i < n; ++i) {
          EXPECT_EQ(results[i].tokens, follow(prompts[i].back(), 40));
          const int32_t steps = head == Head::kToken ? 13 : 20;
          EXPECT_GE(results[i].usage.drafted, 2 * (steps - 3)) << i;
        }
        expect_by_position(*generator, head);
      }
    }
  }
}

// Sessions that were not asked for long have more rows waiting than a pass of the head has room
// for.
TEST(HeadDrafts, NeedNoRestWhereAPassIsFull) {
  const auto model = head_model({"exaone4", Head::kFeatures, 256});
  const auto drafter = head_drafter(*model, 1);
  constexpr size_t kSessions = 40;
  constexpr size_t kRows = 32;
  ASSERT_GT(kSessions * kRows, static_cast<size_t>(model->traits().max_batch_rows));
  std::vector<Tokens> texts;
  std::vector<std::unique_ptr<DraftState>> states;
  std::vector<DraftJob> jobs(kSessions);
  std::vector<DraftJob*> all;
  for (size_t i = 0; i < kSessions; ++i) {
    texts.push_back(text_of(static_cast<uint32_t>(i), kRows));
    states.push_back(drafter->begin());
    std::vector<float> hidden(kRows * 64);
    for (size_t t = 0; t < kRows; ++t) {
      hidden[t * 64 + static_cast<size_t>(texts[i][t])] = 1.0F;
    }
    const float* const features = hidden.data();
    ObservedRows rows = {.state = states[i].get(), .tokens = texts[i], .features = {&features, 1}};
    drafter->observe({&rows, 1});
    texts[i].push_back(after(texts[i].back()));
  }
  for (size_t i = 0; i < kSessions; ++i) {
    jobs[i].state = states[i].get();
    jobs[i].tokens = texts[i];
    jobs[i].most = 1;
    jobs[i].tree.begin(texts[i].back());
    all.push_back(&jobs[i]);
  }
  drafter->propose(all);
  for (size_t i = 0; i < kSessions; ++i) {
    EXPECT_EQ(jobs[i].failures, 0) << i;
    ASSERT_EQ(jobs[i].tree.rows(), 2) << i;
    EXPECT_EQ(jobs[i].tree.tokens()[1], after(texts[i].back())) << i;
  }
}

TEST(HeadDrafts, AreRightInThreads) {
  Heads heads({"exaone4", Head::kFeatures, 256});
  const auto generator = heads.generator(3, {.chunk = 16});
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto session = generator->new_session().value();
      for (uint32_t turn = 0; turn < 3; ++turn) {
        heads.expect_right(*session, text_of(turn, 1 + 5 * i), 25, 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_by_position(*generator, Head::kFeatures);
}

TEST(HeadDrafts, AreRightInLongTexts) {
  for (const Head head : {Head::kToken, Head::kFeatures}) {
    Heads heads({"exaone4", head, 12288});
    const auto generator = heads.generator(4, {.chunk = 256});
    heads.expect_right(*generator->new_session().value(), text_of(1, 40), 701, 4);
    const auto session = generator->new_session().value();
    heads.expect_right(*session, text_of(2, test::kSanitized ? 700 : 12000), 31, 4);
    expect_by_position(*generator, head);
  }
}

// Up to the last position: drafts end with the context.
TEST(HeadDrafts, EndWithTheContext) {
  for (const Head head : {Head::kToken, Head::kFeatures}) {
    Heads heads({"exaone4", head, kFormsContext});
    const auto generator = heads.generator(4);
    const auto session = generator->new_session().value();
    const GenResult result = answer_of(*session, text_of(2, 50), greedy_call(200));
    EXPECT_EQ(result.finish_reason, FinishReason::kContextFull);
    EXPECT_EQ(result.tokens, follow(text_of(2, 50).back(), result.tokens.size()));
    EXPECT_EQ(tokens_of(*session).size(), static_cast<size_t>(kFormsContext));
    expect_by_position(*generator, head);
  }
}

TEST(HeadDrafts, AreRightInShiftedContexts) {
  for (const Head head : {Head::kToken, Head::kFeatures}) {
    for (const int32_t keep : {0, 7}) {
      Heads heads({"exaone4", head, kFormsContext});
      const auto generator = heads.generator(4, {.keep = keep});
      const auto session = generator->new_session().value();
      heads.expect_right(*session, text_of(2, 50), 11, 4);
      const Tokens prompt = text_of(3, 20);
      const GenResult result = answer_of(*session, prompt, greedy_call(400));
      EXPECT_EQ(result.tokens, follow(prompt.back(), 400));
      EXPECT_GT(result.usage.dropped, 300);
      EXPECT_GT(result.usage.drafted, 200);
      expect_by_position(*generator, head);
    }
  }
}

/// All that can happen to a session between calls.
void live(const Heads& heads, const Generator& generator, int32_t most, bool saves) {
  const auto session = generator.new_session().value();
  heads.expect_right(*session, text_of(1, 9), 24, most);
  heads.expect_right(*session, text_of(2, 5), 23, most);
  heads.expect_right(*session, {}, 12, most);
  EXPECT_TRUE(session->append({.text = {}, .tokens = text_of(3, 11)}).ok());
  heads.expect_right(*session, {}, 16, most);
  EXPECT_TRUE(session->append({.text = {}, .tokens = text_of(4, 40)}).ok());
  heads.expect_right(*session, text_of(5, 40), 17, most);
  for (const int32_t to : {170, 150, 149, 20, 3}) {
    if (!session->truncate(to).ok()) continue;  // recurrent models
    heads.expect_right(*session, text_of(static_cast<uint32_t>(to), 7), 15, most);
    const auto fork = session->fork().value();
    heads.expect_right(*fork, text_of(6, 4), 14, most);
    heads.expect_right(*session, text_of(7, 6), 13, most);
    EXPECT_TRUE(session->truncate(session->length() - 1).ok());
    heads.expect_right(*session, text_of(8, 1), 12, most);
  }
  if (saves) {
    const auto loaded = generator.new_session().value();
    EXPECT_TRUE(loaded->load(state_of(*session)).ok());
    heads.expect_right(*loaded, text_of(9, 4), 14, most);
    heads.expect_right(*loaded, {}, 14, most);
  }
  EXPECT_TRUE(session->reset().ok());
  heads.expect_right(*session, text_of(10, 6), 15, most);
}

TEST(HeadDrafts, AreRightWhateverHappensToSessions) {
  for (const auto& [family, heads_of] : kFamilies) {
    for (const Head head : {Head::kToken, Head::kFeatures}) {
      for (const int32_t chunk : {5, 16, 256}) {
        SCOPED_TRACE(testing::Message() << family << heads_of << ", head "
                                        << static_cast<int32_t>(head) << ", chunks of " << chunk);
        Heads heads({family, head, 256, heads_of});
        for (const int32_t blocks : {0, 40}) {
          HeadGenerator of;
          of.chunk = chunk;
          if (blocks > 0) {
            of.form = {.layout = CacheForm::Layout::kPaged, .block_size = 8, .prefix_blocks = 40};
          }
          const auto generator = heads.generator(4, of);
          live(heads, *generator, 4, blocks == 0);
          live(heads, *generator, 4, blocks == 0);  // with prefixes of the first
          expect_by_position(*generator, head);
        }
      }
    }
  }
}

// The head sees which rows of a lookup's drafts stay, and is right wherever it is asked.
TEST(HeadDrafts, AreRightBesideALookup) {
  for (const auto& [family, heads_of] : kFamilies) {
    for (const Head head : {Head::kToken, Head::kFeatures}) {
      SCOPED_TRACE(testing::Message()
                   << family << heads_of << ", head " << static_cast<int32_t>(head));
      Heads heads({family, head, 256, heads_of});
      const auto lookup = std::make_shared<KnownLookup>();
      const auto generator = heads.generator(2, {.drafter = lookup});
      for (uint32_t i = 0; i < 3; ++i) {
        const auto session = generator->new_session().value();
        const Tokens prompt = text_of(i, 10 + 7 * i);
        EXPECT_EQ(answer_of(*session, prompt, greedy_call(120)).tokens, follow(prompt.back(), 120));
        EXPECT_EQ(answer_of(*session, prompt, greedy_call(50)).tokens, follow(prompt.back(), 50));
      }
      const DraftUse& use = generator->draft_use();
      EXPECT_GT(lookup->wrong, 10);
      EXPECT_GT(use.tried[0], lookup->looked + 50);  // the others are the head's
      EXPECT_EQ(use.tried[0] - use.right[0], lookup->wrong);
    }
  }
}

}  // namespace
}  // namespace gen::generate

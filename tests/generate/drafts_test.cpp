// SPDX-License-Identifier: Apache-2.0
// Proves that drafts show in nothing but time: tokens, log-probabilities, what a session holds and
// what its cache holds are bit for bit those of plain decoding, for drafters that are right always,
// half of the time or never, chains and trees, every form of cache, however a call ends, alone and
// together; and for drafters that fail.
#include "generate/draft/drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "generate/batch_run.h"
#include "generate/cache_forms.h"
#include "generate/fake_world.h"
#include "generate/knowing_drafter.h"
#include "generate/loop/run.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

using Options = KnowingDrafter::Options;

TEST(DraftTree, FollowsTheFirstGuess) {
  DraftTree tree;
  tree.begin(7);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.add(3, 0), 1);
  EXPECT_EQ(tree.add(4, 1), 2);
  EXPECT_TRUE(tree.is_chain());
  EXPECT_EQ(tree.add(4, 0), 3);
  EXPECT_EQ(tree.add(4, 0), 4);
  EXPECT_FALSE(tree.is_chain());
  EXPECT_EQ(tree.child(0, 3), 1);
  EXPECT_EQ(tree.child(0, 4), 3);
  EXPECT_EQ(tree.child(1, 4), 2);
  EXPECT_EQ(tree.child(1, 3), -1);
  EXPECT_EQ(tree.child(4, 4), -1);
  EXPECT_EQ(tree.valid_rows(5, false), 5);
  EXPECT_EQ(tree.valid_rows(5, true), 3);
  EXPECT_EQ(tree.valid_rows(4, false), 2);
  tree.add(1, 5);
  EXPECT_EQ(tree.valid_rows(5, false), 5);
  tree.cut(2);
  EXPECT_EQ(tree.child(0, 4), -1);
  EXPECT_EQ(tree.rows(), 2);
}

CallParams drawing(int32_t n, double temperature) {
  CallParams params = params_of(n);
  params.sampling.temperature = temperature;
  params.sampling.logprobs = 2;
  params.sampling.repetition_penalty = 1.1;
  return params;
}

struct Told {
  GenResult result;
  Tokens held;
  std::vector<std::byte> state;
};

Told tell(Session& session, const Tokens& prompt, const CallParams& params) {
  std::optional<GenResult> result;
  const Status status =
      session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return {std::move(*result), tokens_of(session), state_of(session)};
}

void expect_same(const Told& got, const Told& want) {
  EXPECT_EQ(got.result.tokens, want.result.tokens);
  EXPECT_EQ(got.result.text, want.result.text);
  EXPECT_EQ(got.result.finish_reason, want.result.finish_reason);
  EXPECT_EQ(got.result.usage.completion, want.result.usage.completion);
  EXPECT_EQ(got.result.usage.prompt, want.result.usage.prompt);
  EXPECT_EQ(got.result.top_ids, want.result.top_ids);
  ASSERT_EQ(got.result.logprobs.size(), want.result.logprobs.size());
  if (!want.result.logprobs.empty()) {
    EXPECT_EQ(std::memcmp(got.result.logprobs.data(), want.result.logprobs.data(),
                          got.result.logprobs.size() * sizeof(float)),
              0);
  }
  EXPECT_EQ(got.held, want.held);
  EXPECT_EQ(got.state, want.state);
}

TEST(Drafts, ShowInNoResult) {
  constexpr int32_t kSaid = 30;
  const Tokens first = text_of(1, 11);
  const Tokens second = text_of(2, 5);
  int32_t turn = 0;
  for (const CacheForm& form : all_cache_forms()) {
    const bool compressed = form.layout == CacheForm::Layout::kCompressed;
    for (const double temperature : {0.0, 1.0}) {
      const CallParams params = drawing(kSaid, temperature);
      const auto plain = generator_of(form);
      const auto plain_session = plain->new_session().value();
      const Told want = tell(*plain_session, first, params);
      const Told want_second = tell(*plain_session, second, params);
      for (const double p : {0.0, 0.5, 1.0}) {
        for (const int32_t rows : {1, 4, 13}) {
          for (const int32_t branches : {1, 3}) {
            // Under a sanitizer every seventh, which is another one with each form.
            if (test::kSanitized && ++turn % 7 != 0) continue;
            SCOPED_TRACE(testing::Message() << form << ", t " << temperature << ", p " << p << ", "
                                            << rows << " rows, " << branches << " branches");
            const auto drafter = std::make_shared<KnowingDrafter>(Options{p, rows, branches});
            drafter->learn(want_second.held);
            const auto generator = generator_of(form, 8, 8, drafter);
            const auto session = generator->new_session().value();
            expect_same(tell(*session, first, params), want);
            expect_same(tell(*session, second, params), want_second);
            EXPECT_GT(drafter->proposals, 0);
            EXPECT_EQ(drafter->branched > 0, branches > 1 && rows > 1 && !compressed);
            if (p == 1.0) {
              EXPECT_GT(drafter->accepted, 0);
            }
            if (p == 1.0 && branches == 1) {
              // Each step says one token more than had been guessed; the last ones may want no
              // guess.
              const int64_t told = drafter->accepted + drafter->proposals;
              EXPECT_LE(told, 2 * (kSaid - 1));
              if (!compressed) {
                EXPECT_GE(told, 2 * (kSaid - 2));
              }
            }
            if (p == 0.0) {
              EXPECT_EQ(drafter->accepted, 0);
            }
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

// What stages keep from token to token follows the text, not the rows that were guessed.
TEST(Drafts, ShowInNoStageWithAMemory) {
  const Tokens first = text_of(1, 11);
  const Tokens second = text_of(1, 7);
  for (const CacheForm& form : {CacheForm{}, CacheForm{.kind = "q4"}}) {
    for (int32_t mix = 0; mix < 12; ++mix) {
      CallParams params = drawing(30, mix % 3 == 0 ? 0.0 : 1.2);
      params.sampling.repetition_penalty = 1.0;
      if (mix % 2 == 0) params.sampling.logprobs = -1;  // greedy: the model finds the best
      params.sampling.dry_multiplier = mix % 4 < 2 ? 3.0 : 0.0;
      params.sampling.dry_allowed_length = 1;
      params.sampling.mirostat_tau = 1.0 + mix % 3;
      params.sampling.mirostat_eta = 0.5;
      params.sampling.xtc_probability = 0.3;
      params.sampling.top_n_sigma = 2.0;
      params.stops.ignore_eos = false;
      params.stops.min_new_tokens = mix % 5 == 0 ? 12 : 0;
      const auto plain = generator_of(form);
      const auto plain_session = plain->new_session().value();
      const Told want = tell(*plain_session, first, params);
      const Told want_second = tell(*plain_session, second, params);
      for (const double p : {0.0, 0.5, 1.0}) {
        SCOPED_TRACE(testing::Message() << form << ", mix " << mix << ", p " << p);
        const auto drafter = std::make_shared<KnowingDrafter>(Options{p, 6, 2});
        drafter->learn(want_second.held);
        const auto session = generator_of(form, 8, 8, drafter)->new_session().value();
        expect_same(tell(*session, first, params), want);
        expect_same(tell(*session, second, params), want_second);
        if (HasFailure()) return;
      }
    }
  }
}

// After any number of events and any end of the call, the session is where plain decoding leaves
// it, and goes on from there with the same words.
TEST(Drafts, AreGoneHoweverACallEnds) {
  enum class End : int32_t { kClose, kStop, kBreakOff, kCancel };
  const Tokens prompt = text_of(3, 9);
  constexpr int32_t kSaid = 12;
  for (const int32_t branches : {1, 3}) {
    for (const CacheForm& form :
         {CacheForm{.kind = "fp32"}, CacheForm{.kind = "q4"},
          CacheForm{.layout = CacheForm::Layout::kPaged, .block_size = 4, .prefix_blocks = 40}}) {
      const auto plain = generator_of(form);
      const auto drafter = std::make_shared<KnowingDrafter>(Options{0.8, 5, branches});
      const auto drafted = generator_of(form, 8, 8, drafter);
      drafter->learn(tell(*plain->new_session().value(), prompt, params_of(kSaid)).held);
      for (const End end : {End::kClose, End::kStop, End::kBreakOff, End::kCancel}) {
        for (int32_t events = 0; events <= kSaid; events += test::kSanitized ? 3 : 1) {
          for (const bool polls : {false, true}) {
            SCOPED_TRACE(testing::Message() << form << ", end " << static_cast<int32_t>(end)
                                            << " after " << events << ", polls " << polls);
            const auto tried = [&](const Generator& generator) {
              const auto session = generator.new_session().value();
              {
                auto generation = session->open({.text = {}, .tokens = prompt}, params_of(kSaid));
                EXPECT_TRUE(generation.ok());
                Generation& one = **generation;
                for (int32_t i = 0; i < events && !one.ended(); ++i) {
                  if (!polls) {
                    EXPECT_TRUE(one.next().ok());
                    continue;
                  }
                  while (one.poll() == nullptr) {
                  }
                }
                if (polls && !one.ended()) (void)one.poll();  // queued, or run
                if (end == End::kStop) one.stop(3);
                if (end == End::kBreakOff) one.break_off({Code::kInternal, "broken"});
                if (end == End::kCancel) {
                  session->cancel();
                  while (!one.ended()) (void)one.next();
                }
              }
              Tokens held = tokens_of(*session);
              (void)session->reset();
              EXPECT_TRUE(session->append({.text = {}, .tokens = prompt}).ok());
              const Said more = say(*session, text_of(4, 3), 8);
              EXPECT_TRUE(more.status.ok());
              return std::make_pair(std::move(held), more);
            };
            const auto got = tried(*drafted);
            const auto want = tried(*plain);
            if (!polls) {
              EXPECT_EQ(got.first, want.first);
            }
            EXPECT_EQ(got.second, want.second);
            if (HasFailure()) return;
          }
        }
      }
      EXPECT_GT(drafter->accepted, 0);
    }
  }
}

// A call goes on where the last one was cut, without being emptied first.
TEST(Drafts, LeaveASessionThatGoesOn) {
  const Tokens prompt = text_of(5, 9);
  for (const CacheForm& form : all_cache_forms()) {
    const auto drafter = std::make_shared<KnowingDrafter>(Options{0.7, 6, 2});
    const auto drafted = generator_of(form, 8, 8, drafter);
    const auto plain = generator_of(form);
    drafter->learn(tell(*plain->new_session().value(), prompt, params_of(20)).held);
    for (int32_t events = 1; events < 12; events += test::kSanitized ? 3 : 1) {
      SCOPED_TRACE(testing::Message() << form << ", after " << events);
      const auto tried = [&](const Generator& generator) {
        const auto session = generator.new_session().value();
        {
          auto generation = session->open({.text = {}, .tokens = prompt}, params_of(20)).value();
          for (int32_t i = 0; i < events; ++i) EXPECT_TRUE(generation->next().ok());
        }
        const Said more = say(*session, text_of(6, 4), 9);
        const auto copy = session->fork().value();
        EXPECT_EQ(say(*copy, text_of(7, 2), 5), say(*session, text_of(7, 2), 5));
        EXPECT_TRUE(session->truncate(session->length() - 7).ok());
        return std::make_pair(more, say(*session, text_of(8, 2), 5));
      };
      EXPECT_EQ(tried(*drafted), tried(*plain));
      if (HasFailure()) return;
    }
  }
}

// Sessions of one drafter meet in steps, with prompts between them.
TEST(Drafts, OfManyTogether) {
  constexpr size_t kSessions = 8;
  for (const CacheForm& form : {CacheForm{.kind = "fp16"}, CacheForm{.kind = "q3"},
                                CacheForm{.kind = "fp32",
                                .layout = CacheForm::Layout::kPaged,
                                .block_size = 8,
                                .prefix_blocks = 30},
                                CacheForm{.kind = "fp32",
                                .layout = CacheForm::Layout::kPaged,
                                .block_size = 8,
                                .pool_blocks = 24,
                                .patient = true}}) {
    SCOPED_TRACE(testing::Message() << form);
    const auto drafter = std::make_shared<KnowingDrafter>(Options{0.6, 4, 2});
    const auto plain = generator_of(form);
    const auto drafted = generator_of(form, 8, 8, drafter);
    std::vector<Told> alone;
    std::vector<Tokens> prompts;
    for (size_t i = 0; i < kSessions; ++i) {
      prompts.push_back(text_of(static_cast<uint32_t>(20 + i), 3 + 5 * i));
      alone.push_back(tell(*plain->new_session().value(), prompts[i], params_of(25)));
      drafter->learn(alone[i].held);
    }
    std::vector<BatchRequest> requests(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = params_of(25);
    }
    const std::vector<GenResult> results = run_batch(*drafted, requests, nullptr, nullptr);
    for (size_t i = 0; i < kSessions; ++i) {
      EXPECT_TRUE(results[i].status.ok()) << results[i].status.message();
      EXPECT_EQ(results[i].tokens, alone[i].result.tokens);
      EXPECT_EQ(results[i].logprobs, alone[i].result.logprobs);
    }
    std::vector<std::thread> threads;
    std::vector<Said> said(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back(
          [&, i] { said[i] = say(*drafted->new_session().value(), prompts[i], 25); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kSessions; ++i) {
      EXPECT_TRUE(said[i].status.ok()) << said[i].status.message();
      EXPECT_EQ(said[i].tokens, alone[i].result.tokens);
    }
    EXPECT_GT(drafter->accepted, 0);
  }
}

class DraftedWorld : public testing::Test {
 protected:
  struct Drafting final : Drafter {
    std::function<void(DraftJob*)> guess;
    struct Nothing final : DraftState {
      void accepted(std::span<const int32_t>) noexcept override {}
    };
    int32_t max_rows() const noexcept override { return 4; }
    std::unique_ptr<DraftState> begin() override {
      if (refuses) throw std::bad_alloc();
      return std::make_unique<Nothing>();
    }
    void propose(std::span<DraftJob* const> jobs) override {
      for (DraftJob* job : jobs) guess(job);
    }
    bool refuses = false;
  };

  DraftedWorld() {
    const auto session = plain.session();
    params.stops.ignore_eos = true;
    want = generate(*session, text("foo ba"), params);
    held_plain = held(*session);
    drafter = std::make_shared<Drafting>();
    world.options.drafter = drafter;
    drafter->guess = [this](DraftJob* job) { know(job); };
  }

  void know(DraftJob* job) const {
    int32_t row = 0;
    for (size_t at = job->tokens.size(); at < held_plain.size() && row < job->most; ++at) {
      row = job->tree.add(held_plain[at], row);
    }
  }
  void expect_plain() {
    const auto session = world.session();
    const Outcome got = generate(*session, text("foo ba"), params);
    EXPECT_TRUE(got.status.ok()) << got.status.message();
    EXPECT_EQ(got.result->tokens, want.result->tokens);
    EXPECT_EQ(got.pieces, want.pieces);
    EXPECT_EQ(got.result->finish_reason, want.result->finish_reason);
    EXPECT_EQ(held(*session), held_plain);
    expect_consistent(world, *session);
  }

  CallParams params = greedy(24);
  World plain;
  World world;
  std::shared_ptr<Drafting> drafter;
  Outcome want;
  Tokens held_plain;
};

TEST_F(DraftedWorld, SavesPasses) {
  expect_plain();
  EXPECT_LE(world.model->forwards, 2 + (24 + 4) / 5 + 1);
}

TEST_F(DraftedWorld, RefusesWhatIsNoTree) {
  for (const int32_t token : {-1, 10000, 3}) {
    for (const int32_t parent : {-7, -1, 0, 1, 2, 9}) {
      drafter->guess = [&](DraftJob* job) {
        know(job);
        if (job->tree.rows() > 2) job->tree.cut(2);
        for (int32_t i = 0; i < 9; ++i) job->tree.add(token, parent);
      };
      expect_plain();
    }
  }
  drafter->guess = [](DraftJob* job) { job->tree.cut(0); };
  expect_plain();
  // Nor one that begins with another token.
  drafter->guess = [this](DraftJob* job) {
    job->tree.begin(job->tokens.back() == 3 ? 4 : 3);
    know(job);
  };
  expect_plain();
  drafter->guess = [this](DraftJob* job) {
    job->tree.cut(0);
    know(job);
  };
  expect_plain();
}

// Also where it is asked again for a token that the pool had no room for.
TEST_F(DraftedWorld, RefusesWhatIsNoTreeWhereverItIsAskedAgain) {
  const auto pool = std::make_shared<std::atomic<int32_t>>(100);
  world.options.cache_factory = [&pool](std::span<const cache::LayerShape>, int32_t capacity) {
    return Result<std::unique_ptr<cache::KvCache>>(
        std::make_unique<FakeCache>(capacity, true, pool));
  };
  int asked = 0;
  drafter->guess = [&](DraftJob* job) {
    if (++asked % 2 == 0) job->tree.begin(job->tokens.back() == 3 ? 4 : 3);
    know(job);
  };
  const auto session = world.session();
  const auto call = session->open(text("foo ba"), params).value();
  while (call->poll() == nullptr) {
  }
  const int32_t left = pool->exchange(0);
  for (int32_t polls = 0; polls < 4; ++polls) EXPECT_EQ(call->poll(), nullptr);
  EXPECT_GT(asked, 2);
  *pool = left;
  EXPECT_TRUE(pull_all(call.get(), nullptr, nullptr).ok());
  EXPECT_EQ(call->result().tokens, want.result->tokens);
}

TEST_F(DraftedWorld, ADrafterThatFailsGivesNothing) {
  int calls = 0;
  drafter->guess = [&](DraftJob* job) {
    know(job);
    if (++calls % 2 == 0) throw std::bad_alloc();
  };
  expect_plain();
  EXPECT_GT(calls, 2);
  drafter->guess = [](DraftJob*) { throw 7; };
  expect_plain();
  drafter->refuses = true;
  expect_plain();
}

// A pass that fails with drafts is made without them.
TEST_F(DraftedWorld, APassThatFailsIsMadeWithout) {
  int failures = 0;
  world.model->before_forward = [&](const graph::Batch& batch) -> Status {
    const bool drafts = std::count(batch.wants.begin(), batch.wants.end(), 1) > 1;
    if (!drafts) return {};
    ++failures;
    return {Code::kOutOfMemory, "no memory for so many rows"};
  };
  expect_plain();
  EXPECT_GT(failures, 2);
}

// Rows behind the one that ends the text have run, and say nothing.
TEST_F(DraftedWorld, StopWhereTheTextEnds) {
  const std::string whole = want.result->text;
  for (size_t at = 1; at + 2 < whole.size(); ++at) {
    CallParams stopped = params;
    const std::string stop = whole.substr(at, 2);
    if (!utf8_valid(stop)) continue;  // half a character never comes out
    stopped.stops.strings = {stop};
    const auto a = plain.session();
    const auto b = world.session();
    const Outcome one = generate(*a, text("foo ba"), stopped);
    const Outcome two = generate(*b, text("foo ba"), stopped);
    EXPECT_EQ(one.result->text, two.result->text);
    EXPECT_EQ(one.pieces, two.pieces);
    EXPECT_EQ(one.result->finish_reason, two.result->finish_reason);
    EXPECT_EQ(held(*a), held(*b));
    expect_consistent(world, *b);
  }
  for (const int32_t token : want.result->tokens) {
    CallParams stopped = params;
    stopped.stops.tokens = {token};
    const auto a = plain.session();
    const auto b = world.session();
    const Outcome one = generate(*a, text("foo ba"), stopped);
    const Outcome two = generate(*b, text("foo ba"), stopped);
    EXPECT_EQ(one.result->tokens, two.result->tokens);
    EXPECT_EQ(one.result->finish_reason, two.result->finish_reason);
    EXPECT_EQ(held(*a), held(*b));
  }
}

// At the end of the context, which shifts or does not.
TEST_F(DraftedWorld, AtTheEndOfTheContext) {
  for (const bool shifts : {false, true}) {
    for (const bool moves : {false, true}) {
      World one(23);
      World two(23);
      params.stops.max_new_tokens = 60;
      for (World* each : {&one, &two}) {
        each->options.shift_context = shifts;
        each->options.context_keep = 2;
        each->cache_can_shift = moves;
      }
      two.options.drafter = drafter;
      drafter->guess = [&](DraftJob* job) {
        // The fake model's next token is known where the text is.
        Tokens history(job->tokens.begin(), job->tokens.end());
        int32_t row = 0;
        std::vector<float> logits(static_cast<size_t>(two.tokenizer->vocab_size()));
        while (row < job->most) {
          two.model->write_logits(history, logits.data());
          const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
          history.push_back(static_cast<int32_t>(best));
          row = job->tree.add(history.back(), row);
        }
      };
      const auto a = one.session();
      const auto b = two.session();
      const Outcome first_said = generate(*a, text("foo ba"), params);
      const Outcome second_said = generate(*b, text("foo ba"), params);
      EXPECT_EQ(first_said.result->tokens, second_said.result->tokens) << shifts << moves;
      EXPECT_EQ(first_said.result->finish_reason, second_said.result->finish_reason);
      EXPECT_EQ(first_said.result->usage.dropped, second_said.result->usage.dropped);
      EXPECT_EQ(held(*a), held(*b));
      EXPECT_LT(two.model->forwards, one.model->forwards);
    }
  }
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Lookups in texts, against searches that look at every place; that their memory is bounded; and
// that they show in no result.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "generate/cache_forms.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/ngram_lookup.h"
#include "generate/draft/suffix_lookup.h"
#include "generate/draft/text_index.h"
#include "generate/fake_world.h"

namespace gen::generate {
namespace {

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  int32_t below(int32_t n) {
    return static_cast<int32_t>(uniform_double(seed_, 0, next_++) * static_cast<double>(n));
  }

 private:
  uint64_t seed_;
  uint64_t next_ = 0;
};

Tokens random_text(Draws& draws, int32_t n, int32_t alphabet) {
  Tokens text(static_cast<size_t>(n));
  for (int32_t& token : text) token = draws.below(alphabet);
  return text;
}

/// Tokens before place `next` of `text` that are the last ones of `end`.
int32_t agreement(const Tokens& text, size_t next, std::span<const int32_t> end, int32_t depth) {
  int32_t n = 0;
  while (n < depth && static_cast<size_t>(n) < next && static_cast<size_t>(n) < end.size() &&
         text[next - 1 - static_cast<size_t>(n)] == end[end.size() - 1 - static_cast<size_t>(n)]) {
    ++n;
  }
  return n;
}

TEST(TextIndex, FindsEveryPlaceThatASearchFinds) {
  Draws draws(1);
  for (int32_t trial = 0; trial < 400; ++trial) {
    const int32_t key = 1 + trial % 2;
    const Tokens text = random_text(draws, draws.below(250), 2 + draws.below(4));
    const Tokens other = random_text(draws, draws.below(8), 3);
    for (const Tokens& end : {text, other}) {
      TextIndex index(key, 1024);
      for (size_t at = 0; at < text.size();) {  // in pieces
        const size_t n = std::min<size_t>(text.size() - at, static_cast<size_t>(draws.below(9)));
        index.add(std::span(text).subspan(at, n));
        at += n;
      }
      std::array<TextIndex::Match, 300> found;
      const size_t count = index.find(end, 5, found);
      std::vector<std::pair<int64_t, int32_t>> want;
      for (size_t next = text.size(); next-- > 0;) {
        const int32_t length = agreement(text, next, end, 5);
        if (length >= key) want.emplace_back(static_cast<int64_t>(next), length);
      }
      ASSERT_EQ(count, want.size()) << "trial " << trial;
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(found[i].next, want[i].first);
        EXPECT_EQ(found[i].length, want[i].second);
      }
    }
  }
}

// What the ring has no room for is as if it had never been; gaps agree with nothing.
TEST(TextIndex, ForgetsWhatIsOld) {
  Draws draws(2);
  TextIndex index(2, 256);
  Tokens all;
  size_t most = 0;
  for (int32_t trial = 0; trial < 300; ++trial) {
    if (trial % 7 == 0) {
      index.part();
      all.push_back(TextIndex::kGap);
    }
    const Tokens more = random_text(draws, draws.below(40), 3);
    index.add(more);
    all.insert(all.end(), more.begin(), more.end());
    most = std::max(most, index.memory());
    const Tokens end = random_text(draws, 12, 3);
    std::array<TextIndex::Match, 16> found;
    const size_t count = index.find(end, 8, found);
    size_t at = 0;
    for (size_t next = all.size(); next-- > 0 && at < count;) {
      const auto held = static_cast<int32_t>(next + 256 - all.size());
      if (all.size() > 256 && next + 256 <= all.size()) break;
      const int32_t length =
          std::min(agreement(all, next, end, 8), all.size() > 256 ? held : int32_t{8});
      if (length < 2) continue;
      EXPECT_EQ(found[at].next, static_cast<int64_t>(next)) << trial;
      EXPECT_EQ(found[at].length, length) << trial;
      ++at;
    }
    EXPECT_EQ(at, count) << trial;
  }
  EXPECT_LE(most, 256U * 16U);
}

struct Proposal {
  std::unique_ptr<DraftState> state;
  DraftJob job;
};

Tokens guess(Drafter& drafter, DraftState* state, const Tokens& text, int32_t most,
             const Tokens& stops = {}) {
  DraftJob job;
  job.state = state;
  job.tokens = text;
  job.most = most;
  job.stops = stops;
  job.tree.begin(text.back());
  DraftJob* const jobs[] = {&job};
  drafter.look_up(jobs);
  EXPECT_EQ(drafter.max_proposed(), 0);
  EXPECT_TRUE(job.tree.is_chain());
  EXPECT_LE(job.tree.rows(), most + 1);
  const auto all = job.tree.tokens().subspan(1);
  return {all.begin(), all.end()};
}

/// The longest agreement of at most `ngram`, the newest of those, and what came then; where the
/// text ends it goes on with the guess.
Tokens looked_up(const Tokens& text, int32_t ngram, int32_t most) {
  size_t best = 0;
  int32_t longest = 0;
  for (size_t next = text.size() - 1; next > 0; --next) {
    const int32_t length = agreement(text, next, text, ngram);
    if (length <= longest) continue;
    longest = length;
    best = next;
  }
  Tokens whole = text;
  if (longest < std::min(ngram, 2)) return {};
  for (int32_t i = 0; i < most; ++i) whole.push_back(whole[best + static_cast<size_t>(i)]);
  return Tokens(whole.begin() + std::ssize(text), whole.end());
}

TEST(NgramLookup, SaysWhatCameThen) {
  Draws draws(3);
  for (int32_t trial = 0; trial < 500; ++trial) {
    const int32_t ngram = 1 + draws.below(4);
    const int32_t most = 1 + draws.below(9);
    NgramLookup lookup(ngram, 9);
    const auto state = lookup.begin();
    // Few enough that all places are looked at.
    Tokens text = random_text(draws, 2 + draws.below(20), 4);
    for (int32_t step = 0; step < 12; ++step) {
      ASSERT_EQ(guess(lookup, state.get(), text, most), looked_up(text, ngram, most))
          << "trial " << trial << " step " << step;
      const int32_t change = draws.below(8);
      if (change == 0) text.resize(2 + text.size() / 2);  // cut
      if (change == 1) text = random_text(draws, 2 + draws.below(20), 4);
      const Tokens more = random_text(draws, 1 + draws.below(2), 4);
      text.insert(text.end(), more.begin(), more.end());
    }
  }
}

TEST(NgramLookup, StopsAtWhatEndsTheText) {
  NgramLookup lookup(2, 8);
  const auto state = lookup.begin();
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 9, 4, 1, 2}, 8, {9}), (Tokens{3, 9}));
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 9, 4, 1, 2}, 1, {9}), (Tokens{3}));
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 9, 4, 5, 6}, 8), Tokens{});
}

TEST(SuffixLookup, FollowsMostOfTheLongestAgreements) {
  SuffixLookup lookup({.most = 8, .least_share = 0.5});
  const auto state = lookup.begin();
  // Twice 3 behind 1 2, once 4; behind 7 1 2 only 5.
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 8, 1, 2, 4, 8, 8, 1, 2, 3, 9, 6, 1, 2}, 1),
            (Tokens{3}));
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 8, 7, 1, 2, 5, 8, 1, 2, 3, 9, 7, 1, 2}, 8),
            (Tokens{5, 8, 1, 2, 3, 9}));
  // They part, and no share is enough.
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 7, 1, 2, 4, 8, 1, 2, 5, 9, 1, 2}, 8), Tokens{});
  // An agreement of 2 promises 4 tokens at most.
  EXPECT_EQ(guess(lookup, state.get(), {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2}, 8), (Tokens{3, 4, 5, 6}));
}

TEST(SuffixLookup, GoesOnBehindWhatIsNew) {
  // Records with a value of one or two tokens between what is always the same.
  Tokens text;
  for (const Tokens& value : {Tokens{20}, Tokens{21}, Tokens{22, 23}}) {
    text.insert(text.end(), {10, 11, 12, 13});
    text.insert(text.end(), value.begin(), value.end());
    text.insert(text.end(), {14, 15, 16});
  }
  text.insert(text.end(), {10, 11, 12, 13});
  const auto with = [&text](const Tokens& value) {
    Tokens whole = text;
    whole.insert(whole.end(), value.begin(), value.end());
    return whole;
  };
  const Tokens rest{14, 15, 16, 10, 11, 12, 13};
  for (const int32_t gap : {0, 1, 2, 3}) {
    SuffixLookup lookup({.most = 7, .gap = gap});
    const auto state = lookup.begin();
    EXPECT_EQ(guess(lookup, state.get(), with({30}), 8), gap >= 1 ? rest : Tokens{}) << gap;
    EXPECT_EQ(guess(lookup, state.get(), with({30, 31}), 8), gap >= 2 ? rest : Tokens{}) << gap;
    EXPECT_EQ(guess(lookup, state.get(), with({30, 31, 32}), 8), gap >= 3 ? rest : Tokens{}) << gap;
    EXPECT_EQ(guess(lookup, state.get(), with({30, 31, 32, 33}), 8), Tokens{}) << gap;
    // What agrees as it stands comes first.
    EXPECT_EQ(guess(lookup, state.get(), with({20}), 3), (Tokens{14, 15, 16})) << gap;
  }
}

/// What comes behind up to `max_gap` new tokens, by its definition: at each place where four
/// tokens or more agree before them, six for each length, something else stood, of each length;
/// those vote that agree half as far as the best.
Tokens behind_gap(const Tokens& text, int32_t max_gap, int32_t most) {
  struct Voter {
    size_t next;
    int32_t length;
  };
  std::vector<Voter> voters;
  int32_t longest = 0;
  const size_t n = text.size();
  for (size_t gap = 1; gap <= static_cast<size_t>(max_gap) && gap < n; ++gap) {
    const auto before = std::span(text).first(n - gap);
    int32_t taken = 0;
    for (size_t next = n; next-- > 0 && taken < 6;) {
      const int32_t length = agreement(text, next, before, 24);
      if (next == n - gap || length < 4) continue;
      ++taken;
      longest = std::max(longest, length);
      for (size_t stood = 1; stood <= static_cast<size_t>(max_gap); ++stood) {
        voters.push_back({next + stood, length});
      }
    }
  }
  std::erase_if(voters, [&](const Voter& voter) { return voter.length < longest / 2; });
  Tokens whole = text;
  const size_t all = voters.size();
  for (size_t row = 0; row < static_cast<size_t>(most); ++row) {
    std::vector<std::pair<int32_t, size_t>> votes;  // in the order of who says it first
    for (const Voter& voter : voters) {
      if (voter.next + row >= whole.size()) continue;
      const int32_t says = whole[voter.next + row];
      const auto at = std::find_if(votes.begin(), votes.end(),
                                   [says](const auto& vote) { return vote.first == says; });
      if (at == votes.end()) {
        votes.emplace_back(says, 1);
      } else {
        ++at->second;
      }
    }
    if (votes.empty()) break;
    const auto best =
        *std::max_element(votes.begin(), votes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
    if (10 * best.second < all) break;
    std::erase_if(voters, [&](const Voter& voter) {
      return voter.next + row >= whole.size() || whole[voter.next + row] != best.first;
    });
    whole.push_back(best.first);
  }
  return Tokens(whole.begin() + static_cast<std::ptrdiff_t>(n), whole.end());
}

TEST(SuffixLookup, SaysBehindGapsWhatASearchSays) {
  Draws draws(7);
  int32_t guesses = 0;
  for (int32_t trial = 0; trial < 2000; ++trial) {
    const int32_t gap = 1 + draws.below(3);
    const int32_t most = 1 + draws.below(8);
    SuffixLookup lookup({.most = most, .gap = gap});
    const auto state = lookup.begin();
    const Tokens unit = random_text(draws, 5 + draws.below(4), 40);
    Tokens text;
    for (int32_t i = 0; i < 3 + draws.below(3); ++i) {
      const Tokens value = random_text(draws, 1 + draws.below(3), trial % 2 == 0 ? 3 : 1000);
      text.insert(text.end(), value.begin(), value.end());
      text.insert(text.end(), unit.begin(), unit.end());
    }
    const Tokens end = random_text(draws, 1 + draws.below(4), 1000);
    text.insert(text.end(), end.begin(), end.end());
    const Tokens want = behind_gap(text, gap, most);
    int32_t longest = 0;
    for (size_t next = 1; next < text.size(); ++next) {
      longest = std::max(longest, agreement(text, next, text, 24));
    }
    if (longest >= 2) continue;  // it agrees as it stands
    ASSERT_EQ(guess(lookup, state.get(), text, 8), want) << "trial " << trial;
    if (!want.empty()) ++guesses;
  }
  EXPECT_GT(guesses, 800);
}

TEST(SuffixLookup, KnowsTextsOfOthersThatEnded) {
  for (const bool recent : {false, true}) {
    SuffixLookup lookup({.most = 8, .recent = recent ? 4096 : 0});
    const auto one = lookup.begin();
    const auto two = lookup.begin();
    const Tokens text{11, 12, 13, 14, 15, 16, 17, 18};
    one->ended(text);
    EXPECT_EQ(guess(lookup, two.get(), {1, 11, 12, 13}, 8),
              recent ? (Tokens{14, 15, 16, 17, 18}) : Tokens{});
    Tokens more = text;
    more.insert(more.end(), {21, 22});
    one->ended(more);
    EXPECT_EQ(guess(lookup, two.get(), {1, 16, 17, 18}, 8), recent ? (Tokens{21, 22}) : Tokens{});
  }
}

TEST(SuffixLookup, ForgetsBeyondItsMemory) {
  SuffixLookup lookup({.most = 4, .recent = 1024});
  Draws draws(4);
  size_t most = 0;
  for (int32_t i = 0; i < 200; ++i) {
    const auto state = lookup.begin();
    state->ended(random_text(draws, 300, 1000));
    most = std::max(most, lookup.memory());
  }
  EXPECT_EQ(most, lookup.memory());
  EXPECT_LE(most, 1024U * 16U);
}

TEST(SuffixLookup, AsksTheSecondWhereTheFirstHasNothing) {
  const auto first = std::make_shared<SuffixLookup>(SuffixLookup::Options{.most = 4});
  const auto second = std::make_shared<NgramLookup>(1, 2);
  DrafterList chain(first, second);
  EXPECT_EQ(chain.max_rows(), 4);
  const auto state = chain.begin();
  EXPECT_EQ(guess(chain, state.get(), {1, 2, 3, 4, 5, 1, 2}, 8), (Tokens{3, 4, 5, 1}));
  EXPECT_EQ(guess(chain, state.get(), {1, 2, 3, 4, 5, 7, 2}, 8), (Tokens{3, 4}));
  const auto copy = state->fork();
  EXPECT_EQ(guess(chain, copy.get(), {1, 2, 3, 4, 5, 7, 2}, 8), (Tokens{3, 4}));
}

std::vector<std::shared_ptr<Drafter>> lookups() {
  const auto suffix = std::make_shared<SuffixLookup>(SuffixLookup::Options{.recent = 1 << 12});
  const auto ngram = std::make_shared<NgramLookup>(3, 5);
  return {suffix, ngram, std::make_shared<NgramLookup>(1, 12),
          std::make_shared<DrafterList>(suffix, ngram)};
}

// Words that repeat, so that much of what is guessed is right, and some is not.
TEST(Lookups, ShowInNoResult) {
  for (const CacheForm& form : all_cache_forms()) {
    const auto plain = generator_of(form);
    for (const std::shared_ptr<Drafter>& drafter : lookups()) {
      const auto drafted = generator_of(form, 8, 8, drafter);
      int64_t accepted = 0;
      for (uint32_t seed = 0; seed < 3; ++seed) {
        Tokens prompt = text_of(seed, 9);
        prompt.insert(prompt.end(), prompt.begin(), prompt.end());
        const auto a = plain->new_session().value();
        const auto b = drafted->new_session().value();
        for (int32_t turn = 0; turn < 2; ++turn) {
          CallParams params = params_of(24);
          params.sampling.temperature = seed == 0 ? 0.0 : 0.3 * seed;
          params.sampling.repetition_penalty = seed == 2 ? 1.1 : 1.0;
          std::optional<GenResult> want;
          std::optional<GenResult> got;
          const Prompt said{.text = {}, .tokens = prompt};
          ASSERT_TRUE(a->generate(said, params, nullptr, nullptr, &want).ok());
          ASSERT_TRUE(b->generate(said, params, nullptr, nullptr, &got).ok());
          EXPECT_EQ(got->tokens, want->tokens) << form;
          ASSERT_EQ(got->logprobs.size(), want->logprobs.size());
          EXPECT_EQ(
              std::memcmp(got->logprobs.data(), want->logprobs.data(), 4 * want->logprobs.size()),
              0)
              << form;
          EXPECT_EQ(got->finish_reason, want->finish_reason);
          EXPECT_EQ(want->usage.drafted, 0);
          EXPECT_LE(got->usage.accepted, got->usage.drafted);
          accepted += got->usage.accepted;
          prompt.resize(4);
        }
        EXPECT_EQ(tokens_of(*a), tokens_of(*b));
        EXPECT_EQ(state_of(*a), state_of(*b));
        const auto fork = b->fork().value();
        EXPECT_EQ(say(*fork, text_of(4, 3), 5), say(*a, text_of(4, 3), 5));
        if (HasFailure()) return;
      }
      EXPECT_GT(accepted, 0) << form;
    }
  }
}

// Who proposes is asked for texts in which nothing was found, and for no others.
TEST(Lookups, LeaveTheRestToWhoProposes) {
  struct Proposer final : Drafter {
    int32_t max_rows() const noexcept override { return 3; }
    std::unique_ptr<DraftState> begin() override { return std::make_unique<DraftState>(); }
    void propose(std::span<DraftJob* const> jobs) override {
      for (DraftJob* const job : jobs) {
        EXPECT_EQ(job->tree.rows(), 1);
        job->tree.add(5, 0);  // wrong
        ++asked;
      }
    }
    int32_t asked = 0;
  };
  World world(64, 8);
  const auto proposer = std::make_shared<Proposer>();
  world.options.drafter =
      std::make_shared<DrafterList>(std::make_shared<NgramLookup>(2, 4), proposer);
  EXPECT_EQ(world.options.drafter->max_proposed(), 3);
  const Tokens prompt = world.ids({"a", "b", "c", "foo", "a", "b"});
  const Tokens said = world.ids({"c", "foo", "a", "c", "c"});
  world.script(static_cast<int32_t>(prompt.size()), said);
  const auto session = world.session();
  const Outcome outcome = generate(*session, ids(prompt), greedy(20));
  EXPECT_EQ(outcome.result->tokens, said);
  // As below, and one for each of the two others.
  EXPECT_EQ(proposer->asked, 2);
  EXPECT_EQ(outcome.result->usage.drafted, 6);
  EXPECT_EQ(outcome.result->usage.accepted, 2);
}

// What is guessed is counted, and what was right of it; nothing else runs.
TEST(Lookups, CountWhatTheyGuess) {
  World world(64, 8);
  world.options.drafter = std::make_shared<NgramLookup>(2, 4);
  const Tokens prompt = world.ids({"a", "b", "c", "foo", "a", "b"});
  const Tokens said = world.ids({"c", "foo", "a", "c", "c"});  // guessed: c foo a b
  world.script(static_cast<int32_t>(prompt.size()), said);
  const auto session = world.session();
  const Outcome outcome = generate(*session, ids(prompt), greedy(20));
  EXPECT_EQ(outcome.result->tokens, said);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  // The first token is the prompt's row. Behind "b c" come foo a b c, of which two are right;
  // behind "a c" and "c c" nothing is known.
  EXPECT_EQ(outcome.result->usage.drafted, 4);
  EXPECT_EQ(outcome.result->usage.accepted, 2);
}

}  // namespace
}  // namespace gen::generate

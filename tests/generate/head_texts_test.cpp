// SPDX-License-Identifier: Apache-2.0
// Heads of random weights, whose drafts are mostly wrong. What a generator with one says is what
// the same generator without drafts says, to the bit, in random programs over sessions: greedy and
// drawn, under grammars, plain and recurrent models, alone and in batches. And its drafts are those
// of a head that is given the whole text at once, wherever it saw that text from the beginning.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "generate/batch_run.h"
#include "generate/draft/drafter_list.h"
#include "generate/draft/suffix_lookup.h"
#include "generate/watched_heads.h"
#include "grammar/grammar.h"
#include "support/sanitized.h"

namespace gen::generate {
namespace {

using Random = std::mt19937;

int32_t draw(Random& random, int32_t from, int32_t to) {
  return from + static_cast<int32_t>(random() % static_cast<uint32_t>(to - from + 1));
}

constexpr const char* kFamilies[] = {"exaone4", "qwen35",     "glm4moe",
                                     "step35",  "cohere2moe", "gemma4"};

// ---- Drafts ----

/// Families with heads for up to three tokens.
constexpr std::pair<const char*, int32_t> kHeads[] = {
    {"exaone4", 1}, {"qwen35", 1},     {"glm4moe", 1}, {"step35", 1},
    {"step35", 3},  {"cohere2moe", 1}, {"exaone4", 2}, {"gemma4", 1}};

TEST(HeadTexts, DraftsAreThoseOfTheWholeText) {
  for (const auto& [family, blocks] : kHeads) {
    const auto model = head_model({family, Head::kRandom, 256, blocks});
    for (const int32_t chunk : {3, 8, 64}) {
      for (const int32_t most : {1, 4}) {
        SCOPED_TRACE(testing::Message()
                     << family << blocks << ", chunks of " << chunk << ", most " << most);
        const auto watched = std::make_shared<WatchedHeads>(model, most);
        const auto generator = head_generator(model, {.chunk = chunk, .drafter = watched});
        const auto session = generator->new_session().value();
        answer_of(*session, text_of(1, 40), greedy_call(20));
        answer_of(*session, text_of(2, 1), greedy_call(9));
        answer_of(*session, text_of(3, 35), greedy_call(12));
        const auto fork = session->fork().value();
        answer_of(*fork, text_of(4, 3), greedy_call(10));
        answer_of(*session, {}, greedy_call(10));
        EXPECT_GT(watched->compared, 40);
      }
    }
  }
}

// Drafts of a lookup, of which some rows stay: the head has seen these and no others.
TEST(HeadTexts, DraftsAreThoseOfTheWholeTextBesideALookup) {
  for (const auto& [family, trees] :
       {std::pair{"exaone4", false}, {"exaone4", true}, {"qwen35", true}, {"gemma4", true}}) {
    const auto model = head_model({family, Head::kBlock, 256});
    const auto watched = std::make_shared<WatchedHeads>(model, 3);
    const auto lookup = std::make_shared<KnownLookup>(trees);
    const auto generator =
        head_generator(model, {.drafter = std::make_shared<DrafterList>(lookup, watched)});
    for (int32_t turn = 0; turn < 4; ++turn) {
      const auto session = generator->new_session().value();
      answer_of(*session, text_of(1, 5), greedy_call(50));
      answer_of(*session, text_of(2, 3), greedy_call(20 + turn));
      answer_of(*session, {}, greedy_call(20));
    }
    EXPECT_GT(lookup->looked, 60);
    EXPECT_GT(watched->compared, 60);
    // A recurrent state cannot branch.
    EXPECT_EQ(lookup->branched > 100, trees && model->traits().can_branch);
  }
}

// Rows that ran without the drafter: the head begins anew behind them, with nothing of before.
// Those that are appended do not.
TEST(HeadTexts, DraftsBehindAGapAreThoseOfTheTextBehindIt) {
  for (const auto& [family, blocks] : kHeads) {
    SCOPED_TRACE(testing::Message() << family << blocks);
    const auto model = head_model({family, Head::kRandom, 256, blocks});
    const auto watched = std::make_shared<WatchedHeads>(model, 3);
    const auto generator = head_generator(model, {.drafter = watched});
    const auto session = generator->new_session().value();
    const auto plain = head_generator(model, {})->new_session().value();
    answer_of(*plain, text_of(1, 45), greedy_call(20));
    EXPECT_TRUE(session->load(state_of(*plain)).ok());
    watched->base = session->evaluated();
    answer_of(*session, text_of(3, 5), greedy_call(26));
    EXPECT_TRUE(session->append({.text = {}, .tokens = text_of(4, 50)}).ok());
    answer_of(*session, {}, greedy_call(26));
    EXPECT_GT(watched->compared, 80);
  }
}

// Drafts in whose midst a text ends, by its length, its grammar or a stop: the rows up to there are
// those that the session keeps.
TEST(HeadTexts, EndsInTheMidstOfDraftsLoseNoRows) {
  const auto model = head_model({"exaone4", Head::kBlock, 256});
  const auto watched = std::make_shared<WatchedHeads>(model, 3);
  const auto generator = head_generator(
      model, {.drafter = std::make_shared<DrafterList>(std::make_shared<KnownLookup>(), watched)});
  const Tokens prompt = text_of(1, 12);
  for (int32_t end = 0; end < 4; ++end) {
    for (int32_t i = 2; i < 24; ++i) {
      const int32_t length = i / 2;
      const bool again = i % 2 == 0;
      SCOPED_TRACE(testing::Message() << "end " << end << " after " << length);
      const auto session = generator->new_session().value();
      CallParams params = greedy_call(end == 0 ? length : 30);
      if (end % 2 == 1) {  // no token says a digit
        const std::string rule = "[a-z]{" + std::to_string(length) + (end == 3 ? "}0" : "}");
        params.grammar = grammar::Grammar::from_regex(rule).value();
      }
      int32_t token = prompt.back();
      for (int32_t said = 0; said <= length; ++said) token = after(token);
      if (end == 2) params.stops.tokens = {token};
      std::optional<GenResult> result;
      const Status status =
          session->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
      EXPECT_EQ(status.code(), end == 3 ? Code::kGrammar : Code::kOk) << status.message();
      EXPECT_EQ(session->length(), 12 + length + (end == 2 ? 1 : 0));
      if (again) answer_of(*session, {}, greedy_call(9));  // the last row runs again
      answer_of(*session, text_of(2, 3), greedy_call(9));
    }
  }
  EXPECT_GT(watched->compared, 100);
}

// ---- Texts ----

CallParams params_in(Random& random, int32_t n) {
  static const std::shared_ptr<const grammar::Grammar> grammars[] = {
      grammar::Grammar::from_regex("([a-k]{1,3}[l-z])*").value(),
      grammar::Grammar::from_regex("[a-z]{3}[f-t]{2,5}").value()};
  CallParams params = params_of(n);
  sampling::SamplingParams& sampling = params.sampling;
  const auto one_of = [&random](int32_t many) { return draw(random, 0, many - 1) == 0; };
  sampling.seed = random();
  sampling.temperature = one_of(3) ? 0.0 : one_of(2) ? 0.7 : 1.3;
  sampling.gumbel = one_of(3);
  sampling.logprobs = draw(random, 0, 3);
  if (one_of(3)) sampling.repetition_penalty = 1.2;
  if (one_of(4)) sampling.top_k = 9;
  if (one_of(4)) sampling.top_p = 0.8;
  if (one_of(6)) sampling.mirostat_tau = 2.0;
  if (one_of(4)) params.stops.strings = {"xa", "c"};
  if (one_of(4)) params.stops.tokens = {draw(random, 2, kFormsVocab - 1)};
  params.stops.ignore_eos = !one_of(4);
  if (one_of(3)) params.grammar = grammars[draw(random, 0, 1)];
  return params;
}

void expect_same(const GenResult& got, const GenResult& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.finish_reason, want.finish_reason);
  EXPECT_EQ(got.top_ids, want.top_ids);
  EXPECT_EQ(got.status.code(), want.status.code());
  ASSERT_EQ(got.logprobs.size(), want.logprobs.size());
  if (got.logprobs.empty()) return;
  EXPECT_EQ(std::memcmp(got.logprobs.data(), want.logprobs.data(), 4 * got.logprobs.size()), 0);
}

/// What is done to a session with drafts is done to one without.
class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    const char* const family = kFamilies[seed % std::size(kFamilies)];
    recurrent_ = std::string(family) == "qwen35";
    const int32_t blocks =
        family == std::string("step35") ? 1 + static_cast<int32_t>(seed) / 6 % 3 : 1;
    const auto model = head_model({family, Head::kRandom, kFormsContext, blocks});
    const int32_t most = draw(random_, 1, 8);
    std::shared_ptr<Drafter> drafter = head_drafter(*model, most);
    if (draw(random_, 0, 2) == 0) {
      SuffixLookup::Options lookup;
      lookup.most = draw(random_, 1, 8);
      drafter =
          std::make_shared<DrafterList>(std::make_shared<SuffixLookup>(lookup), std::move(drafter));
    }
    HeadGenerator of = {.chunk = draw(random_, 1, 40), .max_sequences = draw(random_, 1, 6)};
    const int32_t form = draw(random_, 0, recurrent_ ? 1 : 3);
    if (form == 1) {
      of.form = {.layout = CacheForm::Layout::kPaged, .block_size = 8, .prefix_blocks = 40};
    } else if (form == 2) {
      of.form.kind = "fp16";
    } else if (form == 3) {
      of.form = {.layout = CacheForm::Layout::kTiered, .block_size = 16};
    }
    if (!recurrent_ && form != 3 && draw(random_, 0, 1) == 0) of.keep = draw(random_, 0, 9);
    plain_ = head_generator(model, of);
    of.drafter = drafter;
    const int32_t policy = draw(random_, 0, 2);
    of.policy.kind = static_cast<DraftPolicy::Kind>(policy);
    of.policy.probe_tokens = 5;
    if (policy == 2) {
      of.policy.clock = [ticks = Random(random_()), now = 0.0]() mutable {
        return now += 0.001 * draw(ticks, 1, 1000);
      };
    }
    drafted_ = head_generator(model, of);
  }

  void run(int32_t steps) {
    add(plain_->new_session().value(), drafted_->new_session().value());
    for (int32_t step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      const auto at =
          static_cast<size_t>(draw(random_, 0, static_cast<int32_t>(pairs_.size()) - 1));
      act(pairs_[at]);
    }
    drafted += drafted_->draft_use().drafted;
    accepted += drafted_->draft_use().accepted;
  }

  int64_t drafted = 0;
  int64_t accepted = 0;

 private:
  struct Pair {
    std::shared_ptr<Session> plain, drafted;
  };
  void add(std::shared_ptr<Session> plain, std::shared_ptr<Session> with) {
    pairs_.push_back({std::move(plain), std::move(with)});
  }
  Tokens prompt() {
    return text_of(static_cast<uint32_t>(random_() % 100),
                   static_cast<size_t>(draw(random_, 1, 14)));
  }

  void act(Pair pair) {
    switch (draw(random_, 0, 9)) {
      case 0: {
        const Tokens more = prompt();
        const Status a = pair.plain->append({.text = {}, .tokens = more});
        const Status b = pair.drafted->append({.text = {}, .tokens = more});
        EXPECT_EQ(a.code(), b.code());
        break;
      }
      case 1: {
        const int32_t to = draw(random_, 0, pair.plain->length());
        EXPECT_EQ(pair.plain->truncate(to).code(), pair.drafted->truncate(to).code());
        break;
      }
      case 2:
        if (pairs_.size() < 5) add(pair.plain->fork().value(), pair.drafted->fork().value());
        break;
      case 3:
        save(pair);
        break;
      case 4:
        if (draw(random_, 0, 3) != 0) break;
        EXPECT_TRUE(pair.plain->reset().ok() && pair.drafted->reset().ok());
        break;
      case 5:
        batch();
        break;
      default:
        say(pair);
    }
    EXPECT_EQ(tokens_of(*pair.drafted), tokens_of(*pair.plain));
  }
  void say(const Pair& pair) {
    Tokens more = prompt();
    if (pair.plain->length() > 0 && draw(random_, 0, 2) == 0) more.clear();
    const CallParams params = params_in(random_, draw(random_, 1, 20));
    std::optional<GenResult> want, got;
    const Prompt asked = {.text = {}, .tokens = more};
    const Status a = pair.plain->generate(asked, params, nullptr, nullptr, &want);
    const Status b = pair.drafted->generate(asked, params, nullptr, nullptr, &got);
    EXPECT_EQ(a.code(), b.code()) << a.message() << b.message();
    ASSERT_EQ(want.has_value(), got.has_value());
    if (want.has_value()) expect_same(*got, *want);
  }
  void save(const Pair& pair) {
    if (recurrent_) return;
    const std::vector<std::byte> state = state_of(*pair.drafted);
    // But for what the head has seen.
    const auto again = plain_->new_session().value();
    EXPECT_TRUE(again->load(state).ok());
    EXPECT_EQ(state_of(*again), state_of(*pair.plain));
    if (pairs_.size() >= 5) return;
    add(plain_->new_session().value(), drafted_->new_session().value());
    EXPECT_TRUE(pairs_.back().plain->load(state).ok());
    EXPECT_TRUE(pairs_.back().drafted->load(state).ok());
  }
  void batch() {
    const auto n = static_cast<size_t>(draw(random_, 1, 5));
    std::vector<Tokens> prompts;
    std::vector<BatchRequest> requests(n);
    for (size_t i = 0; i < n; ++i) prompts.push_back(prompt());
    for (size_t i = 0; i < n; ++i) {
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = params_in(random_, draw(random_, 1, 12));
    }
    const auto want = run_batch(*plain_, requests, nullptr, nullptr);
    const auto got = run_batch(*drafted_, requests, nullptr, nullptr);
    for (size_t i = 0; i < n; ++i) expect_same(got[i], want[i]);
  }

  Random random_;
  bool recurrent_ = false;
  std::shared_ptr<const Generator> plain_, drafted_;
  std::vector<Pair> pairs_;
};

int32_t trials() {
  const char* const wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::max(1, std::atoi(wanted)) : test::kSanitized ? 25 : 200;
}

TEST(HeadTexts, AreThoseWithoutDrafts) {
  int64_t drafted = 0;
  int64_t accepted = 0;
  for (int32_t trial = 0; trial < trials(); ++trial) {
    SCOPED_TRACE(testing::Message() << "program " << trial);
    Program program(static_cast<uint32_t>(trial));
    program.run(25);
    drafted += program.drafted;
    accepted += program.accepted;
    if (HasFailure()) return;
  }
  if (trials() >= 10) {
    EXPECT_GT(drafted, 20 * trials());
    EXPECT_GT(accepted, trials() / 4);
  }
  std::printf("%d programs, %lld tokens drafted, %lld of them right\n", trials(),
              static_cast<long long>(drafted), static_cast<long long>(accepted));
}

}  // namespace
}  // namespace gen::generate

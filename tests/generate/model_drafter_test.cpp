// SPDX-License-Identifier: Apache-2.0
// A draft model: right where the same model draws the best token, in no result for any other, with
// caches that follow their sessions; what it does under grammars, without memory, and which models
// it may be.
#include "generate/draft/model_drafter.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics_memory.h"
#include "generate/batch_run.h"
#include "generate/cache_forms.h"
#include "generate/draft/draft_vocabulary.h"
#include "generate/fake_world.h"
#include "generate/request/metric_names.h"
#include "generate/small_drafter.h"
#include "grammar/grammar.h"

namespace gen::generate {
namespace {

CallParams greedy_params(int32_t n) {
  CallParams params = params_of(n);
  params.sampling.temperature = 0.0;
  return params;
}

GenResult told(Session& session, const Tokens& prompt, const CallParams& params) {
  std::optional<GenResult> result;
  const Status status =
      session.generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(*result);
}

void expect_same(const GenResult& got, const GenResult& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.logprobs, want.logprobs);
  EXPECT_EQ(got.finish_reason, want.finish_reason);
}

// The first token is the prompt's; each step after it says all that was guessed and one more.
TEST(ModelDrafter, IsRightWhereItIsTheModel) {
  for (const CacheForm& form : all_cache_forms()) {
    if (form.far || std::string(form.kind) != "fp32") continue;
    if (form.layout == CacheForm::Layout::kCompressed) continue;
    const auto plain = generator_of(form)->new_session().value();
    const auto drafted = generator_of(form, 8, 8, small_drafter(4, true))->new_session().value();
    const GenResult want = told(*plain, text_of(1, 13), greedy_params(41));
    const GenResult got = told(*drafted, text_of(1, 13), greedy_params(41));
    expect_same(got, want);
    // 13 tokens, then 1 are caught up with in two steps of 8 rows, the first of which guesses none.
    EXPECT_EQ(got.usage.accepted, got.usage.drafted);
    EXPECT_GE(got.usage.drafted, 4 * 7);
  }
}

TEST(ModelDrafter, FollowsWhatHappensToItsSession) {
  const auto plain = generator_of({});
  const auto drafter = small_drafter(5, true, 96);
  const auto drafted = generator_of({}, 8, 8, drafter);
  const auto a = plain->new_session().value();
  const auto b = drafted->new_session().value();
  const auto both = [&](Session& one, Session& two, uint32_t seed, int32_t n) {
    const GenResult want = told(one, text_of(seed, 3), greedy_params(n));
    const GenResult got = told(two, text_of(seed, 3), greedy_params(n));
    expect_same(got, want);
    EXPECT_EQ(got.usage.accepted, got.usage.drafted) << seed;
    EXPECT_GT(got.usage.drafted, n / 2) << seed;
  };
  both(*a, *b, 1, 12);
  both(*a, *b, 2, 12);
  EXPECT_TRUE(a->truncate(17).ok());
  EXPECT_TRUE(b->truncate(17).ok());
  both(*a, *b, 3, 12);
  const auto c = a->fork().value();
  const auto d = b->fork().value();
  both(*c, *d, 4, 12);
  both(*a, *b, 5, 12);
  const std::vector<std::byte> state = state_of(*b);
  EXPECT_EQ(state, state_of(*a));
  const auto e = drafted->new_session().value();
  EXPECT_TRUE(e->load(state).ok());
  both(*a, *e, 6, 12);
  EXPECT_TRUE(a->reset().ok());
  EXPECT_TRUE(e->reset().ok());
  both(*a, *e, 7, 12);
}

TEST(ModelDrafter, DraftsForManyTogether) {
  constexpr size_t kSessions = 12;
  const auto plain = generator_of({});
  for (const bool same : {true, false}) {
    const auto drafted = generator_of({}, 8, 8, small_drafter(3, same, 20));
    std::vector<BatchRequest> requests(kSessions);
    std::vector<Tokens> prompts(kSessions);
    for (size_t i = 0; i < kSessions; ++i) {
      prompts[i] = text_of(static_cast<uint32_t>(i), 3 + 5 * i);
      requests[i].prompt.tokens = prompts[i];
      requests[i].params = i % 3 == 0 ? params_of(22) : greedy_params(22);
    }
    const auto results = run_batch(*drafted, requests, nullptr, nullptr);
    int64_t accepted = 0;
    for (size_t i = 0; i < kSessions; ++i) {
      expect_same(results[i],
                  told(*plain->new_session().value(), prompts[i], requests[i].params));
      accepted += results[i].usage.accepted;
    }
    EXPECT_GT(accepted, same ? 80 : 0);
    std::vector<GenResult> said(kSessions);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kSessions; ++i) {
      threads.emplace_back([&, i] {
        said[i] = told(*drafted->new_session().value(), prompts[i], requests[i].params);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kSessions; ++i) expect_same(said[i], results[i]);
  }
}

// Its context is shorter than the text becomes.
TEST(ModelDrafter, EndsWhereItsContextEnds) {
  const auto want = told(*generator_of({})->new_session().value(), text_of(1, 50),
                         greedy_params(40));
  const auto got = told(*generator_of({}, 8, 8, small_drafter(4, false))->new_session().value(),
                        text_of(1, 50), greedy_params(40));
  expect_same(got, want);
  EXPECT_GT(got.usage.drafted, 0);
  EXPECT_LT(got.usage.drafted, 4 * 30);
}

TEST(ModelDrafter, WithoutMemoryDraftsNothing) {
  test::FarMemory memory(size_t{1} << 10);
  const auto want = told(*generator_of({})->new_session().value(), text_of(1, 9), params_of(30));
  const auto got =
      told(*generator_of({}, 8, 8, small_drafter(4, true, 8, memory))->new_session().value(),
           text_of(1, 9), params_of(30));
  expect_same(got, want);
  EXPECT_EQ(got.usage.drafted, 0);
}

class DraftWorld : public testing::Test {
 protected:
  DraftWorld() { draft = std::make_shared<FakeModel>(world.tokenizer->vocab_size(), 64); }
  void make(int32_t most) {
    ModelDrafter::Options options;
    options.most = most;
    options.vocab = world.tokenizer->vocab_size();
    options.context = 64;
    options.prompt_rows = 8;
    options.cache_factory = [this](std::span<const cache::LayerShape>,
                                   int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
      ++caches;
      if (refuses) return error(Code::kOutOfMemory, "injected");
      return std::unique_ptr<cache::KvCache>(std::make_unique<FakeCache>(capacity));
    };
    world.options.drafter = ModelDrafter::create(draft, options).value();
  }
  World world{64, 8};
  World plain{64, 8};
  std::shared_ptr<FakeModel> draft;
  int caches = 0;
  bool refuses = false;
};

// The model would rather say something else at nearly every place, and so would its draft: only one
// who knows the grammar is always right.
TEST_F(DraftWorld, GuessesWhatTheGrammarAllows) {
  make(4);
  CallParams params = greedy(24);
  params.grammar = grammar::Grammar::from_regex("(foo|aba)( ba|a|c){8,}").value();
  const auto session = world.session();
  const Outcome got = generate(*session, text("foo ba"), params);
  const Outcome want = generate(*plain.session(), text("foo ba"), params);
  EXPECT_EQ(got.result->tokens, want.result->tokens);
  EXPECT_EQ(got.pieces, want.pieces);
  EXPECT_GT(got.result->usage.drafted, 12);
  EXPECT_EQ(got.result->usage.accepted, got.result->usage.drafted);
}

TEST_F(DraftWorld, StopsAtATokenThatEndsTheText) {
  make(8);
  const Tokens said = world.ids({"a", "b", "c"});
  world.script(3, said);
  draft->next = world.model->next;
  const auto session = world.session();
  const Outcome got = generate(*session, text("foo ba"), greedy(24));
  EXPECT_EQ(got.result->tokens, said);
  EXPECT_EQ(got.result->finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(got.result->usage.drafted, 3);  // b, c and the end
  EXPECT_EQ(got.result->usage.accepted, 3);
}

// Nor at one that the grammar asks for, whether or not ends are to be ignored.
TEST_F(DraftWorld, GoesOnBehindAnEndThatIsAPart) {
  make(8);
  for (const bool ignore : {false, true}) {
    CallParams params = greedy(24);
    params.grammar = grammar::Grammar::from_gbnf("root ::= (\"foo\" <[1]> \"c\"){3}").value();
    params.stops.ignore_eos = ignore;
    params.stops.tokens = world.ids({"c"});
    const Outcome got = generate(*world.session(), text("foo ba"), params);
    EXPECT_EQ(got.result->text, "foocfoocfooc");
    EXPECT_EQ(got.result->finish_reason, FinishReason::kGrammarComplete);
    EXPECT_EQ(got.result->tokens.size(), 9U);
    EXPECT_EQ(got.result->usage.drafted, 7);  // in one step, behind the first token
    EXPECT_EQ(got.result->usage.accepted, 7);
  }
}

TEST_F(DraftWorld, GoesOnWithoutWhereThereIsNoMemory) {
  refuses = true;
  make(4);
  const auto metrics = std::make_shared<MetricsMemory>();
  world.options.metrics = metrics;
  const auto session = world.session();
  CallParams params = greedy(30);
  params.stops.ignore_eos = true;
  const Outcome got = generate(*session, text("foo ba"), params);
  const Outcome want = generate(*plain.session(), text("foo ba"), params);
  EXPECT_EQ(got.result->tokens, want.result->tokens);
  EXPECT_EQ(got.result->usage.drafted, 0);
  EXPECT_EQ(caches, 1);  // not asked for again at once
  EXPECT_EQ(metrics->snapshot().value(metric::kDraftsFailed), 1);
}

TEST_F(DraftWorld, APassThatFailsIsNoFailure) {
  make(4);
  int calls = 0;
  draft->before_forward = [&](const graph::Batch&) -> Status {
    if (++calls % 3 != 0) return {};
    return {Code::kModel, "injected"};
  };
  const auto session = world.session();
  CallParams params = greedy(30);
  params.stops.ignore_eos = true;
  const Outcome got = generate(*session, text("foo ba"), params);
  const Outcome want = generate(*plain.session(), text("foo ba"), params);
  EXPECT_EQ(got.result->tokens, want.result->tokens);
  EXPECT_GT(got.result->usage.drafted, 0);
  EXPECT_EQ(got.result->usage.accepted, got.result->usage.drafted);
}

TEST_F(DraftWorld, IsNoModelThatCannotGoBack) {
  ModelDrafter::Options options;
  options.cache_factory = [](std::span<const cache::LayerShape>,
                             int32_t) -> Result<std::unique_ptr<cache::KvCache>> {
    return error(Code::kInternal, "none");
  };
  draft->stateful = true;  // with a state that can
  EXPECT_TRUE(ModelDrafter::create(draft, options).ok());
  draft->mutable_traits().can_truncate = false;
  EXPECT_EQ(ModelDrafter::create(draft, options).status().code(), Code::kUnsupported);
}

TEST(DraftVocabulary, MayDifferByPadding) {
  const FakeModel twenty(20);
  const FakeModel thirty(30);
  Strings pieces;
  for (int32_t i = 2; i < 20; ++i) pieces.push_back("t" + std::to_string(i));
  const FakeTokenizer plain(pieces);
  Strings more = pieces;
  more.emplace_back("[PAD20]");
  const FakeTokenizer padded(more);
  more.back() = "word";
  const FakeTokenizer longer(more);
  pieces[5] = "else";
  const FakeTokenizer other(pieces);
  EXPECT_EQ(common_vocabulary(twenty, &plain, thirty, &plain).value(), 20);
  EXPECT_EQ(common_vocabulary(thirty, &padded, thirty, &plain).value(), 20);
  EXPECT_EQ(common_vocabulary(twenty, &plain, thirty, &padded).value(), 20);
  EXPECT_EQ(common_vocabulary(twenty, nullptr, twenty, &plain).value(), 20);
  const auto refused = [](const Result<int32_t>& got, const char* says) {
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(got.status().message()).find(says), std::string::npos)
        << got.status().message();
  };
  refused(common_vocabulary(thirty, &longer, thirty, &plain), "\"word\"");
  refused(common_vocabulary(thirty, &plain, thirty, &longer), "\"word\"");
  refused(common_vocabulary(twenty, &other, thirty, &plain), "\"else\"");
  refused(common_vocabulary(twenty, nullptr, thirty, &plain), "20");
}

}  // namespace
}  // namespace gen::generate

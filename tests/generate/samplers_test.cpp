// SPDX-License-Identifier: Apache-2.0
// Proves that calls with DRY, top-n-sigma, XTC, mirostat and fewest tokens say the same one by one,
// together, with drafts and in pieces; that DRY sees the whole session and respects breakers, by
// saying its texts again from the model's logits; and where texts end that shall not be short.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "generate/batch_run.h"
#include "generate/fake_world.h"
#include "generate/knowing_drafter.h"
#include "grammar/grammar.h"

namespace gen::generate {
namespace {

using grammar::Grammar;

const Strings kSome{"a", "b", "c", "ab", "ba", ":", "\n", " ", "aba", "7", "x:", "d", "e"};

// The next token's logits are the last token's alone, so that texts repeat themselves.
void forget(World* world) {
  world->model->spoil_logits = [](std::span<const int32_t> history, float* logits) {
    for (uint64_t i = 0; i < kSome.size() + 2; ++i) {
      const auto last = static_cast<uint64_t>(history.back());
      logits[i] = static_cast<float>(6.0 * uniform_double(last, 7, i));
    }
    logits[FakeTokenizer::kEos] -= 2.0F;
  };
}

Tokens join(const Tokens& a, const Tokens& b) {
  Tokens joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

CallParams calm(int32_t n, double temperature = 0.0, uint64_t seed = 1) {
  CallParams params = greedy(n);
  params.sampling.temperature = temperature;
  params.sampling.seed = seed;
  return params;
}

std::vector<CallParams> many_calls() {
  std::vector<CallParams> calls;
  const auto grammar = Grammar::from_regex("[abc:]{3,40}").value();
  for (uint64_t i = 0; i < 32; ++i) {
    CallParams params = calm(30, i % 4 == 0 ? 0.0 : 1.3, i);
    sampling::SamplingParams& sampling = params.sampling;
    sampling.logprobs = i % 3 == 0 ? 2 : 0;
    if ((i & 1) != 0) sampling.mirostat_tau = 1.5;
    if ((i & 2) != 0) sampling.dry_multiplier = 1.1;
    if ((i & 4) != 0) sampling.xtc_probability = 0.5;
    if ((i & 8) != 0) sampling.top_n_sigma = 1.2;
    if ((i & 16) != 0) params.stops.min_new_tokens = 12;
    sampling.mirostat_eta = 0.4;
    sampling.dry_allowed_length = 1 + static_cast<int32_t>(i % 3);
    sampling.dry_window = i % 5 == 0 ? 9 : 0;
    if (i % 7 == 0) params.grammar = grammar;
    if (i % 6 == 0) sampling.repetition_penalty = 1.1;
    calls.push_back(std::move(params));
  }
  return calls;
}

TEST(Samplers, SayTheSameInAnyCompany) {
  const std::vector<CallParams> calls = many_calls();
  std::vector<GenResult> want;
  std::vector<Tokens> texts;
  {
    World world(128, 8, kSome);
    forget(&world);
    for (const CallParams& params : calls) {
      const auto session = world.session();
      want.push_back(std::move(*generate(*session, text("ab:ab"), params).result));
      texts.push_back(held(*session));
    }
  }
  const auto same = [](const GenResult& got, const GenResult& alone) {
    EXPECT_EQ(got.tokens, alone.tokens);
    EXPECT_EQ(got.text, alone.text);
    EXPECT_EQ(got.logprobs, alone.logprobs);
    EXPECT_EQ(got.top_ids, alone.top_ids);
    EXPECT_EQ(got.finish_reason, alone.finish_reason);
    EXPECT_EQ(got.status.code(), alone.status.code());
  };
  for (const double p : {-1.0, 0.0, 0.6, 1.0}) {
    SCOPED_TRACE(p);
    World world(128, 8, kSome);
    forget(&world);
    std::shared_ptr<KnowingDrafter> drafter;
    if (p >= 0) {
      KnowingDrafter::Options options{p, 6, 2, world.tokenizer->vocab_size()};
      drafter = std::make_shared<KnowingDrafter>(options);
      for (const Tokens& said : texts) drafter->learn(said);
      world.options.drafter = drafter;
    }
    for (size_t i = 0; i < calls.size(); ++i) {
      SCOPED_TRACE(i);
      same(*generate(*world.session(), text("ab:ab"), calls[i]).result, want[i]);
    }
    std::vector<BatchRequest> requests;
    for (const CallParams& params : calls) requests.push_back({text("ab:ab"), params, {}});
    const std::vector<GenResult> together = run_batch(*world.generator, requests, nullptr, nullptr);
    for (size_t i = 0; i < calls.size(); ++i) same(together[i], want[i]);
    for (size_t i = 0; i < calls.size(); ++i) {
      const auto stream = Generation::open(world.session(), text("ab:ab"), calls[i]).value();
      while (!stream->ended()) static_cast<void>(stream->poll());
      same(stream->result(), want[i]);
    }
    if (p == 1.0) {
      EXPECT_GT(drafter->accepted, 100);
    }
  }
}

// Every stage changes something in these calls, or the test above would prove little.
TEST(Samplers, EachOneIsThere) {
  World world(128, 8, kSome);
  forget(&world);
  const auto told = [&](void (*set)(CallParams&)) {
    Tokens all;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      CallParams params = calm(30, 1.3, seed);
      if (set != nullptr) set(params);
      const Tokens said = generate(*world.session(), text("ab:ab"), params).result->tokens;
      all.insert(all.end(), said.begin(), said.end());
    }
    return all;
  };
  const Tokens plain = told(nullptr);
  EXPECT_NE(told([](CallParams& p) { p.sampling.mirostat_tau = 1.5; }), plain);
  EXPECT_NE(told([](CallParams& p) { p.sampling.dry_multiplier = 1.1; }), plain);
  EXPECT_NE(told([](CallParams& p) { p.sampling.xtc_probability = 0.5; }), plain);
  EXPECT_NE(told([](CallParams& p) { p.sampling.top_n_sigma = 1.2; }), plain);
  EXPECT_NE(told([](CallParams& p) { p.stops.min_new_tokens = 12; }), plain);
}

// What DRY takes from each token after `all`: every place is compared with the end.
std::map<int32_t, double> repetitions(const World& world, const Tokens& all,
                                      const CallParams& params) {
  const auto& pieces = world.tokenizer->spec().tokens;
  const auto piece = [&](int32_t token) { return pieces[static_cast<size_t>(token)]; };
  const Strings breakers = params.dry_breakers();
  const auto is_break = [&](int32_t token) {
    if (world.tokenizer->is_control(token)) return true;
    for (const std::string& breaker : breakers) {
      if (piece(token).find(breaker) != std::string::npos) return true;
    }
    return false;
  };
  size_t unbroken = 0;
  while (unbroken < all.size() && !is_break(all[all.size() - 1 - unbroken])) ++unbroken;
  size_t begin = 0;
  const auto window = static_cast<size_t>(params.sampling.dry_window);
  if (window > 0 && window < all.size()) begin = all.size() - window;
  std::map<int32_t, double> taken;
  for (size_t next = begin + 1; next < all.size(); ++next) {
    size_t length = 0;
    while (length < unbroken && length < next - begin &&
           all[next - 1 - length] == all[all.size() - 1 - length]) {
      ++length;
    }
    const double beyond = static_cast<double>(length) - params.sampling.dry_allowed_length;
    if (beyond < 0 || is_break(all[next])) continue;
    double& one = taken[all[next]];
    one =
        std::max(one, params.sampling.dry_multiplier * std::pow(params.sampling.dry_base, beyond));
  }
  return taken;
}

TEST(Samplers, DrySaysWhatItsFormulaSays) {
  World world(128, 8, kSome);
  forget(&world);
  int64_t turned = 0;
  for (int32_t mix = 0; mix < 36; ++mix) {
    CallParams params = calm(25);
    params.stops.ignore_eos = true;
    params.sampling.dry_multiplier = 0.4 + 0.1 * mix;
    params.sampling.dry_base = 1.0 + 0.05 * mix;
    params.sampling.dry_allowed_length = 1 + mix % 3;
    params.sampling.dry_window = mix % 4 == 0 ? 11 : 0;
    if (mix % 5 == 1 || mix % 5 == 2) {
      ASSERT_TRUE(params.add_dry_breaker(mix % 5 == 1 ? "" : "b").ok());
    }
    const auto session = world.session();
    // Two calls: the second one sees what the first has said.
    for (int32_t call = 0; call < 2; ++call) {
      const Outcome outcome = generate(*session, text("abcab:"), params);
      ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
      const Tokens all = held(*session);
      const size_t said = outcome.result->tokens.size();
      ASSERT_EQ(said, 25U);
      for (size_t at = all.size() - said; at < all.size(); ++at) {
        const Tokens before(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at));
        std::vector<float> logits(static_cast<size_t>(world.tokenizer->vocab_size()));
        world.model->write_logits(before, logits.data());
        const auto plain = std::max_element(logits.begin(), logits.end()) - logits.begin();
        for (const auto& [token, penalty] : repetitions(world, before, params)) {
          float& logit = logits[static_cast<size_t>(token)];
          logit = static_cast<float>(static_cast<double>(logit) - penalty);
        }
        const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
        ASSERT_EQ(all[at], best) << "mix " << mix << ", call " << call << ", token " << at;
        if (best != plain) ++turned;
      }
    }
  }
  EXPECT_GT(turned, 200);
}

// A context that shifts drops tokens in front; without a tokenizer there are no breakers.
TEST(Samplers, DryInAContextThatShiftsAndWithoutATokenizer) {
  CallParams params = calm(60, 1.0, 3);
  params.stops.ignore_eos = true;
  params.sampling.dry_multiplier = 2.0;
  Tokens want;
  for (const double p : {-1.0, 0.5, 1.0}) {
    World world(20, 4, kSome);
    forget(&world);
    world.options.shift_context = true;
    world.options.context_keep = 2;
    world.cache_can_shift = true;
    if (p >= 0) {
      KnowingDrafter::Options options{p, 4, 1, world.tokenizer->vocab_size()};
      const auto drafter = std::make_shared<KnowingDrafter>(options);
      drafter->learn(join(join({FakeTokenizer::kBos}, world.ids({"ab", ":", "ab"})), want));
      world.options.drafter = drafter;
    }
    const Outcome outcome = generate(*world.session(), text("ab:ab"), params);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_EQ(outcome.result->tokens.size(), 60U);
    EXPECT_GT(outcome.result->usage.dropped, 0);
    if (want.empty()) want = outcome.result->tokens;
    EXPECT_EQ(outcome.result->tokens, want);
    const auto bare = Generator::create(world.model, nullptr, world.options).value();
    const auto session = bare->new_session().value();
    const Tokens prompt{2, 3, 2, 3};
    EXPECT_EQ(generate(*session, ids(prompt), params).result->tokens.size(), 60U);
  }
}

TEST(Samplers, MirostatBeginsAnewWithEachCall) {
  World world(128, 8, kSome);
  forget(&world);
  CallParams params = calm(20, 1.3, 5);
  params.sampling.mirostat_tau = 1.0;
  params.sampling.mirostat_eta = 0.9;
  params.stops.ignore_eos = true;
  const auto session = world.session();
  generate(*session, text("ab"), params);
  const Tokens so_far = held(*session);
  const Tokens more = generate(*session, text("c"), params).result->tokens;
  const auto fresh = world.session();
  EXPECT_EQ(generate(*fresh, ids(join(so_far, world.ids({"c"}))), params).result->tokens, more);
}

class FewestTokens : public testing::Test {
 protected:
  FewestTokens() {
    world.model->next = [](std::span<const int32_t>) { return FakeTokenizer::kEos; };
  }
  Outcome say(CallParams params) { return generate(*world.session(), text("ab"), params); }
  CallParams at_least(int32_t least, int32_t most = 20, double temperature = 0.0) {
    CallParams params = calm(most, temperature);
    params.stops.min_new_tokens = least;
    return params;
  }
  World world{64, 4, kSome};
};

TEST_F(FewestTokens, TheModelEndsNoSooner) {
  for (const double temperature : {0.0, 1.0}) {
    for (const int32_t least : {0, 1, 2, 7, 20}) {
      const Outcome outcome = say(at_least(least, 20, temperature));
      EXPECT_EQ(outcome.result->tokens.size(), static_cast<size_t>(least));
      EXPECT_EQ(outcome.result->finish_reason,
                least == 20 ? FinishReason::kLength : FinishReason::kStopToken);
    }
  }
  // The most tokens count for more.
  EXPECT_EQ(say(at_least(30)).result->finish_reason, FinishReason::kLength);
  EXPECT_EQ(say(at_least(30)).result->tokens.size(), 20U);
}

TEST_F(FewestTokens, StopTokensDoNotEither) {
  const int32_t stop = world.ids({"c"})[0];
  world.model->next = [=](std::span<const int32_t>) { return stop; };
  CallParams params = at_least(5);
  params.stops.tokens = {stop};
  params.stops.ignore_eos = true;
  Outcome outcome = say(params);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(outcome.result->tokens.size(), 5U);
  EXPECT_EQ(std::count(outcome.result->tokens.begin(), outcome.result->tokens.end(), stop), 0);
  // An end token that ends nothing is a token like others.
  world.model->next = [](std::span<const int32_t>) { return FakeTokenizer::kEos; };
  outcome = say(params);
  EXPECT_EQ(outcome.result->tokens, Tokens(20, FakeTokenizer::kEos));
}

TEST_F(FewestTokens, WhereNothingElseIsPossibleTheTextEndsAllTheSame) {
  CallParams params = at_least(9);
  params.grammar = Grammar::from_regex("7*").value();
  Outcome outcome = say(params);
  EXPECT_EQ(outcome.result->text, "777777777");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  params.grammar = Grammar::from_regex("7{3}").value();
  outcome = say(params);
  EXPECT_EQ(outcome.result->text, "777");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kGrammarComplete);
  // The grammar goes on, but with no token that there is: an end token is the only one.
  params.grammar = Grammar::from_gbnf("root ::= \"7\" \"Q\"?").value();
  outcome = say(params);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
  EXPECT_EQ(outcome.result->text, "7");
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  // A bias that forbids all others.
  params = at_least(9);
  for (int32_t token = 0; token < world.tokenizer->vocab_size(); ++token) {
    if (token == FakeTokenizer::kEos) continue;
    ASSERT_TRUE(
        params.sampling.set_logit_bias(token, -std::numeric_limits<float>::infinity()).ok());
  }
  outcome = say(params);
  EXPECT_EQ(outcome.result->finish_reason, FinishReason::kStopToken);
  EXPECT_EQ(outcome.result->tokens.size(), 0U);
}

// Greedy calls that may end soon let the model find the best token; this changes no token.
TEST_F(FewestTokens, ChangesNoTokenOfATextThatIsLongEnough) {
  forget(&world);
  world.model->next = nullptr;
  const Outcome plain = say(at_least(0));
  for (const int32_t least : {1, 5}) {
    const Outcome outcome = say(at_least(least));
    ASSERT_GE(plain.result->tokens.size(), 5U);
    EXPECT_EQ(outcome.result->tokens, plain.result->tokens);
  }
}

}  // namespace
}  // namespace gen::generate

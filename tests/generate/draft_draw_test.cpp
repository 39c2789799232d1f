// SPDX-License-Identifier: Apache-2.0
// Drafts for calls that draw: a draft model that is the model itself draws the very same tokens,
// whatever the sampler, which proves that both share seed, number and noise; and under rejection
// texts are as likely as without drafts (chi-square), while guesses are kept more often.
#include "generate/draft/draft_draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "generate/cache_forms.h"
#include "generate/small_drafter.h"
#include "grammar/grammar.h"

namespace gen::generate {
namespace {

std::shared_ptr<const Generator> generator_with(std::shared_ptr<Drafter> drafter, bool rejects) {
  GeneratorOptions options;
  options.drafter = std::move(drafter);
  options.draft_policy.rejects = rejects;
  std::vector<std::string> pieces;
  for (int32_t i = 0; i < kFormsVocab - 2; ++i) {
    pieces.push_back(std::string(1, static_cast<char>('a' + i % 26)));
  }
  const std::shared_ptr<const model::Model> model(std::shared_ptr<void>(),
                                                  &forms_place(false).model);
  return Generator::create(model, std::make_shared<test::FakeTokenizer>(pieces), options).value();
}

GenResult said(const Generator& generator, const CallParams& params) {
  std::optional<GenResult> result;
  const auto session = generator.new_session().value();
  const Tokens prompt = text_of(1, 7);
  const Status status =
      session->generate({.text = {}, .tokens = prompt}, params, nullptr, nullptr, &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(*result);
}

CallParams drawing(int32_t n, uint64_t seed) {
  CallParams params;
  params.stops.max_new_tokens = n;
  params.stops.ignore_eos = true;
  params.sampling.seed = seed;
  return params;
}

TEST(DraftDraw, IsTheCallsOwnDrawWhereTheModelIs) {
  const auto plain = generator_with(nullptr, false);
  const auto drafted = generator_with(small_drafter(4, true, 64), false);
  for (int32_t mix = 0; mix < 24; ++mix) {
    SCOPED_TRACE(mix);
    CallParams params = drawing(41, static_cast<uint64_t>(mix));
    params.sampling.temperature = mix % 3 == 0 ? 0.6 : 1.3;
    params.sampling.gumbel = mix % 2 == 0;
    if (mix % 4 < 2) params.sampling.top_k = 9;
    if (mix % 5 < 2) params.sampling.top_p = 0.8;
    if (mix % 6 < 3) params.sampling.repetition_penalty = 1.5;
    if (mix % 7 < 3) params.sampling.presence_penalty = 2.0;
    params.sampling.penalize_prompt = mix % 8 < 4;
    params.sampling.penalty_window = mix % 3 == 1 ? 5 : 0;
    if (mix % 9 < 4) {
      params.sampling.xtc_probability = 0.5;
      params.sampling.xtc_threshold = 0.05;
    }
    if (mix % 4 == 3) params.grammar = grammar::Grammar::from_regex("[a-p]*").value();
    const GenResult got = said(*drafted, params);
    EXPECT_EQ(got.tokens, said(*plain, params).tokens);
    EXPECT_EQ(got.usage.accepted, got.usage.drafted);
    EXPECT_GE(got.usage.drafted, 28);
  }
}

TEST(DraftDraw, ByAnotherModelShowsInNoText) {
  const auto plain = generator_with(nullptr, false);
  const auto drafted = generator_with(small_drafter(4, false, 64), false);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CallParams params = drawing(40, seed);
    params.sampling.gumbel = seed % 2 == 0;
    params.sampling.mirostat_tau = seed % 5 == 0 ? 2.0 : 0.0;
    EXPECT_EQ(said(*drafted, params).tokens, said(*plain, params).tokens) << seed;
  }
}

int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::atoi(wanted) : 1500;
}

/// Whether two lots of draws may come from one distribution: below what one of a million exceeds.
void expect_alike(const std::map<int32_t, std::array<double, 2>>& counts) {
  double statistic = 0;
  double degrees = -1;
  std::array<double, 2> rare{};
  const auto add = [&](const std::array<double, 2>& n) {
    statistic += (n[0] - n[1]) * (n[0] - n[1]) / (n[0] + n[1]);
    ++degrees;
  };
  for (const auto& [token, n] : counts) {
    if (n[0] + n[1] < 10) {
      rare[0] += n[0];
      rare[1] += n[1];
    } else {
      add(n);
    }
  }
  if (rare[0] + rare[1] >= 10) add(rare);
  const double d = degrees;
  EXPECT_LT(statistic, d * std::pow(1 - 2 / (9 * d) + 4.75 * std::sqrt(2 / (9 * d)), 3))
      << degrees << " degrees";
}

TEST(DraftDraw, UnderRejectionTextsAreAsLikelyAsWithout) {
  constexpr int32_t kSaid = 4;
  const auto plain = generator_with(nullptr, false);
  const auto rejecting = generator_with(small_drafter(3, false, 64), true);
  const auto exact = generator_with(small_drafter(3, false, 64), false);
  std::vector<std::map<int32_t, std::array<double, 2>>> single(kSaid);
  std::vector<std::map<int32_t, std::array<double, 2>>> pairs(kSaid);
  int64_t kept = 0;
  int64_t kept_exactly = 0;
  int32_t differ = 0;
  for (int trial = 0; trial < trials(); ++trial) {
    const auto params_of_seed = [&](int which) {
      CallParams params = drawing(kSaid, static_cast<uint64_t>(2 * trial + which));
      params.sampling.top_k = 12;
      params.sampling.presence_penalty = 0.5;
      return params;
    };
    const GenResult a = said(*plain, params_of_seed(0));
    const GenResult b = said(*rejecting, params_of_seed(1));
    for (int32_t i = 0; i < kSaid; ++i) {
      const auto at = static_cast<size_t>(i);
      ++single[at][a.tokens[at]][0];
      ++single[at][b.tokens[at]][1];
      if (i == 0) continue;
      ++pairs[at][a.tokens[at - 1] * kFormsVocab + a.tokens[at]][0];
      ++pairs[at][b.tokens[at - 1] * kFormsVocab + b.tokens[at]][1];
    }
    kept += b.usage.accepted;
    if (trial % 8 != 0) continue;
    differ += said(*exact, params_of_seed(1)).tokens != b.tokens ? 1 : 0;
    kept_exactly += 8 * said(*exact, params_of_seed(1)).usage.accepted;
  }
  for (size_t i = 0; i < single.size(); ++i) expect_alike(single[i]);
  for (size_t i = 1; i < pairs.size(); ++i) expect_alike(pairs[i]);
  EXPECT_GT(kept, kept_exactly);
  EXPECT_GT(kept, trials() / 5);
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace gen::generate

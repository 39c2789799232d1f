// SPDX-License-Identifier: Apache-2.0
// Proves that what is drawn has the distribution that each stage, and all of them together, should
// leave: chi-square over many draws (GEN_TRIALS, a million in the long form), and draw by draw over
// random rows with ties and -inf, both against naive_sampling.h.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "sampling/chain.h"
#include "sampling/naive_sampling.h"
#include "support/sanitized.h"

namespace gen::sampling {
namespace {

int trials() {
  const char* wanted = std::getenv("GEN_TRIALS");
  return wanted != nullptr ? std::atoi(wanted) : test::fewer(30000);
}

struct Setting {
  std::string name;
  std::function<void(SamplingParams&)> set;
  bool masked = false;
  NaiveStep step = {};
};

// What the chain is given of a reference's step.
std::vector<TokenPenalty> penalties_of(const NaiveStep& step) {
  std::vector<TokenPenalty> penalties;
  for (const auto& [token, penalty] : step.penalties) penalties.push_back({token, penalty});
  return penalties;
}

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all{
      {"nothing", [](SamplingParams&) {}},
      {"temperature", [](SamplingParams& p) { p.temperature = 1.7; }},
      {"cold", [](SamplingParams& p) { p.temperature = 0.4; }},
      {"top_k", [](SamplingParams& p) { p.top_k = 7; }},
      {"typical_p", [](SamplingParams& p) { p.typical_p = 0.71; }},
      {"top_p", [](SamplingParams& p) { p.top_p = 0.83; }},
      {"min_p", [](SamplingParams& p) { p.min_p = 0.11; }},
      {"top_n_sigma", [](SamplingParams& p) { p.top_n_sigma = 0.87; }},
      {"xtc",
       [](SamplingParams& p) {
         p.xtc_probability = 1.0;
         p.xtc_threshold = 0.061;
       },
       false,
       {.takes_out_the_best = true}},
      {"mirostat",
       [](SamplingParams& p) {
         p.mirostat_tau = 2.1;
         p.mirostat_eta = 0.0;  // so that the bar stays
       },
       false,
       {.bar = 4.2}},
      {"dry", [](SamplingParams&) {}, false, {.penalties = {{1, 0.8}, {9, 2.3}}}},
      {"barred", [](SamplingParams&) {}, false, {.barred = {4, 11, 70}}},
      {"repetition", [](SamplingParams& p) { p.repetition_penalty = 1.6; }},
      {"compound",
       [](SamplingParams& p) {
         p.repetition_penalty = 1.3;
         p.compound_penalty = true;
       }},
      {"frequency", [](SamplingParams& p) { p.frequency_penalty = 0.6; }},
      {"presence", [](SamplingParams& p) { p.presence_penalty = 1.5; }},
      {"window",
       [](SamplingParams& p) {
         p.presence_penalty = -1.5;
         p.penalty_window = 3;
       }},
      {"bias",
       [](SamplingParams& p) {
         p.logit_bias = {{2, 1.5F}, {5, -kInf}};
       }},
      {"mask", [](SamplingParams&) {}, true},
      {"gumbel", [](SamplingParams& p) { p.gumbel = true; }},
      {"gumbel, hot",
       [](SamplingParams& p) {
         p.gumbel = true;
         p.temperature = 1.7;
       },
       true},
      {"gumbel, cut",
       [](SamplingParams& p) {
         p.gumbel = true;
         p.temperature = 1.3;
         p.top_k = 15;
         p.top_p = 0.91;
         p.min_p = 0.02;
         p.presence_penalty = 0.3;
         p.logit_bias = {{2, 1.5F}};
         p.xtc_probability = 1.0;
         p.xtc_threshold = 0.12;
       },
       true,
       {.takes_out_the_best = true}},
      {"all",
       [](SamplingParams& p) {
         p.temperature = 1.4;
         p.top_k = 15;
         p.typical_p = 0.93;
         p.top_p = 0.91;
         p.min_p = 0.07;
         p.repetition_penalty = 1.2;
         p.frequency_penalty = 0.2;
         p.presence_penalty = 0.3;
         p.logit_bias = {{2, 1.5F}};
         p.top_n_sigma = 2.1;
         p.xtc_probability = 1.0;
         p.xtc_threshold = 0.12;
         p.mirostat_tau = 2.3;
         p.mirostat_eta = 0.0;
       },
       true,
       {.penalties = {{1, 0.8}, {9, 2.3}}, .barred = {4}, .takes_out_the_best = true, .bar = 4.6}},
  };
  return all;
}

const std::vector<int32_t> kSaid{3, 9, 3, 17, 3, 0, 9, 12};
const std::vector<uint32_t> kMask{0x00BDF7DFU};  // 20 of 24 tokens

// Wilson and Hilferty's approximation of the value that chi-square exceeds once in ten thousand
// seeds. The seed is fixed, so nothing flickers.
double limit(int freedom) {
  const double k = freedom;
  const double root = 1.0 - 2.0 / (9.0 * k) + 3.719 * std::sqrt(2.0 / (9.0 * k));
  return k * root * root * root;
}

TEST(Distribution, DrawsFollowEachStage) {
  const int draws = trials();
  const std::vector<float> row = random_row(24, 5, 5.0);
  for (const Setting& setting : settings()) {
    SamplingParams params;
    params.seed = 20240607;
    setting.set(params);
    const TokenMask mask{kMask};
    const TokenMask* const used = setting.masked ? &mask : nullptr;
    const std::vector<double> p = naive_distribution(row, params, kSaid, used, setting.step);
    const std::vector<TokenPenalty> penalties = penalties_of(setting.step);
    const Further further{penalties, setting.step.barred};
    std::vector<int64_t> counts(row.size(), 0);
    Chain chain(params);
    std::vector<float> logits;
    for (int i = 0; i < draws; ++i) {
      logits = row;
      const auto choice = chain.sample(logits, kSaid, static_cast<uint64_t>(i), 0, used, further);
      ASSERT_TRUE(choice.ok());
      ++counts[static_cast<size_t>(choice.value().token)];
    }
    double chi_square = 0;
    int cells = 0;
    double rare = 0;  // tokens expected so seldom that they only count together
    int64_t rare_count = 0;
    const auto add = [&](double expected, int64_t count) {
      const double off = static_cast<double>(count) - expected;
      chi_square += off * off / expected;
      ++cells;
    };
    for (size_t i = 0; i < row.size(); ++i) {
      const double expected = p[i] * draws;
      if (expected == 0) {
        ASSERT_EQ(counts[i], 0) << setting.name << " token " << i;
      } else if (expected < 10) {
        rare += expected;
        rare_count += counts[i];
      } else {
        add(expected, counts[i]);
      }
    }
    if (rare > 5) add(rare, rare_count);
    ASSERT_GT(cells, 1) << setting.name;
    EXPECT_LT(chi_square, limit(cells - 1)) << setting.name << ", " << cells << " tokens";
  }
}

// The reference rounds elsewhere, so a draw may fall on the other side of a border once in 10^13.
TEST(Distribution, EveryDrawOverRandomRowsEqualsTheReference) {
  const std::vector<double> temperatures{0.0, 0.31, 1.0, 2.7};
  const std::vector<int32_t> ks{0, 1, 17, 40, 100000};
  const std::vector<double> masses{1.0, 0.911, 0.503, 1.0, 0.0001};  // of typical-p and top-p
  const std::vector<double> min_ps{0.0, 0.0517, 0.93};
  int cases = 0;
  for (uint64_t round = 0; round < (test::kSanitized ? 300U : 1200U); ++round) {
    uint64_t counter = 0;
    const auto below = [&](size_t n) {
      return static_cast<size_t>(uniform_double(round, 5, counter++) * static_cast<double>(n));
    };
    const size_t size = std::vector<size_t>{3, 31, 128, 129, 700, 4099}[below(6)];
    SamplingParams params;
    params.seed = round;
    params.temperature = temperatures[below(4)];
    params.top_k = ks[below(5)];
    params.typical_p = masses[below(5)];
    params.top_p = masses[below(5)];
    params.min_p = min_ps[below(3)];
    if (below(2) == 0) params.repetition_penalty = 1.3;
    params.compound_penalty = below(2) == 0;
    if (below(3) == 0) params.frequency_penalty = 0.37;
    if (below(3) == 0) params.presence_penalty = -0.71;
    params.penalty_window = static_cast<int32_t>(below(3) * 5);
    if (below(3) == 0) params.logit_bias.push_back({1, -kInf});
    if (below(3) == 0) params.logit_bias.push_back({2, 2.5F});
    std::vector<int32_t> said;
    for (size_t i = below(20); i-- > 0;) said.push_back(static_cast<int32_t>(below(size + 2)) - 1);
    const std::vector<double> sigmas{0.0, 0.0, 0.53, 1.71, 40.0};
    params.top_n_sigma = sigmas[below(5)];
    const std::vector<double> odds{0.0, 0.0, 0.41, 1.0};
    params.xtc_probability = odds[below(4)];
    params.xtc_threshold = std::vector<double>{0.0, 0.00103, 0.0517, 0.3}[below(4)];
    params.mirostat_tau = std::vector<double>{0.0, 0.0, 0.217, 1.913, 4.561}[below(5)];
    params.mirostat_eta = 0.0;  // the bar stays: mirostat_test moves it
    NaiveStep naive;
    if (params.mirostat_tau > 0) naive.bar = 2 * params.mirostat_tau;
    if (below(3) == 0) {
      params.dry_multiplier = 0.7;
      params.dry_allowed_length = 1;
      naive.penalties = naive_dry(said, 1 + below(9), params, size);
    }
    if (below(4) == 0) naive.barred = {0, static_cast<int32_t>(below(size)), 5};
    const std::vector<TokenPenalty> penalties = penalties_of(naive);
    const Further further{penalties, naive.barred};
    std::vector<uint32_t> bits((size + 31) / 32 - below(2));
    for (uint32_t& word : bits) {
      word = std::vector<uint32_t>{0xFFFFFFFFU, 0x9D2C5680U, 0x00000001U, 0}[below(4)];
    }
    const TokenMask mask{bits};
    const TokenMask* const used = below(2) == 0 ? &mask : nullptr;
    // Few values are many ties, in logits and in what typical-p compares.
    std::vector<float> row = random_row(size, round, 12.0, below(2) == 0 ? 23 : 0);
    row[0] = 1.0F;  // possible, whatever the draw above made

    const std::vector<double> left = naive_logits(row, params, said, used, naive);
    const bool possible = *std::max_element(left.begin(), left.end()) > kOut;
    std::vector<double> distributions[2];
    Chain chain(params);
    for (uint64_t step = 0; step < 6; ++step) {
      std::vector<float> logits = row;
      const auto choice = chain.sample(logits, said, step, 0, used, further);
      ASSERT_EQ(choice.ok(), possible) << round;
      if (!possible) {
        ASSERT_EQ(choice.status().code(), Code::kGrammar);
        continue;
      }
      naive.takes_out_the_best = uniform_double(params.seed, 1, step) < params.xtc_probability;
      std::vector<double>& p = distributions[naive.takes_out_the_best ? 1 : 0];
      if (p.empty()) p = naive_distribution(row, params, said, used, naive);
      ASSERT_EQ(choice.value().token, naive_draw(p, uniform_double(params.seed, 0, step)))
          << "round " << round << " of " << size << " tokens";
      ++cases;
    }
  }
  EXPECT_GT(cases, test::kSanitized ? 1200 : 6000);
}

}  // namespace
}  // namespace gen::sampling

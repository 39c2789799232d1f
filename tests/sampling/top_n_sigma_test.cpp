// SPDX-License-Identifier: Apache-2.0
// Proves the deviation of a row, the bar to the last float, and that a penalty on one token does
// not change what is kept of the others.
#include "sampling/top_n_sigma.h"

#include <gtest/gtest.h>

#include "sampling/chain.h"
#include "sampling/naive_sampling.h"

namespace gen::sampling {
namespace {

TEST(TopNSigma, TheDeviationIsThatOfTheLogitsAboveMinusInfinity) {
  EXPECT_EQ(logit_deviation(std::vector<float>{2, 4, 4, 4, 5, 5, 7, 9}), 2.0);
  EXPECT_EQ(logit_deviation(std::vector<float>{2, -kInf, 4, 4, 4, 5, -kInf, 5, 7, 9}), 2.0);
  EXPECT_EQ(logit_deviation(std::vector<float>{-kInf, 3}), 0.0);
  EXPECT_EQ(logit_deviation(std::vector<float>{-kInf}), 0.0);
  EXPECT_EQ(logit_deviation({}), 0.0);
  EXPECT_EQ(logit_deviation(std::vector<float>{-3e38F, 3e38F}), static_cast<double>(3e38F));
  for (const size_t size : {2U, 7U, 8U, 9U, 1000U}) {
    const std::vector<float> row = random_row(size, size);
    double mean = 0;
    double count = 0;
    for (const float one : row) {
      if (one == -kInf) continue;
      mean += static_cast<double>(one);
      ++count;
    }
    mean /= count;
    double squares = 0;
    for (const float one : row) {
      if (one != -kInf) squares += std::pow(static_cast<double>(one) - mean, 2);
    }
    EXPECT_NEAR(logit_deviation(row), std::sqrt(squares / count), 1e-12);
  }
}

TEST(TopNSigma, TheBarIsTheLeastFloatThatStays) {
  for (uint64_t i = 0; i < 5000; ++i) {
    const double n = 5.0 * uniform_double(i, 0, 0);
    const double deviation = std::exp(10.0 * uniform_double(i, 0, 1) - 5.0);
    const auto max = static_cast<float>(200.0 * uniform_double(i, 0, 2) - 100.0);
    const double exact = static_cast<double>(max) - n * deviation;
    const float bar = top_n_sigma_bar(n, deviation, max);
    ASSERT_GE(static_cast<double>(bar), exact);
    ASSERT_LT(static_cast<double>(std::nextafter(bar, -kInf)), exact);
    ASSERT_LE(bar, max);
  }
  EXPECT_EQ(top_n_sigma_bar(1.0, 0.0, 3.0F), 3.0F);
  EXPECT_EQ(top_n_sigma_bar(1e300, 2.0, 3.0F), -kInf);
  EXPECT_EQ(top_n_sigma_bar(3.0, 3e38, -3e38F), -kInf);
}

// What a setting keeps: each token that some step draws.
std::vector<int32_t> drawn(const SamplingParams& params, const std::vector<float>& row) {
  std::vector<int32_t> all;
  Chain chain(params);
  for (uint64_t step = 0; step < 3000; ++step) {
    std::vector<float> logits = row;
    all.push_back(chain.sample(logits, {}, step, 0).value().token);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

TEST(TopNSigma, KeepsTheSameAtEveryTemperatureAndBesideABias) {
  const std::vector<float> row{9, 2, 8.5F, 7.4F, 4, 5, 7, 4};  // deviation 2.27
  for (const double temperature : {0.5, 1.0, 30.0}) {
    SamplingParams params;
    params.temperature = temperature;
    params.top_n_sigma = 0.8;
    EXPECT_EQ(drawn(params, row), (std::vector<int32_t>{0, 2, 3}));
    params.logit_bias = {{1, -1e6F}};
    EXPECT_EQ(drawn(params, row), (std::vector<int32_t>{0, 2, 3}));
    params.logit_bias = {{0, -kInf}};  // the best that is left
    EXPECT_EQ(drawn(params, row), (std::vector<int32_t>{2, 3, 6}));
    params.top_n_sigma = 1e-9;
    EXPECT_EQ(drawn(params, row), (std::vector<int32_t>{2}));
  }
  SamplingParams one;
  one.top_n_sigma = 1.0;
  EXPECT_EQ(drawn(one, {3.0F}), (std::vector<int32_t>{0}));
  EXPECT_EQ(drawn(one, std::vector<float>(5, 3.0F)).size(), 5U);
}

}  // namespace
}  // namespace gen::sampling

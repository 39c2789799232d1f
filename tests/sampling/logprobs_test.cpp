// SPDX-License-Identifier: Apache-2.0
// Proves log-softmax and the list of alternatives against double precision and sorting.
#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace gen::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(LogSumExp, ByHand) {
  // Equal logits share the mass: log(4 * e^2) = 2 + log 4.
  const std::vector<float> equal{2, 2, 2, 2};
  EXPECT_DOUBLE_EQ(log_sum_exp(equal, 2.0F), 2.0 + std::log(4.0));
  const std::vector<float> one{-kInf, -1000, -kInf};
  EXPECT_DOUBLE_EQ(log_sum_exp(one, -1000.0F), -1000.0);
}

TEST(LogSumExp, AgainstLongDouble) {
  for (const size_t size : {1U, 7U, 8U, 9U, 1000U, 32000U}) {
    std::vector<float> logits(size);
    for (size_t i = 0; i < size; ++i) {
      logits[i] = static_cast<float>(40.0 * uniform_double(size, 0, i) - 20.0);
    }
    const float max = *std::max_element(logits.begin(), logits.end());
    long double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<long double>(x) - max);
    const double expected = static_cast<double>(max + std::log(sum));
    EXPECT_NEAR(log_sum_exp(logits, max), expected, 1e-13 * std::abs(expected) + 1e-13);
  }
}

TEST(TopLogprobs, BestFirstTiesByLowerId) {
  const std::vector<float> logits{1, 3, -kInf, 3, 2, 3};
  std::vector<float> scratch;
  std::vector<TokenLogprob> top;
  const double sum = std::log(std::exp(1.0) + 3 * std::exp(3.0) + std::exp(2.0));
  const std::vector<int32_t> order{1, 3, 5, 4, 0, 2};
  for (int32_t count = 0; count <= 8; ++count) {
    top_logprobs(logits, sum, count, &scratch, &top);
    ASSERT_EQ(top.size(), static_cast<size_t>(std::min(count, 6)));
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].token, order[i]);
      const double expected = static_cast<double>(logits[static_cast<size_t>(order[i])]) - sum;
      EXPECT_FLOAT_EQ(top[i].logprob, static_cast<float>(expected));
    }
  }
}

TEST(TokenLogprob, NamesRowAndToken) {
  EXPECT_NEAR(token_logprob(std::vector<float>{0, 0}, 1, 0).value(), std::log(0.5), 1e-7);
  EXPECT_STREQ(token_logprob(std::vector<float>{0, std::nanf("")}, 0, 12).status().message(),
               "row 12, token 1: logit is nan");
  EXPECT_STREQ(token_logprob(std::vector<float>{kInf, 0}, 0, 3).status().message(),
               "row 3, token 0: logit is +inf");
  const Status none = token_logprob(std::vector<float>{-kInf, -kInf}, 0, 3).status();
  EXPECT_EQ(none.code(), Code::kModel);
  EXPECT_STREQ(none.message(), "row 3: all 2 logits are -inf");
}

}  // namespace
}  // namespace gen::sampling

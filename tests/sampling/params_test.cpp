// SPDX-License-Identifier: Apache-2.0
// Proves that biases are a map from tokens in which nothing changes when one is refused. The
// numbers are in tests/generate/call_params_test.cpp.
#include "sampling/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gen::sampling {
namespace {

TEST(Params, LogitBiasIsAMap) {
  SamplingParams params;
  EXPECT_TRUE(params.set_logit_bias(7, 1.5F).ok());
  EXPECT_TRUE(params.set_logit_bias(3, -std::numeric_limits<float>::infinity()).ok());
  EXPECT_TRUE(params.set_logit_bias(7, 2.5F).ok());
  ASSERT_EQ(params.logit_bias.size(), 2U);
  EXPECT_EQ(params.logit_bias[0].token, 3);
  EXPECT_EQ(params.logit_bias[1].bias, 2.5F);
  EXPECT_TRUE(params.set_logit_bias(3, 0.0F).ok());
  EXPECT_TRUE(params.set_logit_bias(4, 0.0F).ok());
  EXPECT_EQ(params.logit_bias.size(), 1U);
  EXPECT_EQ(params.set_logit_bias(-1, 1.0F).code(), Code::kInvalidArgument);
  EXPECT_EQ(params.set_logit_bias(1, std::nanf("")).code(), Code::kInvalidArgument);
  EXPECT_EQ(params.set_logit_bias(1, std::numeric_limits<float>::infinity()).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(params.logit_bias.size(), 1U);
}

}  // namespace
}  // namespace gen::sampling

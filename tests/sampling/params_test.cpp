// SPDX-License-Identifier: Apache-2.0
// Proves the defaults and that every setter accepts its whole range, refuses what is outside naming
// it, and then changes nothing.
#include "sampling/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gen::sampling {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr int32_t kMinInt = std::numeric_limits<int32_t>::min();

void expect_refused(const Status& status, Code code, const char* message) {
  EXPECT_EQ(status.code(), code);
  EXPECT_STREQ(status.message(), message);
}

TEST(Params, Defaults) {
  const SamplingParams params;
  EXPECT_EQ(params.temperature, 1.0);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_EQ(params.top_p, 1.0);
  EXPECT_EQ(params.min_p, 0.0);
  EXPECT_EQ(params.typical_p, 1.0);
  EXPECT_EQ(params.repetition_penalty, 1.0);
  EXPECT_FALSE(params.compound_penalty);
  EXPECT_FALSE(params.penalize_prompt);
  EXPECT_EQ(params.frequency_penalty, 0.0);
  EXPECT_EQ(params.presence_penalty, 0.0);
  EXPECT_EQ(params.penalty_window, 0);
  EXPECT_EQ(params.max_new_tokens, 256);
  EXPECT_EQ(params.logprobs, -1);
  EXPECT_FALSE(params.ignore_eos);
}

TEST(Params, RealNumbers) {
  SamplingParams params;
  for (const double value : {-1.0, 0.0, 0.7, 1e9}) {
    EXPECT_TRUE(params.set_temperature(value).ok());
    EXPECT_TRUE(params.set_typical_p(value).ok());
    EXPECT_TRUE(params.set_top_p(value).ok());
    EXPECT_TRUE(params.set_repetition_penalty(value).ok());
    EXPECT_EQ(params.temperature, value);
    EXPECT_EQ(params.typical_p, value);
    EXPECT_EQ(params.top_p, value);
    EXPECT_EQ(params.repetition_penalty, value);
  }
  for (const double value : {kNan, kInf, -kInf}) {
    EXPECT_EQ(params.set_temperature(value).code(), Code::kInvalidArgument);
    EXPECT_EQ(params.set_typical_p(value).code(), Code::kInvalidArgument);
    EXPECT_EQ(params.set_top_p(value).code(), Code::kInvalidArgument);
    EXPECT_EQ(params.set_frequency_penalty(value).code(), Code::kInvalidArgument);
    EXPECT_EQ(params.set_presence_penalty(value).code(), Code::kInvalidArgument);
    EXPECT_EQ(params.set_min_p(value).code(), Code::kInvalidArgument);
    EXPECT_EQ(params.set_repetition_penalty(value).code(), Code::kInvalidArgument);
  }
  expect_refused(params.set_temperature(kInf), Code::kInvalidArgument,
                 "temperature inf is not a finite number");
  EXPECT_EQ(params.temperature, 1e9);
  EXPECT_TRUE(params.set_min_p(0.0).ok());
  EXPECT_TRUE(params.set_min_p(1.0).ok());
  expect_refused(params.set_min_p(1.5), Code::kInvalidArgument, "min_p 1.5 outside [0, 1]");
  expect_refused(params.set_min_p(-0.1), Code::kInvalidArgument, "min_p -0.1 outside [0, 1]");
  EXPECT_EQ(params.min_p, 1.0);
  for (const double value : {-100.0, 0.0, 100.0}) {
    EXPECT_TRUE(params.set_frequency_penalty(value).ok());
    EXPECT_TRUE(params.set_presence_penalty(value).ok());
    EXPECT_EQ(params.frequency_penalty, value);
    EXPECT_EQ(params.presence_penalty, value);
  }
  expect_refused(params.set_frequency_penalty(-101), Code::kInvalidArgument,
                 "frequency_penalty -101 outside [-100, 100]");
  expect_refused(params.set_presence_penalty(100.5), Code::kInvalidArgument,
                 "presence_penalty 100.5 outside [-100, 100]");
  EXPECT_EQ(params.frequency_penalty, 100.0);
  EXPECT_EQ(params.presence_penalty, 100.0);
}

TEST(Params, Counts) {
  SamplingParams params;
  EXPECT_TRUE(params.set_top_k(kMaxInt).ok());
  expect_refused(params.set_top_k(-1), Code::kInvalidArgument, "top_k -1 outside [0, 2147483647]");
  EXPECT_EQ(params.top_k, kMaxInt);
  EXPECT_TRUE(params.set_penalty_window(kMaxInt).ok());
  EXPECT_EQ(params.set_penalty_window(kMinInt).code(), Code::kInvalidArgument);
  EXPECT_TRUE(params.set_logprobs(kMaxLogprobs).ok());
  expect_refused(params.set_logprobs(kMaxLogprobs + 1), Code::kInvalidArgument,
                 "logprobs 1025 outside [-1, 1024]");
  EXPECT_EQ(params.set_logprobs(-2).code(), Code::kInvalidArgument);
  EXPECT_EQ(params.logprobs, kMaxLogprobs);
  EXPECT_TRUE(params.set_max_new_tokens(kMinInt).ok());
  EXPECT_EQ(params.effective_max_new_tokens(), 256);
  EXPECT_TRUE(params.set_max_new_tokens(1).ok());
  EXPECT_EQ(params.effective_max_new_tokens(), 1);
}

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

TEST(Params, Stops) {
  SamplingParams params;
  EXPECT_TRUE(params.add_stop_token(5).ok());
  EXPECT_TRUE(params.add_stop_token(5).ok());
  EXPECT_EQ(params.stop_tokens.size(), 1U);
  EXPECT_EQ(params.add_stop_token(-1).code(), Code::kInvalidArgument);
  EXPECT_TRUE(params.add_stop_string("\xC3\xA9").ok());
  expect_refused(params.add_stop_string("a\xC3"), Code::kInvalidArgument,
                 "stop string is not UTF-8 at byte 1 of 2");
  EXPECT_EQ(params.stop_strings.size(), 1U);
}

TEST(Params, VocabularyIsCheckedWhenItIsKnown) {
  SamplingParams params;
  EXPECT_TRUE(params.add_stop_token(9).ok());
  EXPECT_TRUE(params.check_vocab(10).ok());
  expect_refused(params.check_vocab(9), Code::kOutOfRange, "stop token 9 outside vocabulary of 9");
  params.stop_tokens.clear();
  EXPECT_TRUE(params.set_logit_bias(12, 1.0F).ok());
  expect_refused(params.check_vocab(12), Code::kOutOfRange,
                 "logit_bias token 12 outside vocabulary of 12");
}

}  // namespace
}  // namespace gen::sampling

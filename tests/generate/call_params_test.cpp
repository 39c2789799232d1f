// SPDX-License-Identifier: Apache-2.0
// Proves the defaults and that every field of a call accepts its whole range, refuses what is
// outside naming it, and then changes nothing.
#include "generate/request/call_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace gen::generate {
namespace {

using P = sampling::SamplingParams;
using sampling::kMaxLogprobs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr int32_t kMinInt = std::numeric_limits<int32_t>::min();

void expect_refused(const Status& status, Code code, const char* message) {
  EXPECT_EQ(status.code(), code);
  EXPECT_STREQ(status.message(), message);
}

TEST(CallParams, Defaults) {
  const CallParams params;
  EXPECT_EQ(params.sampling.temperature, 1.0);
  EXPECT_EQ(params.sampling.top_k, 0);
  EXPECT_EQ(params.sampling.top_p, 1.0);
  EXPECT_EQ(params.sampling.min_p, 0.0);
  EXPECT_EQ(params.sampling.typical_p, 1.0);
  EXPECT_EQ(params.sampling.repetition_penalty, 1.0);
  EXPECT_FALSE(params.sampling.compound_penalty);
  EXPECT_FALSE(params.sampling.penalize_prompt);
  EXPECT_EQ(params.sampling.frequency_penalty, 0.0);
  EXPECT_EQ(params.sampling.presence_penalty, 0.0);
  EXPECT_EQ(params.sampling.penalty_window, 0);
  EXPECT_EQ(params.stops.max_new_tokens, 256);
  EXPECT_EQ(params.sampling.logprobs, -1);
  EXPECT_FALSE(params.stops.ignore_eos);
  EXPECT_EQ(params.sampling.top_n_sigma, 0.0);
  EXPECT_EQ(params.sampling.xtc_probability, 0.0);
  EXPECT_EQ(params.sampling.xtc_threshold, 0.1);
  EXPECT_EQ(params.sampling.mirostat_tau, 0.0);
  EXPECT_EQ(params.sampling.mirostat_eta, 0.1);
  EXPECT_EQ(params.sampling.dry_multiplier, 0.0);
  EXPECT_EQ(params.sampling.dry_base, 1.75);
  EXPECT_EQ(params.sampling.dry_allowed_length, 2);
  EXPECT_EQ(params.sampling.dry_window, 0);
  EXPECT_EQ(params.dry_breakers(), (std::vector<std::string>{"\n", ":", "\"", "*"}));
  EXPECT_EQ(params.stops.min_new_tokens, 0);
}

TEST(CallParams, RealNumbers) {
  CallParams params;
  // Each of these switches a stage off or is an ordinary value.
  for (const double value : {-1e9, -1.0, 0.0, 0.7, 1.0, 1000.0}) {
    for (double P::*const field :
         {&P::temperature, &P::typical_p, &P::top_p, &P::repetition_penalty}) {
      EXPECT_TRUE(params.set(field, value).ok());
      EXPECT_EQ(params.get(field), value);
    }
  }
  for (const double value : {kNan, kInf, -kInf}) {
    for (const ParamRow& row : param_rows()) {
      if (!std::holds_alternative<double P::*>(row.field)) continue;
      EXPECT_EQ(params.set(std::get<double P::*>(row.field), value).code(), Code::kInvalidArgument);
    }
  }
  expect_refused(params.set(&P::temperature, kInf), Code::kInvalidArgument,
                 "temperature inf is not a finite number");
  expect_refused(params.set(&P::temperature, 2e6), Code::kInvalidArgument,
                 "temperature 2e+06 is above 1e+06");
  expect_refused(params.set(&P::repetition_penalty, 1001.0), Code::kInvalidArgument,
                 "repetition_penalty 1001 is above 1000");
  EXPECT_EQ(params.sampling.temperature, 1000.0);
  expect_refused(params.set(&P::xtc_probability, 1.01), Code::kInvalidArgument,
                 "xtc_probability 1.01 outside [0, 1]");
  expect_refused(params.set(&P::mirostat_tau, 101.0), Code::kInvalidArgument,
                 "mirostat_tau 101 outside [0, 100]");
  expect_refused(params.set(&P::mirostat_eta, -0.5), Code::kInvalidArgument,
                 "mirostat_eta -0.5 outside [0, 1]");
  expect_refused(params.set(&P::dry_base, 0.99), Code::kInvalidArgument,
                 "dry_base 0.99 outside [1, 100]");
  expect_refused(params.set(&P::dry_multiplier, 100.5), Code::kInvalidArgument,
                 "dry_multiplier 100.5 outside [0, 100]");
  EXPECT_TRUE(params.set(&P::top_n_sigma, -1.0).ok());
  EXPECT_TRUE(params.set(&P::top_n_sigma, 1e300).ok());
  EXPECT_TRUE(params.set(&P::min_p, 0.0).ok());
  EXPECT_TRUE(params.set(&P::min_p, 1.0).ok());
  expect_refused(params.set(&P::min_p, 1.5), Code::kInvalidArgument, "min_p 1.5 outside [0, 1]");
  expect_refused(params.set(&P::min_p, -0.1), Code::kInvalidArgument, "min_p -0.1 outside [0, 1]");
  EXPECT_EQ(params.sampling.min_p, 1.0);
  for (const double value : {-100.0, 0.0, 100.0}) {
    EXPECT_TRUE(params.set(&P::frequency_penalty, value).ok());
    EXPECT_TRUE(params.set(&P::presence_penalty, value).ok());
  }
  expect_refused(params.set(&P::frequency_penalty, -101.0), Code::kInvalidArgument,
                 "frequency_penalty -101 outside [-100, 100]");
  expect_refused(params.set(&P::presence_penalty, 100.5), Code::kInvalidArgument,
                 "presence_penalty 100.5 outside [-100, 100]");
  EXPECT_EQ(params.sampling.frequency_penalty, 100.0);
  EXPECT_EQ(params.sampling.presence_penalty, 100.0);
}

TEST(CallParams, Counts) {
  CallParams params;
  EXPECT_TRUE(params.set(&P::top_k, kMaxInt).ok());
  expect_refused(params.set(&P::top_k, -1), Code::kInvalidArgument,
                 "top_k -1 outside [0, 2147483647]");
  EXPECT_EQ(params.sampling.top_k, kMaxInt);
  EXPECT_TRUE(params.set(&P::penalty_window, kMaxInt).ok());
  EXPECT_EQ(params.set(&P::penalty_window, kMinInt).code(), Code::kInvalidArgument);
  expect_refused(params.set(&P::dry_allowed_length, 0), Code::kInvalidArgument,
                 "dry_allowed_length 0 outside [1, 2147483647]");
  expect_refused(params.set(&P::dry_window, -1), Code::kInvalidArgument,
                 "dry_window -1 outside [0, 2147483647]");
  expect_refused(params.set(&StopRules::min_new_tokens, -1), Code::kInvalidArgument,
                 "min_new_tokens -1 outside [0, 2147483647]");
  EXPECT_TRUE(params.set(&StopRules::min_new_tokens, kMaxInt).ok());
  EXPECT_TRUE(params.set(&P::logprobs, kMaxLogprobs).ok());
  expect_refused(params.set(&P::logprobs, kMaxLogprobs + 1), Code::kInvalidArgument,
                 "logprobs 101 outside [-1, 100]");
  EXPECT_EQ(params.set(&P::logprobs, -2).code(), Code::kInvalidArgument);
  EXPECT_EQ(params.sampling.logprobs, kMaxLogprobs);
  EXPECT_TRUE(params.set(&StopRules::max_new_tokens, kMinInt).ok());
  EXPECT_EQ(params.stops.effective_max_new_tokens(), 256);
  EXPECT_TRUE(params.set(&StopRules::max_new_tokens, 1).ok());
  EXPECT_EQ(params.stops.effective_max_new_tokens(), 1);
}

// A default lies in its range, and no row is there twice.
TEST(CallParams, Rows) {
  CallParams params;
  std::set<std::string> keys;
  for (const ParamRow& row : param_rows()) {
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_STRNE(row.help, "") << row.key;
    const Status kept =
        std::visit([&](auto field) { return params.set(field, params.get(field)); }, row.field);
    EXPECT_TRUE(kept.ok()) << kept.message();
  }
  EXPECT_EQ(keys.size(), 27U);
}

TEST(CallParams, Stops) {
  CallParams params;
  EXPECT_TRUE(params.stops.add_token(5).ok());
  EXPECT_TRUE(params.stops.add_token(5).ok());
  EXPECT_EQ(params.stops.tokens.size(), 1U);
  EXPECT_EQ(params.stops.add_token(-1).code(), Code::kInvalidArgument);
  EXPECT_TRUE(params.stops.add_string("\xC3\xA9").ok());
  expect_refused(params.stops.add_string("a\xC3"), Code::kInvalidArgument,
                 "stop string is not UTF-8 at byte 1 of 2");
  EXPECT_EQ(params.stops.strings.size(), 1U);
}

TEST(CallParams, DryBreakers) {
  CallParams params;
  EXPECT_TRUE(params.add_dry_breaker("Human:").ok());
  EXPECT_EQ(params.dry_breakers(), std::vector<std::string>{"Human:"});
  EXPECT_TRUE(params.add_dry_breaker("\n").ok());
  EXPECT_TRUE(params.add_dry_breaker("Human:").ok());
  EXPECT_TRUE(params.add_dry_breaker("").ok());
  EXPECT_EQ(params.dry_breakers(), (std::vector<std::string>{"Human:", "\n"}));
  expect_refused(params.add_dry_breaker("a\xC3"), Code::kInvalidArgument,
                 "dry breaker is not UTF-8 at byte 1 of 2");
  expect_refused(params.add_dry_breaker(std::string(257, 'a')), Code::kInvalidArgument,
                 "a dry breaker of 257 bytes is above 256");
  for (int i = 2; i < 64; ++i) EXPECT_TRUE(params.add_dry_breaker(std::to_string(i)).ok());
  expect_refused(params.add_dry_breaker("x"), Code::kInvalidArgument, "more than 64 dry breakers");
  EXPECT_EQ(params.dry_breakers().size(), 64U);
  CallParams none;
  EXPECT_TRUE(none.add_dry_breaker("").ok());
  EXPECT_TRUE(none.dry_breakers().empty());
  CallParams refused;
  EXPECT_FALSE(refused.add_dry_breaker("\xFF").ok());
  EXPECT_EQ(refused.dry_breakers().size(), 4U);
}

TEST(CallParams, VocabularyIsCheckedWhenItIsKnown) {
  CallParams params;
  EXPECT_TRUE(params.stops.add_token(9).ok());
  EXPECT_TRUE(params.check_vocab(10).ok());
  expect_refused(params.check_vocab(9), Code::kOutOfRange, "stop token 9 outside vocabulary of 9");
  params.stops.tokens.clear();
  EXPECT_TRUE(params.sampling.set_logit_bias(12, 1.0F).ok());
  expect_refused(params.check_vocab(12), Code::kOutOfRange,
                 "logit_bias token 12 outside vocabulary of 12");
}

}  // namespace
}  // namespace gen::generate

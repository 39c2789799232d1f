// SPDX-License-Identifier: Apache-2.0
// Checks of sampling parameters. See params.h.
#include "sampling/params.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace gen::sampling {
namespace {

Status check_finite(const char* name, double value) {
  if (std::isfinite(value)) return {};
  return error(Code::kInvalidArgument, "%s %g is not a finite number", name, value);
}

Status check_at_least_0(const char* name, int32_t value) {
  if (value >= 0) return {};
  return error(Code::kInvalidArgument, "%s %d outside [0, %d]", name, value,
               std::numeric_limits<int32_t>::max());
}

Status check_flat(const char* name, double value) {
  if (value >= -kMaxFlatPenalty && value <= kMaxFlatPenalty) return {};
  return error(Code::kInvalidArgument, "%s %g outside [%g, %g]", name, value, -kMaxFlatPenalty,
               kMaxFlatPenalty);
}

}  // namespace

Status SamplingParams::set_temperature(double value) {
  GEN_TRY(check_finite("temperature", value));
  temperature = value;
  return {};
}

Status SamplingParams::set_top_k(int32_t value) {
  GEN_TRY(check_at_least_0("top_k", value));
  top_k = value;
  return {};
}

Status SamplingParams::set_typical_p(double value) {
  GEN_TRY(check_finite("typical_p", value));
  typical_p = value;
  return {};
}

Status SamplingParams::set_top_p(double value) {
  GEN_TRY(check_finite("top_p", value));
  top_p = value;
  return {};
}

Status SamplingParams::set_min_p(double value) {
  if (!(value >= 0.0 && value <= 1.0)) {
    return error(Code::kInvalidArgument, "min_p %g outside [0, 1]", value);
  }
  min_p = value;
  return {};
}

Status SamplingParams::set_repetition_penalty(double value) {
  GEN_TRY(check_finite("repetition_penalty", value));
  repetition_penalty = value;
  return {};
}

Status SamplingParams::set_frequency_penalty(double value) {
  GEN_TRY(check_flat("frequency_penalty", value));
  frequency_penalty = value;
  return {};
}

Status SamplingParams::set_presence_penalty(double value) {
  GEN_TRY(check_flat("presence_penalty", value));
  presence_penalty = value;
  return {};
}

Status SamplingParams::set_penalty_window(int32_t value) {
  GEN_TRY(check_at_least_0("penalty_window", value));
  penalty_window = value;
  return {};
}

Status SamplingParams::set_max_new_tokens(int32_t value) {
  max_new_tokens = value;
  return {};
}

Status SamplingParams::set_logprobs(int32_t value) {
  if (value < -1 || value > kMaxLogprobs) {
    return error(Code::kInvalidArgument, "logprobs %d outside [-1, %d]", value, kMaxLogprobs);
  }
  logprobs = value;
  return {};
}

Status SamplingParams::set_logit_bias(int32_t token, float bias) {
  GEN_TRY(check_at_least_0("logit_bias token", token));
  if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
    return error(Code::kInvalidArgument, "logit_bias %g is neither finite nor -inf",
                 static_cast<double>(bias));
  }
  const auto at =
      std::lower_bound(logit_bias.begin(), logit_bias.end(), token,
                       [](const LogitBias& entry, int32_t id) { return entry.token < id; });
  const bool there = at != logit_bias.end() && at->token == token;
  if (bias == 0.0F) {
    if (there) logit_bias.erase(at);
  } else if (there) {
    at->bias = bias;
  } else {
    logit_bias.insert(at, {token, bias});
  }
  return {};
}

Status SamplingParams::add_stop_token(int32_t token) {
  GEN_TRY(check_at_least_0("stop token", token));
  if (std::find(stop_tokens.begin(), stop_tokens.end(), token) == stop_tokens.end()) {
    stop_tokens.push_back(token);
  }
  return {};
}

Status SamplingParams::add_stop_string(std::string_view text) {
  const size_t valid = utf8_valid_prefix(text);
  if (valid != text.size()) {
    return error(Code::kInvalidArgument, "stop string is not UTF-8 at byte %zu of %zu", valid,
                 text.size());
  }
  stop_strings.emplace_back(text);
  return {};
}

Status SamplingParams::check_vocab(int32_t vocab_size) const {
  for (const int32_t token : stop_tokens) {
    if (token < 0 || token >= vocab_size) {
      return error(Code::kOutOfRange, "stop token %d outside vocabulary of %d", token, vocab_size);
    }
  }
  for (const LogitBias& entry : logit_bias) {
    if (entry.token < 0 || entry.token >= vocab_size) {
      return error(Code::kOutOfRange, "logit_bias token %d outside vocabulary of %d", entry.token,
                   vocab_size);
    }
  }
  return {};
}

}  // namespace gen::sampling

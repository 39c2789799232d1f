// SPDX-License-Identifier: Apache-2.0
// See params.h.
#include "sampling/params.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gen::sampling {

Status SamplingParams::set_logit_bias(int32_t token, float bias) {
  if (token < 0) {
    return error(Code::kInvalidArgument, "logit_bias token %d outside [0, %d]", token,
                 std::numeric_limits<int32_t>::max());
  }
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

Status SamplingParams::check_vocab(int32_t vocab_size) const {
  for (const LogitBias& entry : logit_bias) {
    if (entry.token < 0 || entry.token >= vocab_size) {
      return error(Code::kOutOfRange, "logit_bias token %d outside vocabulary of %d", entry.token,
                   vocab_size);
    }
  }
  return {};
}

}  // namespace gen::sampling

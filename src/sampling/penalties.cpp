// SPDX-License-Identifier: Apache-2.0
// Bias and repetition penalty. See penalties.h.
#include "sampling/penalties.h"

#include <algorithm>
#include <limits>

namespace gen::sampling {
namespace {

// Strong settings may leave the range of float, and +inf would later read as a fault of the model.
float to_float(double value) noexcept {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (value > kMax) return std::numeric_limits<float>::max();
  if (value < -kMax) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

void edit(std::span<float> logits, int32_t token, float value, std::vector<LogitEdit>* edits) {
  float& logit = logits[static_cast<size_t>(token)];
  edits->push_back({token, logit});
  logit = value;
}

bool inside(int32_t token, std::span<const float> logits) noexcept {
  return token >= 0 && static_cast<size_t>(token) < logits.size();
}

}  // namespace

void apply_bias(std::span<const LogitBias> bias, std::span<float> logits,
                std::vector<LogitEdit>* edits) {
  for (const LogitBias& entry : bias) {
    if (!inside(entry.token, logits)) continue;
    const double logit = static_cast<double>(logits[static_cast<size_t>(entry.token)]);
    edit(logits, entry.token, to_float(logit + static_cast<double>(entry.bias)), edits);
  }
}

void apply_repetition_penalty(std::span<const int32_t> generated, double penalty, int32_t window,
                              std::span<float> logits, std::vector<uint32_t>* seen, uint32_t* epoch,
                              std::vector<LogitEdit>* edits) {
  if (window > 0 && static_cast<size_t>(window) < generated.size()) {
    generated = generated.last(static_cast<size_t>(window));
  }
  if (seen->size() < logits.size()) seen->resize(logits.size(), 0);
  if (++*epoch == 0) {  // after 2^32 steps the old marks could be taken for new ones
    std::fill(seen->begin(), seen->end(), 0);
    *epoch = 1;
  }
  for (const int32_t token : generated) {
    if (!inside(token, logits)) continue;
    uint32_t& mark = (*seen)[static_cast<size_t>(token)];
    if (mark == *epoch) continue;
    mark = *epoch;
    const double logit = static_cast<double>(logits[static_cast<size_t>(token)]);
    edit(logits, token, to_float(logit > 0.0 ? logit / penalty : logit * penalty), edits);
  }
}

}  // namespace gen::sampling

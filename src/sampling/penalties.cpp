// SPDX-License-Identifier: Apache-2.0
// Bias and penalties. See penalties.h.
#include "sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gen::sampling {
namespace {

// Strong settings may exceed the range of float, and +inf would later look like a fault of the
// model.
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

double repeated(double logit, double penalty) noexcept {
  return logit > 0.0 ? logit / penalty : logit * penalty;
}

double flat(double penalty) noexcept {
  return std::abs(penalty) <= kMaxFlatPenalty ? penalty : 0.0;
}

}  // namespace

void apply_bias(std::span<const LogitBias> bias, std::span<float> logits,
                std::vector<LogitEdit>* edits) {
  for (const LogitBias& entry : bias) {
    if (entry.token < 0 || static_cast<size_t>(entry.token) >= logits.size()) continue;
    const double logit = static_cast<double>(logits[static_cast<size_t>(entry.token)]);
    edit(logits, entry.token, to_float(logit + static_cast<double>(entry.bias)), edits);
  }
}

void subtract(std::span<const TokenPenalty> penalties, std::span<float> logits,
              std::vector<LogitEdit>* edits) {
  for (const TokenPenalty& entry : penalties) {
    if (entry.token < 0 || static_cast<size_t>(entry.token) >= logits.size()) continue;
    const double logit = static_cast<double>(logits[static_cast<size_t>(entry.token)]);
    edit(logits, entry.token, to_float(logit - entry.amount), edits);
  }
}

std::span<const TokenCount> TokenCounter::count(std::span<const int32_t> tokens, int32_t window,
                                                size_t vocab) {
  if (window > 0 && static_cast<size_t>(window) < tokens.size()) {
    tokens = tokens.last(static_cast<size_t>(window));
  }
  if (marks_.size() < vocab) marks_.resize(vocab, 0);
  for (const TokenCount& entry : counts_) marks_[static_cast<size_t>(entry.token)] = 0;
  counts_.clear();
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= vocab) continue;
    uint32_t& mark = marks_[static_cast<size_t>(token)];
    if (mark == 0) {
      counts_.push_back({token, 0});
      mark = static_cast<uint32_t>(counts_.size());
    }
    ++counts_[mark - 1].count;
  }
  return counts_;
}

Penalties Penalties::of(const SamplingParams& params) noexcept {
  Penalties penalties;
  const double repetition = params.repetition_penalty;
  if (repetition > 0.0 && std::isfinite(repetition)) penalties.repetition = repetition;
  penalties.compound = params.compound_penalty;
  penalties.frequency = flat(params.frequency_penalty);
  penalties.presence = flat(params.presence_penalty);
  return penalties;
}

float penalised(float logit, int32_t count, const Penalties& penalties) noexcept {
  constexpr float kOut = -std::numeric_limits<float>::infinity();
  if (logit == kOut) return kOut;  // an impossible token stays impossible
  double value = static_cast<double>(logit);
  if (penalties.repetition != 1.0) {
    const int32_t times = penalties.compound ? count : 1;
    for (int32_t i = 0; i < times; ++i) value = repeated(value, penalties.repetition);
  }
  return to_float(value - (count * penalties.frequency + penalties.presence));
}

void apply_penalties(std::span<const TokenCount> counts, const Penalties& penalties,
                     std::span<float> logits, std::vector<LogitEdit>* edits) {
  for (const TokenCount& entry : counts) {
    const float logit = logits[static_cast<size_t>(entry.token)];
    edit(logits, entry.token, penalised(logit, entry.count, penalties), edits);
  }
}

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// Stages that change single logits in place: the bias and the penalties on earlier tokens. Their
// changes are recorded, because log-probabilities are those of the raw logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/params.h"

namespace gen::sampling {

/// A changed logit and its previous value; the first entry of a token is the raw one.
struct LogitEdit {
  int32_t token = 0;
  float before = 0.0F;
};

/// logits[token] += bias. Tokens outside the row are ignored.
void apply_bias(std::span<const LogitBias> bias, std::span<float> logits,
                std::vector<LogitEdit>* edits);

struct TokenCount {
  int32_t token = 0;
  int32_t count = 0;
};

/// The amount that a stage subtracts from the logit of a token.
struct TokenPenalty {
  int32_t token = 0;
  double amount = 0.0;
};

/// logits[token] -= amount. Tokens outside the row are ignored.
void subtract(std::span<const TokenPenalty> penalties, std::span<float> logits,
              std::vector<LogitEdit>* edits);

/// Counts tokens in each step, without clearing V counters each time.
/// Threads: one at a time.
class TokenCounter {
 public:
  /// Each distinct token of the last `window` (0: all) of `tokens` and its number of occurrences,
  /// in the order of first occurrence; tokens outside [0, vocab) are left out. Valid until the next
  /// call.
  std::span<const TokenCount> count(std::span<const int32_t> tokens, int32_t window, size_t vocab);

 private:
  std::vector<uint32_t> marks_;  // [V] 0, or the token's index in counts_ plus 1
  std::vector<TokenCount> counts_;
};

/// The penalties on an earlier token; see penalised().
struct Penalties {
  double repetition = 1.0;
  bool compound = false;  // repetition once per occurrence, not once per token
  double frequency = 0.0;
  double presence = 0.0;

  /// From the parameters; values out of range count as off.
  static Penalties of(const SamplingParams& params) noexcept;
  [[nodiscard]] bool any() const noexcept {
    return repetition != 1.0 || frequency != 0.0 || presence != 0.0;
  }
};

/// The logit of a token that occurred `count` times: first the repetition penalty (a positive logit
/// is divided by it, any other multiplied), then minus count * frequency + presence. Rounded to
/// float once, at the end, and never +inf.
float penalised(float logit, int32_t count, const Penalties& penalties) noexcept;

/// logits[token] = penalised(...) for all of `counts`.
void apply_penalties(std::span<const TokenCount> counts, const Penalties& penalties,
                     std::span<float> logits, std::vector<LogitEdit>* edits);

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The stage DRY ("don't repeat yourself"): if the end of a text occurred before, the token that
// followed it there is penalised, the more the longer the repetition is. It works on tokens only;
// the caller supplies the distance of the last breaker and the tokens to spare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/params.h"
#include "sampling/penalties.h"

namespace gen::sampling {

/// Largest penalty. The probability is 0 long before; the remaining range preserves differences
/// between logits, which matter if nothing else is possible.
constexpr double kMaxDryPenalty = 1e6;

/// The penalty on a token that would continue a repetition of `length` >= allowed tokens:
/// multiplier * base^(length - allowed), at most kMaxDryPenalty.
double dry_penalty(size_t length, size_t allowed, double multiplier, double base) noexcept;

/// Scratch of the stage. Threads: one at a time.
class Dry {
 public:
  /// Whether the parameters turn it on; values out of range count as off.
  static bool is_on(const SamplingParams& params) noexcept;

  /// The tokens of [0, vocab) that would continue a repetition, with their penalties, in a
  /// deterministic but unspecified order. A repetition is a run at the end of `text`, of at most
  /// `unbroken` tokens, that also occurs elsewhere in the last dry_window tokens; the two may
  /// overlap. The longest counts. Linear in the window. Requires that the parameters turn it on.
  std::span<TokenPenalty> find(std::span<const int32_t> text, size_t unbroken,
                               const SamplingParams& params, size_t vocab);

 private:
  void measure(std::span<const int32_t> text, size_t most);

  std::vector<int32_t> lengths_;  // of the run that ends that many tokens before the end
  std::vector<uint32_t> marks_;   // [V] 0, or the token's index in found_ plus 1
  std::vector<TokenPenalty> found_;
};

}  // namespace gen::sampling

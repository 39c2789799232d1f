// SPDX-License-Identifier: Apache-2.0
// The stage DRY ("don't repeat yourself"): where the end of a text is there before, the token that
// came next then is penalised, the more the longer the repetition has grown. It knows tokens only;
// who knows texts says how far back the last breaker is, and what to spare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/params.h"
#include "sampling/penalties.h"

namespace gen::sampling {

/// Largest penalty. The probability is 0 long before, and differences of logits, which count where
/// nothing else is possible, are still there behind it.
constexpr double kMaxDryPenalty = 1e6;

/// What a repetition of `length` >= allowed tokens costs the token that would go on with it:
/// multiplier * base^(length - allowed), at most kMaxDryPenalty.
double dry_penalty(size_t length, size_t allowed, double multiplier, double base) noexcept;

/// Scratch of the stage. Threads: one at a time.
class Dry {
 public:
  /// Whether the parameters ask for it; what is out of range reads as off.
  static bool is_on(const SamplingParams& params) noexcept;

  /// The tokens of [0, vocab) that would go on with a repetition and what that costs them, in no
  /// particular order but the same everywhere. A repetition is a run at the end of `text`, of at
  /// most `unbroken` tokens, that is somewhere else in the last dry_window tokens, too; both may
  /// overlap. The longest counts. Linear in the window. For parameters that have it on.
  std::span<TokenPenalty> find(std::span<const int32_t> text, size_t unbroken,
                               const SamplingParams& params, size_t vocab);

 private:
  void measure(std::span<const int32_t> text, size_t most);

  std::vector<int32_t> lengths_;  // of the run that ends so many tokens before the end
  std::vector<uint32_t> marks_;   // [V] 0, or where found_ has the token, plus 1
  std::vector<TokenPenalty> found_;
};

}  // namespace gen::sampling

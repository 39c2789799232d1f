// SPDX-License-Identifier: Apache-2.0
// The stage mirostat 2 (Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding
// algorithm that directly controls perplexity", 2021): tokens with too much surprise are removed,
// and the threshold follows the drawn tokens, so that the surprise of a text stays near a target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace gen::sampling {

/// The threshold of one text. Surprises are in bits, -log2(share of all weight). Threads: one at a
/// time.
class Mirostat {
 public:
  /// The threshold starts at twice the target.
  explicit Mirostat(const SamplingParams& params) noexcept;

  /// Whether the parameters turn it on; values out of range count as off.
  [[nodiscard]] bool is_on() const noexcept { return tau_ > 0.0; }
  [[nodiscard]] double bar() const noexcept { return bar_; }

  /// Removes candidates whose surprise exceeds the threshold and those without weight, but never
  /// the most probable one. Keeps their order. At least one must have weight.
  void cut(std::vector<Candidate>* candidates) const;
  /// Moves the threshold by the surprise of the token that was drawn from these.
  void drawn(int32_t token, std::span<const Candidate> candidates) noexcept;

 private:
  double tau_ = 0.0;
  double eta_ = 0.0;
  double bar_ = 0.0;
};

}  // namespace gen::sampling

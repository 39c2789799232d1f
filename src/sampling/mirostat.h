// SPDX-License-Identifier: Apache-2.0
// The stage mirostat 2 (Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding
// algorithm that directly controls perplexity", 2021): tokens of too much surprise are cut, and the
// bar follows what was drawn, so that the surprise of a text stays near a wanted one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/candidates.h"
#include "sampling/params.h"

namespace gen::sampling {

/// Where the bar stands in one text. Surprises are in bits, -log2(share of all weight).
/// Threads: one at a time.
class Mirostat {
 public:
  /// The bar begins at twice the wanted surprise.
  explicit Mirostat(const SamplingParams& params) noexcept;

  /// Whether the parameters ask for it; what is out of range reads as off.
  [[nodiscard]] bool is_on() const noexcept { return tau_ > 0.0; }
  [[nodiscard]] double bar() const noexcept { return bar_; }

  /// Takes out candidates of more surprise than the bar and those of no weight, but never the most
  /// probable one. Keeps their order. There is one of weight, at least.
  void cut(std::vector<Candidate>* candidates) const;
  /// Moves the bar by the surprise of the token that was drawn from these.
  void drawn(int32_t token, std::span<const Candidate> candidates) noexcept;

 private:
  double tau_ = 0.0;
  double eta_ = 0.0;
  double bar_ = 0.0;
};

}  // namespace gen::sampling

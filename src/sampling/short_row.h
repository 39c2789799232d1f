// SPDX-License-Identifier: Apache-2.0
// ShortRow: the largest logits of a row in place of the row, for engines whose memory the host
// cannot look into. A draw with top-k looks at nothing else, so a few hundred bytes cross the bus
// in place of a float for each token of the vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen::sampling {

/// Logits that a short row holds.
inline constexpr int32_t kShortRow = 128;

/// Largest first, of equal ones the lower token first. Every token that is not in it has a logit no
/// larger than the last, and of equal ones a higher id; none is NaN or +inf.
struct ShortRow {
  std::span<const int32_t> tokens;
  std::span<const float> logits;
};

}  // namespace gen::sampling

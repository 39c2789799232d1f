// SPDX-License-Identifier: Apache-2.0
// ShortRow: the largest logits of a row in place of the row, for engines whose memory the host
// cannot look into. Most choices look at nothing else, so a few hundred bytes cross the bus in
// place of a float for each token of the vocabulary. Tokens whose logits a stage changes are set
// aside: they come each with its logit, and the largest are those of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen::sampling {

/// Logits that a short row holds.
inline constexpr int32_t kShortRow = 128;

/// Largest first, of equal ones the lower token first. Every token that is not in it, nor aside,
/// has a logit no larger than the last, and of equal ones a higher id, or is not allowed by the
/// mask; those that are not allowed count as -inf. None is NaN or +inf.
struct ShortRow {
  std::span<const int32_t> tokens;
  std::span<const float> logits;
  std::span<const int32_t> aside = {};  // in any order, one may be there twice
  std::span<const float> aside_logits = {};
  /// Where asked for: what all tokens that are allowed weigh, those aside left out, part by part
  /// (base/mass_parts.h).
  std::span<const double> mass = {};
  /// Where asked for: the logits of the part in which the draw lies, -inf where there are no
  /// tokens.
  std::span<const float> part = {};
};

/// What it must have to be enough for nearly every row.
struct ShortRowNeed {
  int32_t k = 0;             // logits; 0: nothing is, but the whole row
  double temperature = 0.0;  // of the mass; 0: none
  bool part = false;         // the one in which draw_place() lies
};

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// ShortRow: the largest logits of a row instead of the whole row, for engines whose memory the host
// cannot access. Most choices need no more, so a few hundred bytes cross the bus instead of a float
// per token of the vocabulary. Tokens whose logits a stage changes are set aside: they come
// separately with their logits, and the largest are those of the other tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen::sampling {

/// Logits that a short row holds.
inline constexpr int32_t kShortRow = 128;

/// Largest first, of equal ones the lower token first. Every token that is neither in it nor aside
/// has a logit no larger than the last (of equal ones, a higher id), or is forbidden by the mask;
/// forbidden tokens count as -inf. None is NaN or +inf.
struct ShortRow {
  std::span<const int32_t> tokens;
  std::span<const float> logits;
  std::span<const int32_t> aside = {};  // in any order, one may occur twice
  std::span<const float> aside_logits = {};
  /// If asked for: the weight of all allowed tokens except those aside, by slice
  /// (base/mass_slices.h).
  std::span<const double> mass = {};
  /// If asked for: the logits of the slice that contains the draw, -inf beyond its tokens.
  std::span<const float> slice = {};
};

/// The contents that suffice for nearly every row.
struct ShortRowNeed {
  int32_t k = 0;             // number of logits; 0: only the whole row suffices
  double temperature = 0.0;  // of the mass; 0: none
  bool slice = false;        // the one that contains draw_place()
};

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The last stage: one token by weight.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace gen::sampling {

/// The first candidate whose cumulated share exceeds `uniform` (in [0, 1)), in the order given;
/// the last one of non-zero weight if rounding leaves none. At least one weight is not zero.
int32_t draw(std::span<const Candidate> candidates, double uniform) noexcept;

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The last stage: draws one token by weight.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace gen::sampling {

/// The first candidate whose cumulated share exceeds `uniform` (in [0, 1)), in the given order,
/// which is ascending by token: it is searched in the first slice (base/mass_slices.h) whose sum
/// exceeds it. The last one of non-zero weight if rounding leaves none. At least one weight must
/// not be zero.
int32_t draw(std::span<const Candidate> candidates, double uniform) noexcept;

/// The same within one slice, where `before` is the weight of earlier slices and `target` the mass
/// to exceed.
int32_t draw_in_slice(std::span<const Candidate> candidates, double before, double target) noexcept;

}  // namespace gen::sampling

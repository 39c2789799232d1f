// SPDX-License-Identifier: Apache-2.0
// The last stage: one token by weight.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace gen::sampling {

/// The first candidate whose cumulated share exceeds `uniform` (in [0, 1)), in the order given,
/// which ascends by token: of the first part (base/mass_parts.h) whose sum does. The last one of
/// non-zero weight if rounding leaves none. At least one weight is not zero.
int32_t draw(std::span<const Candidate> candidates, double uniform) noexcept;

/// The same in one part, where those of the parts before it weigh `before` and `target` is the mass
/// to exceed.
int32_t draw_in_part(std::span<const Candidate> candidates, double before, double target) noexcept;

}  // namespace gen::sampling

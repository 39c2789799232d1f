// SPDX-License-Identifier: Apache-2.0
// The alternative last stage: draws one token by weight, with independent noise per token.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace gen::sampling {

/// The candidate with the largest log(weight) + noise, where the noise has Gumbel's distribution
/// and depends only on seed, step and token (Gumbel-max: each token is drawn with the same
/// probability as by draw()). Draws with the same seed and step from similar distributions
/// therefore mostly give the same token, and removing tokens that would not have been drawn changes
/// nothing. At least one weight must not be zero. Cost: a block of random numbers and a logarithm
/// per candidate.
int32_t draw_gumbel(std::span<const Candidate> candidates, uint64_t seed, uint64_t step) noexcept;

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The other last stage: one token by weight, with noise of its own for each token.
#pragma once

#include <cstdint>
#include <span>

#include "sampling/candidates.h"

namespace gen::sampling {

/// The candidate of the largest log(weight) + noise, where the noise has Gumbel's distribution and
/// depends on seed, step and token alone (Gumbel-max: each token is drawn with the probability that
/// draw() gives it). So who draws with the same seed and step from a similar distribution mostly
/// draws the same token, and leaving out tokens that would not have been drawn changes nothing. At
/// least one weight is not zero. Cost: a block of random numbers and a logarithm for each
/// candidate.
int32_t draw_gumbel(std::span<const Candidate> candidates, uint64_t seed, uint64_t step) noexcept;

}  // namespace gen::sampling

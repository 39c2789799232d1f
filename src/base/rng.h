// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A draw is a pure function of (seed, stream, counter), so
// a request's draws do not depend on scheduling, batching or speculation, and are equal everywhere.
#pragma once

#include <array>
#include <cstdint>

namespace gen {

/// One block of four words.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                   std::array<uint32_t, 2> key) noexcept;

/// Uniform double in [0, 1) with 53 random bits, from (seed, stream, counter).
double uniform_double(uint64_t seed, uint64_t stream, uint64_t counter) noexcept;

}  // namespace gen

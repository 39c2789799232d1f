// SPDX-License-Identifier: Apache-2.0
// The order in which the host and engines add up the weights of a vocabulary's tokens, so that
// their sums have the same bits: first each lane of a slice of the vocabulary by token, then the
// lanes of a slice by halves, then the slices one after another. Devices add slices and lanes in
// parallel, hosts lanes. For device code, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen {

inline constexpr int32_t kMassSlice = 512;  // tokens
inline constexpr int32_t kMassLanes = 16;   // token t is in lane t % kMassLanes

[[nodiscard]] constexpr size_t mass_slices(size_t vocab) noexcept {
  return (vocab + kMassSlice - 1) / kMassSlice;
}

}  // namespace gen

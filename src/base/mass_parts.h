// SPDX-License-Identifier: Apache-2.0
// The order in which the host and engines add up what tokens of a vocabulary weigh, so that their
// sums have the same bits: by parts of the vocabulary, in a part by lanes, in a lane by token; then
// the lanes of a part by halves, and the parts one after another. Devices add parts and lanes at
// once, hosts lanes. For device code, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen {

inline constexpr int32_t kMassPart = 512;  // tokens
inline constexpr int32_t kMassLanes = 16;  // token t is in lane t % kMassLanes

[[nodiscard]] constexpr size_t mass_parts(size_t vocab) noexcept {
  return (vocab + kMassPart - 1) / kMassPart;
}

}  // namespace gen

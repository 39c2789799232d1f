// SPDX-License-Identifier: Apache-2.0
// Mixing words into a hash, for the tables of this room.
#pragma once

#include <cstdint>

namespace gen::grammar {

inline uint64_t mix(uint64_t hash, uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29);
}

}  // namespace gen::grammar

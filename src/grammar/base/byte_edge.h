// SPDX-License-Identifier: Apache-2.0
// A transition on a range of bytes.
#pragma once

#include <cstdint>

namespace gen::grammar {

struct ByteEdge {
  uint8_t low;
  uint8_t high;
  uint32_t target;  // a state
  bool operator==(const ByteEdge&) const = default;
};

}  // namespace gen::grammar

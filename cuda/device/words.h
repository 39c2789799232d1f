// SPDX-License-Identifier: Apache-2.0
// The types of vector loads and stores.
#pragma once

#include <cstdint>

namespace gen::cuda::device {

struct alignas(8) UInt2 {
  uint32_t x, y;
};
struct alignas(16) UInt4 {
  uint32_t x, y, z, w;
};

}  // namespace gen::cuda::device

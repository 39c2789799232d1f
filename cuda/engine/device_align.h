// SPDX-License-Identifier: Apache-2.0
// Where pieces of one allocation of device memory begin.
#pragma once

#include <cstddef>

namespace gen::cuda {

/// Bytes; what an allocation of the CUDA runtime begins at, too.
constexpr size_t kDeviceAlign = 256;

constexpr size_t device_aligned(size_t bytes) noexcept {
  return (bytes + kDeviceAlign - 1) / kDeviceAlign * kDeviceAlign;
}

}  // namespace gen::cuda

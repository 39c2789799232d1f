// SPDX-License-Identifier: Apache-2.0
// The alignment of pieces within one allocation of device memory.
#pragma once

#include <cstddef>

namespace gen::cuda {

/// In bytes; equal to the alignment of allocations of the CUDA runtime.
constexpr size_t kDeviceAlign = 256;

constexpr size_t device_aligned(size_t bytes) noexcept {
  return (bytes + kDeviceAlign - 1) / kDeviceAlign * kDeviceAlign;
}

}  // namespace gen::cuda

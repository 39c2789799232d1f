// SPDX-License-Identifier: Apache-2.0
// A kernel that only reads: the bandwidth with which decoding is compared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device/runtime.h"

namespace gen::test {

/// Adds the 32-bit words of `bytes` bytes, a multiple of 16, to *sum, which is on the device, with
/// `blocks` blocks.
cuda::device::Error launch_read_rate(const void* from, size_t bytes, uint32_t* sum, int blocks,
                                     cuda::device::Stream stream);

}  // namespace gen::test

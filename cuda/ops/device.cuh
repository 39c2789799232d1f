// SPDX-License-Identifier: Apache-2.0
// Short names for the parts of the device layer that kernels use. Blocks have one dimension and
// whole warps.
#pragma once

#include <cstdint>

#include "cuda/device/math.cuh"
#include "cuda/device/qualifiers.cuh"
#include "cuda/device/shared.cuh"
#include "cuda/device/thread.cuh"
#include "cuda/device/warp.cuh"
#include "engine/engine_ptr.h"

namespace gen::cuda {

using device::dynamic_shared;
using device::f16_to_f32;
using device::f32_to_f16;
using device::float_bits;
using device::float_from_bits;
using device::floor_of;
using device::multiply_add;
using device::Shared;
using device::shuffle;
using device::shuffle_xor;
using device::square_root;
using device::sync_threads;
using device::sync_warp;

GEN_DEVICE int32_t thread_x() { return static_cast<int32_t>(device::thread_index().x); }
GEN_DEVICE int32_t block_threads() { return static_cast<int32_t>(device::block_size().x); }
GEN_DEVICE int32_t block_x() { return static_cast<int32_t>(device::block_index().x); }
GEN_DEVICE int32_t block_y() { return static_cast<int32_t>(device::block_index().y); }
GEN_DEVICE int32_t block_z() { return static_cast<int32_t>(device::block_index().z); }
GEN_DEVICE int32_t lane_of_warp() { return static_cast<int32_t>(device::lane_id()); }
GEN_DEVICE int32_t warp_of_block() { return static_cast<int32_t>(device::warp_id()); }

/// Must be called, by at least one thread of each block, before memory of other kernels is read or
/// written: the kernel may have begun before its predecessors ended, and its successor may begin
/// from here on. Weights may be read before, since no kernel writes them.
GEN_DEVICE void after_predecessor() {
  device::let_successor_start();
  device::wait_for_predecessor();
}

/// The pointer for an address in device memory.
template <typename T>
GEN_DEVICE T* at(engine::EnginePtr<T> address) {
  return reinterpret_cast<T*>(address.address());
}

}  // namespace gen::cuda

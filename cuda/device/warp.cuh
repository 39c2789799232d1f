// SPDX-License-Identifier: Apache-2.0
// Operations of a warp. All lanes of `mask` that have not exited call the same operation with the
// same mask, from the same place of the source; a lane's value may be read only if it takes part.
// T has 4 or 8 bytes.
#pragma once

#include <cstdint>

#include "cuda/device/qualifiers.cuh"

#ifdef GEN_CUDA_EMULATED
#include "cuda/emulator/warp.h"
#else

namespace gen::cuda::device {

GEN_DEVICE void sync_warp(unsigned mask = kFullMask) { __syncwarp(mask); }

/// The value of lane + delta; the lane's own beyond the last lane.
template <typename T>
GEN_DEVICE T shuffle_down(T value, unsigned delta, unsigned mask = kFullMask) {
  return __shfl_down_sync(mask, value, delta);
}
/// The value of lane - delta; the lane's own before the first lane.
template <typename T>
GEN_DEVICE T shuffle_up(T value, unsigned delta, unsigned mask = kFullMask) {
  return __shfl_up_sync(mask, value, delta);
}
template <typename T>
GEN_DEVICE T shuffle_xor(T value, unsigned lanes, unsigned mask = kFullMask) {
  return __shfl_xor_sync(mask, value, static_cast<int>(lanes));
}
/// The value of `lane`, 0 … 31.
template <typename T>
GEN_DEVICE T shuffle(T value, unsigned lane, unsigned mask = kFullMask) {
  return __shfl_sync(mask, value, static_cast<int>(lane));
}

/// A bit mask of the lanes whose condition holds.
GEN_DEVICE unsigned ballot(bool condition, unsigned mask = kFullMask) {
  return __ballot_sync(mask, condition);
}
GEN_DEVICE bool any(bool condition, unsigned mask = kFullMask) {
  return __any_sync(mask, condition) != 0;
}
GEN_DEVICE bool all(bool condition, unsigned mask = kFullMask) {
  return __all_sync(mask, condition) != 0;
}

}  // namespace gen::cuda::device
#endif

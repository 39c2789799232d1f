// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each.
#pragma once

#include <cstdint>

#include "cuda/device/runtime.h"

namespace gen::test {

enum class Mistake {
  kNoBarrier,             // reads what another thread writes to shared memory
  kNoBarrierBeforeReuse,  // writes what another thread still reads
  kNoBarrierInWarp,
  kUninitialised,
  kSharedBounds,
  kDynamicBounds,
  kGlobalBounds,
  kJustBeyond,  // writes the bytes that follow an allocation
  kNoMemory,
  kBarrierByHalf,
  kBarrierAtTwoPlaces,
  kBarrierAfterExit,
  kMaskWithoutSelf,
  kTwoMasks,
  kTwoShuffles,
  kShuffleFromExited,
  kBarrierInsteadOfShuffle,
  kNoCopyWait,
  kCopyWaitTooShort,
  kNoBarrierAfterCopyWait,
  kMisalignedLoad,
  kMisalignedShared,
  kPlainGridBarrier,
  kSpinsForEver,
  kHostMemory,
};

/// `data` has 100 floats; 64 threads run. kNoMemory and kHostMemory read at `host`.
cuda::device::Error make_mistake(Mistake what, float* data, const float* host,
                                 cuda::device::Stream stream);

}  // namespace gen::test

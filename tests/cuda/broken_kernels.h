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
  kUnwrittenCopy,    // to shared memory, of what nobody has written, and reads it there
  kUnwrittenVector,  // the same of a vector
  kUnwrittenCount,   // adds to what nobody has set
};

/// `data` has 100 floats; 64 threads run. kNoMemory and kHostMemory read at `host`, and so do the
/// last three, of device memory: 64 floats.
cuda::device::Error make_mistake(Mistake what, float* data, const float* host,
                                 cuda::device::Stream stream);

}  // namespace gen::test

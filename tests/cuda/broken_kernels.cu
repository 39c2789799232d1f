// SPDX-License-Identifier: Apache-2.0
#include "broken_kernels.h"

#include "cuda/device/async_copy.cuh"
#include "cuda/device/atomic.cuh"
#include "cuda/device/grid.cuh"
#include "cuda/device/launch.h"
#include "cuda/device/memory.cuh"
#include "cuda/device/shared.cuh"
#include "cuda/device/thread.cuh"
#include "cuda/device/warp.cuh"

namespace gen::test {
namespace {

using namespace cuda::device;

GEN_DEVICE void break_shared(Mistake what, float* data) {
  GEN_SHARED(float, tile, 64);
  const unsigned t = thread_index().x;
  if (what == Mistake::kUninitialised) {
    if (t != 3) tile[t] = 1.0f;
    sync_threads();
    data[t] = tile[t];
  } else if (what == Mistake::kSharedBounds) {
    tile[t + 1] = 1.0f;
  } else if (what == Mistake::kDynamicBounds) {
    data[t] = dynamic_shared<float>(0, 65)[t];
  } else if (what == Mistake::kMisalignedShared) {
    tile[t] = 0.0f;
    sync_threads();
    data[t] = static_cast<float>(static_cast<UInt4>(tile.subspan(2, 8).as<UInt4>()[0]).x);
  } else if (what == Mistake::kNoBarrierInWarp) {
    if (t < 32) {
      tile[t] = 1.0f;
      data[t] = tile[t ^ 1];
    }
  } else {
    tile[t] = 1.0f;
    if (what == Mistake::kNoBarrierBeforeReuse) sync_threads();
    data[t] = tile[63 - t];
    if (what == Mistake::kNoBarrierBeforeReuse) tile[t] = 2.0f;
  }
}

GEN_DEVICE void break_copies(Mistake what, float* data) {
  GEN_SHARED(float, tile, 256);
  const unsigned t = thread_index().x;
  if (t < 16) copy_async16(tile, t * 4, data + t * 4);
  commit_copies();
  if (what == Mistake::kCopyWaitTooShort) wait_copies<1>();
  if (what == Mistake::kNoBarrierAfterCopyWait) wait_copies<0>();
  if (what != Mistake::kNoBarrierAfterCopyWait) sync_threads();
  data[t] = tile[63 - t] + 1.0f;
}

GEN_DEVICE void break_warp(Mistake what, float* data) {
  const unsigned t = thread_index().x;
  float value = static_cast<float>(t);
  if (what == Mistake::kMaskWithoutSelf) {
    value = shuffle_xor(value, 1, 0xFFFFFFFEu);
  } else if (what == Mistake::kTwoMasks) {
    value = shuffle_xor(value, 1, t % 32 < 16 ? 0x1FFFFu : kFullMask);
  } else if (what == Mistake::kTwoShuffles) {
    value = t % 2 == 0 ? shuffle_xor(value, 1) : shuffle_down(value, 1);
  } else if (what == Mistake::kShuffleFromExited) {
    if (t % 32 >= 20) return;
    value += shuffle_down(value, 16);
  } else {  // kBarrierInsteadOfShuffle
    if (t == 5) sync_threads();
    value = shuffle_xor(value, 1);
  }
  data[t] = value;
}

GEN_DEVICE void break_barriers(Mistake what) {
  const unsigned t = thread_index().x;
  if (what == Mistake::kBarrierByHalf) {
    if (t < 32) sync_threads();
    if (t >= 32) sync_warp();
  } else if (what == Mistake::kBarrierAtTwoPlaces) {
    if (t < 32) {
      sync_threads();
    } else {
      sync_threads();
    }
  } else {
    if (t == 7) return;
    sync_threads();
  }
}

/// Thread 3 has not written what is read.
GEN_DEVICE void break_order(Mistake what, float* data, float* fresh) {
  GEN_SHARED(float, tile, 64);
  const unsigned t = thread_index().x;
  if (t != 3) fresh[t] = 1.0f;
  sync_threads();
  if (what == Mistake::kUnwrittenCopy) {
    if (t < 16) copy_async16(tile, t * 4, fresh + t * 4);
    commit_copies();
    wait_copies<0>();
    sync_threads();
    data[t] = tile[t];
  } else if (what == Mistake::kUnwrittenVector) {
    if (t < 16) store16(data + t * 4, load16(fresh + t * 4));
  } else {
    if (t == 3) atomic_add(reinterpret_cast<uint32_t*>(fresh) + t, 1U);
  }
}

GEN_KERNEL mistake_kernel(Mistake what, float* data, const float* host) {
  const unsigned t = thread_index().x;
  switch (what) {
    case Mistake::kNoBarrier:
    case Mistake::kNoBarrierBeforeReuse:
    case Mistake::kNoBarrierInWarp:
    case Mistake::kUninitialised:
    case Mistake::kSharedBounds:
    case Mistake::kDynamicBounds:
    case Mistake::kMisalignedShared:
      break_shared(what, data);
      break;
    case Mistake::kNoCopyWait:
    case Mistake::kCopyWaitTooShort:
    case Mistake::kNoBarrierAfterCopyWait:
      break_copies(what, data);
      break;
    case Mistake::kMaskWithoutSelf:
    case Mistake::kTwoMasks:
    case Mistake::kTwoShuffles:
    case Mistake::kShuffleFromExited:
    case Mistake::kBarrierInsteadOfShuffle:
      break_warp(what, data);
      break;
    case Mistake::kBarrierByHalf:
    case Mistake::kBarrierAtTwoPlaces:
    case Mistake::kBarrierAfterExit:
      break_barriers(what);
      break;
    case Mistake::kGlobalBounds:
      data[t + 4096] = 1.0f;
      break;
    case Mistake::kJustBeyond:
      if (t == 9) data[101] = 1.0f;
      break;
    case Mistake::kNoMemory:
      data[t] = *host;
      break;
    case Mistake::kMisalignedLoad:
      store16(data + 4, load16(data + 1));
      break;
    case Mistake::kPlainGridBarrier:
      sync_grid();
      break;
    case Mistake::kSpinsForEver:
      while (load_acquire(reinterpret_cast<const uint32_t*>(data)) != 1) spin_pause();
      break;
    case Mistake::kUnwrittenCopy:
    case Mistake::kUnwrittenVector:
    case Mistake::kUnwrittenCount:
      break_order(what, data, const_cast<float*>(host));
      break;
    case Mistake::kHostMemory:
      data[t] = static_cast<float>(load_constant16(host).x);
      break;
  }
}

}  // namespace

cuda::device::Error make_mistake(Mistake what, float* data, const float* host,
                                 cuda::device::Stream stream) {
  return launch(
      mistake_kernel,
      {.name = "mistake", .block = {64}, .dynamic_shared_bytes = 64 * 4, .stream = stream}, what,
      data, host);
}

}  // namespace gen::test

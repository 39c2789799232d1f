// SPDX-License-Identifier: Apache-2.0
// sum = the sum of n words of 32 bits, modulo 2^32
//   from  [n / 4] vectors of 16 bytes, aligned
// Work:   a block takes runs of 256 x 8 vectors, 128 bytes of each thread in flight.
#include "read_rate.h"

#include "cuda/device/atomic.cuh"
#include "cuda/device/launch.h"
#include "cuda/device/memory.cuh"
#include "cuda/device/thread.cuh"
#include "cuda/device/warp.cuh"

namespace gen::test {
namespace {

using namespace cuda::device;

constexpr unsigned kThreads = 256;
constexpr int64_t kInFlight = 8;
constexpr int64_t kVectorBytes = 16;

GEN_DEVICE uint32_t sum_of(const UInt4& v) { return v.x + v.y + v.z + v.w; }

GEN_KERNEL GEN_LAUNCH_BOUNDS(256)
    read_rate_kernel(const uint8_t* from, int64_t vectors, uint32_t* sum) {
  const int64_t run = kThreads * kInFlight;
  const int64_t whole = vectors / run * run;
  uint32_t mine = 0;
  for (int64_t begin = run * block_index().x; begin < whole; begin += run * grid_size().x) {
    const uint8_t* const at = from + (begin + thread_index().x) * kVectorBytes;
    UInt4 got[kInFlight];
    GEN_UNROLL
    for (int64_t i = 0; i < kInFlight; ++i) got[i] = load_once16(at + i * kThreads * kVectorBytes);
    GEN_UNROLL
    for (int64_t i = 0; i < kInFlight; ++i) mine += sum_of(got[i]);
  }
  if (block_index().x == 0) {
    for (int64_t i = whole + thread_index().x; i < vectors; i += kThreads) {
      mine += sum_of(load_once16(from + i * kVectorBytes));
    }
  }
  for (unsigned lanes = 16; lanes != 0; lanes /= 2) mine += shuffle_xor(mine, lanes);
  if (lane_id() == 0) atomic_add(sum, mine);
}

}  // namespace

cuda::device::Error launch_read_rate(const void* from, size_t bytes, uint32_t* sum, int blocks,
                                     cuda::device::Stream stream) {
  LaunchConfig config;
  config.name = "read_rate";
  config.grid = {static_cast<unsigned>(blocks), 1, 1};
  config.block = {kThreads, 1, 1};
  config.stream = stream;
  return launch(read_rate_kernel, config, static_cast<const uint8_t*>(from),
                static_cast<int64_t>(bytes) / kVectorBytes, sum);
}

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// The measured peaks of this machine: the figures that decode and prefill are compared with.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/allocator.h"
#include "base/cpu.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace gen::engine {

/// Read bandwidth of all threads of the pool in bytes per second, the best of several passes over a
/// buffer far larger than the CPU caches.
Result<double> measure_read_bandwidth(ThreadPool& pool, Allocator& allocator);

/// Timed passes over a buffer as large as the data of a workload, to be measured beside the
/// workload. The size matters, since the last-level cache may hold a share of the buffer.
class ReadPass {
 public:
  static Result<ReadPass> create(size_t bytes, ThreadPool& pool, Allocator& allocator);
  /// Seconds of one pass of all threads.
  [[nodiscard]] double run(ThreadPool& pool) const;

 private:
  explicit ReadPass(Buffer buffer) noexcept : buffer_(std::move(buffer)) {}
  Buffer buffer_;
};

/// Float32 operations per second (a fused multiply-add counts two) at `level`, all threads, from
/// registers.
double measure_fma_f32(ThreadPool& pool, CpuLevel level);

/// 8-bit multiply-and-add operations per second (each product and each sum counts one) at `level`.
double measure_dot_i8(ThreadPool& pool, CpuLevel level);

/// The same for pairs of bfloat16 summed as float32. Errors: kUnsupported below kAvx512Bf16.
Result<double> measure_dot_bf16(ThreadPool& pool, CpuLevel level);

/// "read_bandwidth", "fma_f32", "dot_i8" (at the level in use) or "dot_bf16" (what the machine has
/// counts, since the level in use may do without on purpose). kInvalidArgument for another name.
Result<double> measure_peak(std::string_view name, ThreadPool& pool);

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, measured: the figures that decode and prefill are judged
// against.
#pragma once

#include "base/allocator.h"
#include "base/cpu.h"
#include "base/status.h"
#include "base/thread_pool.h"

namespace gen::engine::cpu {

/// Bytes per second that all threads of the pool read from memory, the best of several passes over
/// a buffer far larger than the caches.
Result<double> measure_read_bandwidth(ThreadPool& pool, Allocator& allocator);

/// Float32 operations per second (a fused multiply-add counts two) at `level`, all threads, from
/// registers.
double measure_fma_f32(ThreadPool& pool, CpuLevel level);

/// 8-bit multiply-and-add operations per second (each product and each sum counts one) at `level`.
double measure_dot_i8(ThreadPool& pool, CpuLevel level);

/// The same for pairs of bfloat16 summed as float32. Errors: kUnsupported below kAvx512Bf16.
Result<double> measure_dot_bf16(ThreadPool& pool, CpuLevel level);

}  // namespace gen::engine::cpu

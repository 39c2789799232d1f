// SPDX-License-Identifier: Apache-2.0
// Options with which an engine is created, built in or from a backend library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/allocator.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "engine/memory.h"

namespace gen::engine {

struct GpuTable;  // memory/gpu_allocator.h

struct EngineOptions {
  std::shared_ptr<ThreadPool> pool;            // required by the CPU engine
  Allocator* allocator = &system_allocator();  // outlives the engine
  /// Replaces the allocator for Engine::memory(); outlives the engine. For tests: an address plus
  /// `distance` is where its bytes are.
  EngineMemory* memory = nullptr;
  std::ptrdiff_t distance = 0;
  CpuLevel cpu_level = CpuLevel::kScalar;  // kernels to use; see chosen_cpu_level()
  /// Allocates memory as usual but computes nothing: weights are not filled, results are undefined,
  /// downloads are zeros. For memory estimates. An engine of a device then needs a gpu_allocator;
  /// its device memory is never accessed.
  bool dry_run = false;
  bool repack = true;  // false: lasting weights are not copied, which is slower
  /// For engines of a device: its number, and the allocator of its memory, which must belong to the
  /// same device; null for the engine's own allocator.
  int32_t device = 0;
  std::shared_ptr<const GpuTable> gpu_allocator;
};

}  // namespace gen::engine

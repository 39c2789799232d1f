// SPDX-License-Identifier: Apache-2.0
// What an engine is made with, of this library or of a backend's.
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
  /// For what everybody addresses (Engine::memory()), in place of the allocator's; outlives the
  /// engine. Its bytes lie `distance` from the addresses that it gives, for tests.
  EngineMemory* memory = nullptr;
  std::ptrdiff_t distance = 0;
  CpuLevel cpu_level = CpuLevel::kScalar;  // kernels to use; see chosen_cpu_level()
  /// Takes all memory that work would take, and does none of it: weights are not filled, results
  /// are anything, what is downloaded is 0. For estimates. Engines that work on a device need a
  /// gpu_allocator then, whose device memory is never touched.
  bool dry_run = false;
  bool repack = true;  // false: lasting weights stay where they are, which is slower
  /// Of engines that work on a device: which one, and where its memory comes from; null for the
  /// device's own. It must be of that device.
  int32_t device = 0;
  std::shared_ptr<const GpuTable> gpu_allocator;
};

}  // namespace gen::engine

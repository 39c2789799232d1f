// SPDX-License-Identifier: Apache-2.0
// The table of engines by name. A new engine is one row in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/allocator.h"
#include "base/cpu.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/memory/counted_append.h"
#include "engine/memory/gpu_allocator.h"

namespace gen::engine {

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

struct EngineRow {
  const char* name;  // "cpu"
  /// Null when available, else a sentence saying why not.
  const char* (*why_not)() noexcept;
  Result<std::shared_ptr<Engine>> (*create)(const EngineOptions& options);
  /// 0 where it is not available.
  int32_t (*device_count)() noexcept;
  /// One line of JSON about a device in [0, device_count()). Null for the CPU, which base/cpu.h
  /// describes.
  Result<std::string> (*describe)(int32_t device);
  /// An allocator of that device's memory, only asked where it is available. Null for the CPU.
  Result<std::shared_ptr<const GpuTable>> (*gpu_allocator)(int32_t device);
  /// Enqueues it on a stream of a device in [0, device_count()), a cudaStream_t. Null for the CPU.
  Status (*append)(int32_t device, const CountedAppend& append, void* stream);
};

/// All engines this build knows, the default one first.
std::span<const EngineRow> engine_rows() noexcept;
/// kInvalidArgument for an unknown name.
Result<const EngineRow*> engine_row(std::string_view name);
/// kInvalidArgument for an unknown name, kUnsupported with the reason for an unavailable engine.
Result<std::shared_ptr<Engine>> create_engine(std::string_view name, const EngineOptions& options);

}  // namespace gen::engine

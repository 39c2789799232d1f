// SPDX-License-Identifier: Apache-2.0
// What a model and one session would take: a load and a session in a dry run
// (EngineOptions::dry_run) on memory that is reserved and counted but never touched, so the figures
// come from the code that will allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/allocator.h"
#include "base/status.h"
#include "engine/memory/gpu_allocator.h"
#include "generate/cache_choice.h"
#include "generate/loop/generator.h"

namespace gen::generate {

/// In bytes.
struct MemoryFigures {
  size_t weights = 0;
  size_t workspace = 0;
  size_t cache = 0;  // of a session with its context full
  size_t peak = 0;
};
struct MemoryEstimate {
  MemoryFigures host;    // pinned memory with it
  MemoryFigures device;  // 0 where none is used
  size_t mapped = 0;     // of the file, instead of copied
};

/// A model and the memory that its caches lie in.
struct DryModel {
  ModelInUse in_use;
  engine::EngineMemory* memory = nullptr;
};

/// Loads a model for a dry run, with all it needs in the memory given; a model on a device takes
/// the device's memory from the table.
using DryLoad =
    std::function<Result<DryModel>(const std::shared_ptr<Allocator>& memory,
                                   const std::shared_ptr<const engine::GpuTable>& device)>;

/// `options` need no allocator, and nobody hears of the run. Errors: those of loading and of
/// create_generator; kOutOfMemory for what no machine can address. `device` is the table's number.
Result<MemoryEstimate> estimate_memory(const DryLoad& load, int32_t device,
                                       const CacheChoice& choice, const GeneratorOptions& options);

}  // namespace gen::generate

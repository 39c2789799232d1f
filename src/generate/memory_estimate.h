// SPDX-License-Identifier: Apache-2.0
// Memory that a model and one session would take. It loads the model and fills a session in a dry
// run (EngineOptions::dry_run) on memory that is reserved and counted but never written, so the
// figures come from the code that will allocate.
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
  size_t cache = 0;      // of a session with a full context, with its drafter's
  size_t snapshots = 0;  // of its state, as many as its budget holds
  size_t peak = 0;
};
struct MemoryEstimate {
  MemoryFigures host;    // including pinned memory
  MemoryFigures device;  // 0 if no device is used
  size_t mapped = 0;     // bytes of the file that are mapped, not copied
  size_t stream = 0;     // bytes of weights read per token
};

/// A model and the memory for its caches.
struct DryModel {
  ModelInUse in_use;
  engine::EngineMemory* memory = nullptr;
  std::shared_ptr<Drafter> drafter = nullptr;  // of this model alone; null: none counts
};

/// Loads a model for a dry run into the given memory; a model on a device takes the device's memory
/// from the table.
using DryLoad =
    std::function<Result<DryModel>(const std::shared_ptr<Allocator>& memory,
                                   const std::shared_ptr<const engine::GpuTable>& device)>;

/// `options` need no allocator; metrics and tracers see nothing of the run. Errors: those of
/// loading and of create_generator; kOutOfMemory if the sizes exceed the address space. `device` is
/// the number of the device table.
Result<MemoryEstimate> estimate_memory(const DryLoad& load, int32_t device,
                                       const CacheChoice& choice, const GeneratorOptions& options);

}  // namespace gen::generate

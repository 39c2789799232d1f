// SPDX-License-Identifier: Apache-2.0
// What a model and one session would take: a load and a session in a dry run
// (EngineOptions::dry_run) on memory that is reserved and counted but never touched, so the figures
// come from the code that will allocate.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/allocator.h"
#include "base/status.h"
#include "generate/cache_choice.h"
#include "generate/generator.h"

namespace gen::generate {

/// In bytes.
struct MemoryEstimate {
  size_t weights = 0;
  size_t workspace = 0;
  size_t cache = 0;  // of a session with its context full
  size_t peak = 0;
  size_t mapped = 0;  // of the file, instead of copied
};

/// Loads a model for a dry run, with all it needs in the memory given.
using DryLoad = std::function<Result<ModelInUse>(const std::shared_ptr<Allocator>& memory)>;

/// `options` need no allocator, and nobody hears of the run. Errors: those of loading and of
/// create_generator; kOutOfMemory for what no machine can address.
Result<MemoryEstimate> estimate_memory(const DryLoad& load, const CacheChoice& choice,
                                       const GeneratorOptions& options);

}  // namespace gen::generate

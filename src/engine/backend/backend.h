// SPDX-License-Identifier: Apache-2.0
// The one C table through which an engine comes from outside of this library: linked in by tests,
// loaded on demand from a library of its own otherwise. What it makes are C++ objects of this
// build, so both sides compare their build ids first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/log.h"
#include "base/status.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "engine/memory/counted_append.h"
#include "engine/memory/gpu_allocator.h"

extern "C" {

struct gen_backend_v1 {
  uint32_t struct_size;
  const char* build_id;  // gen::engine::backend_build_id() of the build that made it
  const char* name;      // "cuda"
  /// Null when available, else a sentence saying why not, which lives as long as the table.
  const char* (*why_not)(void);
  /// Fills either the engine or the status.
  void (*create)(const gen::engine::EngineOptions* options,
                 std::shared_ptr<gen::engine::Engine>* engine, gen::Status* status);
  /// 0 where it is not available.
  int32_t (*device_count)(void);
  /// One line of JSON about a device in [0, device_count()), cut at the capacity; empty where it does
  /// not answer.
  void (*describe)(int32_t device, char* text, size_t capacity);
  /// Fills either an allocator of the device's memory or the status.
  void (*create_allocator)(int32_t device, std::shared_ptr<const gen::engine::GpuTable>* table,
                           gen::Status* status);
  /// Where lines that the backend logs go, of every level; called once, when a library is loaded.
  void (*set_log)(gen::LogSink sink);
  /// Enqueues it on a stream of a device in [0, device_count()), which is not null.
  void (*append)(int32_t device, const gen::engine::CountedAppend* append, void* stream,
                 gen::Status* status);
};

/// What a library with an engine exports, under the name kBackendFunction; the table lives as long
/// as the library is loaded.
using gen_backend_v1_get_fn = const gen_backend_v1* (*)(void);

}  // extern "C"

namespace gen::engine {

inline constexpr const char* kBackendFunction = "gen_backend_v1_get";

/// What must be equal for objects to be passed between two libraries: version, compiler, a hash of
/// the headers that both are made from, sizes of what both sides look into.
const char* backend_build_id() noexcept;

/// kUnsupported, naming both builds, for a table of another build or one that is not complete.
Status check_backend(const gen_backend_v1& backend);

/// kUnsupported for a table of another build or one that is not complete, naming both builds, and
/// with its reason for an engine that is not available.
Result<std::shared_ptr<Engine>> create_engine(const gen_backend_v1& backend,
                                              const EngineOptions& options);

}  // namespace gen::engine

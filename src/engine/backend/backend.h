// SPDX-License-Identifier: Apache-2.0
// The C table through which an engine outside this library is reached. Tests link it; otherwise it
// is loaded on demand from a shared library. It creates C++ objects of this build, so both sides
// compare their build ids first.
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
  /// Null when available, else the reason why not, a string that lives as long as the table.
  const char* (*why_not)(void);
  /// Sets either the engine or the status.
  void (*create)(const gen::engine::EngineOptions* options,
                 std::shared_ptr<gen::engine::Engine>* engine, gen::Status* status);
  /// 0 where it is not available.
  int32_t (*device_count)(void);
  /// One line of JSON about a device in [0, device_count()), truncated to the capacity; empty if
  /// the device does not answer.
  void (*describe)(int32_t device, char* text, size_t capacity);
  /// Sets either an allocator of the device's memory or the status.
  void (*create_allocator)(int32_t device, std::shared_ptr<const gen::engine::GpuTable>* table,
                           gen::Status* status);
  /// Sets the receiver of the backend's log lines of all levels. Called once, when a library is
  /// loaded.
  void (*set_log)(gen::LogSink sink);
  /// Enqueues the append on a stream, not null, of a device in [0, device_count()).
  void (*append)(int32_t device, const gen::engine::CountedAppend* append, void* stream,
                 gen::Status* status);
};

/// What a library with an engine exports, under the name kBackendFunction; the table lives as long
/// as the library is loaded.
using gen_backend_v1_get_fn = const gen_backend_v1* (*)(void);

}  // extern "C"

namespace gen::engine {

inline constexpr const char* kBackendFunction = "gen_backend_v1_get";

/// Objects may be passed between two libraries only if this is equal: version, compiler, a hash of
/// the shared headers, and the sizes of the shared types.
const char* backend_build_id() noexcept;

/// kUnsupported, naming both builds, for a table of another build or an incomplete one.
Status check_backend(const gen_backend_v1& backend);

/// kUnsupported, naming both builds, for a table of another build or an incomplete one;
/// kUnsupported with the backend's reason for an engine that is not available.
Result<std::shared_ptr<Engine>> create_engine(const gen_backend_v1& backend,
                                              const EngineOptions& options);

}  // namespace gen::engine

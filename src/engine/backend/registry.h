// SPDX-License-Identifier: Apache-2.0
// The table of engines by name. A new engine is one row in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "engine/memory/counted_append.h"

namespace gen::engine {

struct EngineRow {
  const char* name;  // "cpu"
  /// Null when available, else the reason why not.
  const char* (*why_not)() noexcept;
  Result<std::shared_ptr<Engine>> (*create)(const EngineOptions& options);
  /// 0 if the engine is not available.
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

/// Device -1 is host memory and has no stream. For any other device the backend "cuda" enqueues the
/// append on `stream`, a cudaStream_t of that device. kInvalidArgument for device -1 with a stream
/// or another device without one, kUnsupported without the backend or the device, kDevice.
Status append_on_device(int32_t device, const CountedAppend& append, void* stream);

}  // namespace gen::engine

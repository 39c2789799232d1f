// SPDX-License-Identifier: Apache-2.0
// Checks weight sources and brings them to the device in the form that its kernels read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/thread_pool.h"
#include "cuda/engine/device_queue.h"
#include "engine/memory.h"
#include "engine/weight.h"

namespace gen::cuda {

class WeightLoader {
 public:
  /// Threads of `pool`, which may be null, read what is large.
  WeightLoader(DeviceQueue& queue, engine::EngineMemory& memory, ThreadPool* pool) noexcept
      : queue_(queue), memory_(memory), pool_(pool) {}

  /// Bytes of device memory that load() would take of a WeightMemory; 0 if it refuses.
  static size_t bytes(engine::WeightRole role,
                      std::span<const engine::WeightSource> sources) noexcept;
  /// Errors as Engine::prepare says. kUnsupported for gated products of two types.
  Result<std::unique_ptr<engine::Weight>> load(engine::WeightRole role,
                                               std::span<const engine::WeightSource> sources,
                                               const std::shared_ptr<engine::WeightMemory>& memory);

 private:
  int64_t bf16_rows(const engine::WeightSource& source);
  // With a turn on the queue.
  Status write_rows(engine::WeightRole role, const engine::WeightSource& source, uint8_t* to);
  Status write_tiles(const engine::WeightSource& source, uint8_t* to);

  DeviceQueue& queue_;
  engine::EngineMemory& memory_;
  ThreadPool* pool_;
};

}  // namespace gen::cuda

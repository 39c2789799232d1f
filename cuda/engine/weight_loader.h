// SPDX-License-Identifier: Apache-2.0
// Checks weight sources and uploads them to the device in the layout of its kernels.
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
  /// Large sources are read by the threads of `pool`, which may be null.
  WeightLoader(DeviceQueue& queue, engine::EngineMemory& memory, ThreadPool* pool) noexcept
      : queue_(queue), memory_(memory), pool_(pool) {}

  /// Device memory that load() would allocate from a WeightMemory; 0 if it refuses.
  static size_t bytes(engine::WeightRole role,
                      std::span<const engine::WeightSource> sources) noexcept;
  /// Errors of Engine::prepare. kUnsupported for gated products of two types.
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

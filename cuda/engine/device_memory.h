// SPDX-License-Identifier: Apache-2.0
// The memory of a CUDA engine: allocated by the injected allocator, freed in the queue's order, and
// operated on between steps.
#pragma once

#include <memory>

#include "cuda/engine/device_queue.h"
#include "engine/memory.h"

namespace gen::cuda {

class DeviceMemory final : public engine::EngineMemory {
 public:
  explicit DeviceMemory(std::shared_ptr<DeviceQueue> queue) noexcept : queue_(std::move(queue)) {}

  Status run(const engine::MemoryOp& op) override;
  Status write(engine::EnginePtr<std::byte> to, const void* from, size_t bytes) override;
  Status read(void* to, engine::EnginePtr<const std::byte> from, size_t bytes) override;

 protected:
  Status take(size_t bytes, engine::EnginePtr<std::byte>* out) override;
  void give_back(engine::EnginePtr<std::byte> at, size_t bytes) noexcept override;

 private:
  Status run_one(const engine::CopyArgs& args);
  Status run_one(const engine::FillArgs& args);
  Status run_one(const engine::KvCopyArgs& args);
  Status run_one(const engine::KvShiftArgs& args);
  Status run_one(const engine::KvPoolArgs& args);

  std::shared_ptr<DeviceQueue> queue_;
};

}  // namespace gen::cuda

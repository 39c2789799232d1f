// SPDX-License-Identifier: Apache-2.0
// Engine memory from a device's allocator, for use without an engine: it can be copied, filled,
// written and read. Operations that need kernels, such as moving cache entries, are refused.
#pragma once

#include <memory>
#include <utility>

#include "engine/memory.h"
#include "engine/memory/gpu_memory.h"

namespace gen::engine {

class TableMemory final : public EngineMemory {
 public:
  explicit TableMemory(std::shared_ptr<GpuAllocator> allocator) noexcept
      : allocator_(std::move(allocator)) {}

  /// kUnsupported for operations other than copies and fills; kDevice.
  Status run(const MemoryOp& op) override;
  Status write(EnginePtr<std::byte> to, const void* from, size_t bytes) override;
  Status read(void* to, EnginePtr<const std::byte> from, size_t bytes) override;

 protected:
  Status take(size_t bytes, EnginePtr<std::byte>* out) override;
  void give_back(EnginePtr<std::byte> at, size_t bytes) noexcept override;

 private:
  std::shared_ptr<GpuAllocator> allocator_;
};

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// Engine memory in host memory, from an allocator.
#pragma once

#include "base/allocator.h"
#include "engine/memory.h"

namespace gen::engine {

class HostMemory final : public EngineMemory {
 public:
  /// Of the process' heap.
  constexpr HostMemory() noexcept = default;
  /// `allocator` outlives it.
  explicit HostMemory(Allocator& allocator) noexcept : allocator_(&allocator) {}

  Status run(const MemoryOp& op) override;
  Status write(EnginePtr<std::byte> to, const void* from, size_t bytes) override;
  Status read(void* to, EnginePtr<const std::byte> from, size_t bytes) override;
  [[nodiscard]] bool in_host() const noexcept override { return true; }
  [[nodiscard]] std::byte* host(EnginePtr<std::byte> at) noexcept override;

 protected:
  /// Large blocks as Buffer::allocate_large takes them.
  Status take(size_t bytes, EnginePtr<std::byte>* out) override;
  void give_back(EnginePtr<std::byte> at, size_t bytes) noexcept override;

 private:
  [[nodiscard]] Allocator& allocator() const noexcept {
    return allocator_ != nullptr ? *allocator_ : system_allocator();
  }

  Allocator* allocator_ = nullptr;
};

/// The memory of the process' heap. Never destroyed.
EngineMemory& system_memory() noexcept;

}  // namespace gen::engine

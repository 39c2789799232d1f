// SPDX-License-Identifier: Apache-2.0
// Engine memory that is the host's, through an allocator.
#pragma once

#include "base/allocator.h"
#include "engine/memory.h"

namespace gen::engine {

class HostMemory final : public EngineMemory {
 public:
  /// `allocator` outlives it.
  explicit HostMemory(Allocator& allocator) noexcept : allocator_(allocator) {}

 protected:
  Status take(size_t bytes, EnginePtr<std::byte>* out) override;
  void give_back(EnginePtr<std::byte> at, size_t bytes) noexcept override;

 private:
  Allocator& allocator_;
};

}  // namespace gen::engine

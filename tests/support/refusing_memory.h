// SPDX-License-Identifier: Apache-2.0
// RefusingMemory: engine memory in host memory whose operations run out of memory on demand.
#pragma once

#include <cstdlib>
#include <new>

#include "engine/access.h"
#include "engine/kv/memory_ops_run.h"
#include "engine/memory/host_memory.h"

namespace gen::test {

class RefusingMemory final : public engine::EngineMemory {
 public:
  Status run(const engine::MemoryOp& op) override {
    if (operations++ == refused) throw std::bad_alloc();
    return engine::run_memory_op(op, 0);
  }
  Status write(engine::EnginePtr<std::byte> to, const void* from, size_t bytes) override {
    return engine::system_memory().write(to, from, bytes);
  }
  Status read(void* to, engine::EnginePtr<const std::byte> from, size_t bytes) override {
    return engine::system_memory().read(to, from, bytes);
  }

  static constexpr size_t kNone = ~size_t{0};
  size_t operations = 0;
  size_t refused = kNone;  // index of the one that is

 protected:
  Status take(size_t bytes, engine::EnginePtr<std::byte>* out) override {
    auto* const made = static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
    *out = engine::engine_ptr(made);
    return made != nullptr ? Status() : Status(Code::kOutOfMemory, "none");
  }
  void give_back(engine::EnginePtr<std::byte> at, size_t) noexcept override {
    std::free(engine::Access::pointer(at, 0));
  }
};

}  // namespace gen::test

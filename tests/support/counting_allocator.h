// SPDX-License-Identifier: Apache-2.0
// CountingAllocator: counts allocations and frees, and fails the nth request on demand.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/allocator.h"
#include "engine/memory/host_memory.h"

namespace gen::test {

/// Threads: any.
class CountingAllocator final : public Allocator {
 public:
  Status allocate(size_t bytes, size_t align, void** out) noexcept override {
    *out = nullptr;
    if (calls.fetch_add(1) == fail_at) return error(Code::kOutOfMemory, "no %zu bytes", bytes);
    GEN_TRY(system_allocator().allocate(bytes, align, out));
    const size_t live = live_bytes += bytes;
    for (size_t peak = peak_bytes; peak < live && !peak_bytes.compare_exchange_weak(peak, live);) {
    }
    ++live_blocks;
    return {};
  }
  void release(void* pointer, size_t bytes) noexcept override {
    if (pointer != nullptr) {
      live_bytes -= bytes;
      --live_blocks;
    }
    system_allocator().release(pointer, bytes);
  }

  /// The same as engine memory.
  operator engine::EngineMemory&() noexcept { return memory_; }

  std::atomic<size_t> calls{0};
  std::atomic<size_t> live_bytes{0};
  std::atomic<size_t> peak_bytes{0};  // the maximum of live_bytes
  std::atomic<size_t> live_blocks{0};
  size_t fail_at = ~size_t{0};  // index of the request that fails, counted from 0

 private:
  engine::HostMemory memory_{*this};
};

}  // namespace gen::test

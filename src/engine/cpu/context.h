// SPDX-License-Identifier: Apache-2.0
// What an operation of the CPU engine gets to work with: the kernels of the engine's level, its
// thread pool, and the scratch memory of the caller's stream. Every operation is one file with one
// free function `Status run(CpuContext&, const <Op>Args&)`, declared in ops_run.h.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/allocator.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "engine/cpu/kernel_table.h"
#include "engine/engine.h"

namespace gen::engine::cpu {

/// Scratch memory that operations share one after another. Grows to the largest request and stays,
/// so a repeated step allocates nothing.
class CpuStream final : public Stream {
 public:
  explicit CpuStream(Allocator& allocator) noexcept : allocator_(allocator) {}

  /// `bytes` bytes aligned to 64, contents undefined, valid until the next call. kOutOfMemory
  /// leaves the stream usable.
  Status scratch(size_t bytes, std::byte** out) {
    if (bytes > buffer_.size()) {
      buffer_.reset();
      bytes_.store(0, std::memory_order_relaxed);
      GEN_ASSIGN(buffer_, Buffer::allocate(allocator_, bytes));
      bytes_.store(bytes, std::memory_order_relaxed);
    }
    *out = buffer_.data();
    return {};
  }
  [[nodiscard]] size_t bytes() const noexcept override {
    return bytes_.load(std::memory_order_relaxed);
  }

 private:
  Allocator& allocator_;
  Buffer buffer_;
  std::atomic<size_t> bytes_{0};  // of it
};

struct CpuContext {
  const KernelTable& kernels;
  ThreadPool& pool;
  CpuStream& stream;
  bool dry_run = false;  // stop where scratch has been taken
};

}  // namespace gen::engine::cpu

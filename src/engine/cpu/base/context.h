// SPDX-License-Identifier: Apache-2.0
// The context of an operation of the CPU engine: the kernels of the engine's level, its thread
// pool, and the scratch memory of the caller's stream. Every operation is one file with one free
// function `Status run(CpuContext&, const <Op>Args&)`, declared in ops_run.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "base/allocator.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "engine/access.h"
#include "engine/cpu/base/kernels.h"
#include "engine/cpu/base/rows.h"
#include "engine/engine.h"
#include "engine/kv_view.h"

namespace gen::engine::cpu {

/// Scratch memory that operations use in turn. It grows to the largest request and is kept, so a
/// repeated step allocates nothing.
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
  friend struct CpuContext;

  Allocator& allocator_;
  std::vector<SequenceRows> sequences_;
  Buffer buffer_;
  std::atomic<size_t> bytes_{0};  // size of the scratch
};

struct CpuContext {
  const KernelTable& kernels;
  ThreadPool& pool;
  CpuStream& stream;
  bool dry_run = false;         // stop after scratch is allocated
  std::ptrdiff_t distance = 0;  // EngineOptions

  template <typename T>
  [[nodiscard]] T* at(EnginePtr<T> address) const noexcept {
    return Access::pointer(address, distance);
  }
  [[nodiscard]] Rows at(const MatrixView& view) const noexcept {
    return {at(view.data), view.rows, view.cols, view.stride};
  }
  [[nodiscard]] ConstRows at(const ConstMatrixView& view) const noexcept {
    return {at(view.data), view.rows, view.cols, view.stride};
  }
  [[nodiscard]] PackedView at(const Activations& packed) const noexcept {
    return {at(packed.data), packed.forms, packed.rows, packed.cols};
  }
  /// The rows of sequences with their views, valid until the next call on the stream.
  [[nodiscard]] std::span<const SequenceRows> sequences(const KvLayer& layer,
                                                        EnginePtr<const KvRows> rows,
                                                        int32_t n) const;
};

inline std::span<const SequenceRows> CpuContext::sequences(const KvLayer& layer,
                                                           EnginePtr<const KvRows> rows,
                                                           int32_t n) const {
  const KvRows* const records = at(rows);
  stream.sequences_.resize(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) {
    stream.sequences_[static_cast<size_t>(i)] = resolve(layer, records[i], distance);
  }
  return stream.sequences_;
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Memory that operations can address: arenas, constants, step blocks, caches. Its bytes are reached
// through the engine alone.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"
#include "engine/engine_ptr.h"
#include "engine/memory_ops.h"

namespace gen::engine {

class EngineMemory;

/// Owns `size()` bytes of an engine's memory; movable only. Contents are not initialised.
class EngineBuffer {
 public:
  EngineBuffer() noexcept = default;
  EngineBuffer(EngineBuffer&& other) noexcept { swap(other); }
  EngineBuffer& operator=(EngineBuffer&& other) noexcept {
    EngineBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  EngineBuffer(const EngineBuffer&) = delete;
  EngineBuffer& operator=(const EngineBuffer&) = delete;
  ~EngineBuffer() { reset(); }

  void reset() noexcept;
  [[nodiscard]] EnginePtr<std::byte> data() const noexcept { return data_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }

 private:
  friend class EngineMemory;
  void swap(EngineBuffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  EngineMemory* memory_ = nullptr;
  EnginePtr<std::byte> data_;
  size_t size_ = 0;
};

/// What is done to it here is done between steps, in order with them: after what streams of the
/// engine were given before, and before what they are given later. Host memory that a call names
/// may go when it returns. Nothing but read() needs to wait.
/// Threads: any.
class EngineMemory {
 public:
  /// `bytes` bytes on a multiple of 64; none for 0. The memory outlives its buffers. kOutOfMemory.
  Result<EngineBuffer> allocate(size_t bytes);

  /// What caches and states ask for. Throws std::bad_alloc before anything is written; after what a
  /// device fails at, what would have been written is undefined.
  virtual Status run(const MemoryOp& op) = 0;
  Status copy(EnginePtr<std::byte> to, EnginePtr<const std::byte> from, size_t bytes) {
    return run(CopyArgs{to, from, bytes});
  }
  Status fill(EnginePtr<std::byte> at, std::byte value, size_t bytes) {
    return run(FillArgs{at, value, bytes});
  }
  virtual Status write(EnginePtr<std::byte> to, const void* from, size_t bytes) = 0;
  /// The bytes are there when it returns.
  virtual Status read(void* to, EnginePtr<const std::byte> from, size_t bytes) = 0;
  /// Bytes are the host's own.
  [[nodiscard]] virtual bool in_host() const noexcept { return false; }
  /// Where host code may reach bytes in place; null where it cannot.
  [[nodiscard]] virtual std::byte* host(EnginePtr<std::byte> /*at*/) noexcept { return nullptr; }

 protected:
  // Not virtual, so that memory of the process' heap is trivially destroyed; own one by its type.
  ~EngineMemory() = default;
  virtual Status take(size_t bytes, EnginePtr<std::byte>* out) = 0;
  /// Takes effect when what was enqueued before has run.
  virtual void give_back(EnginePtr<std::byte> at, size_t bytes) noexcept = 0;

 private:
  friend class EngineBuffer;
};

}  // namespace gen::engine

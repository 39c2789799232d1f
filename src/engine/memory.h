// SPDX-License-Identifier: Apache-2.0
// Memory that operations can address: arenas, constants, step blocks, caches. Only the engine
// accesses its bytes.
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

/// Its operations run between steps and are ordered with them: after all work enqueued on the
/// engine's streams before, and before all work enqueued later. Host memory passed to a call may be
/// freed when it returns. Only read() has to wait.
/// Threads: any.
class EngineMemory {
 public:
  /// Allocates `bytes` bytes aligned to 64, an empty buffer for 0. The memory must outlive its
  /// buffers. kOutOfMemory.
  Result<EngineBuffer> allocate(size_t bytes);

  /// Runs an operation of a cache or a state. Throws std::bad_alloc only before anything is
  /// written. After a failure of the device the target is undefined.
  virtual Status run(const MemoryOp& op) = 0;
  Status copy(EnginePtr<std::byte> to, EnginePtr<const std::byte> from, size_t bytes) {
    return run(CopyArgs{to, from, bytes});
  }
  Status fill(EnginePtr<std::byte> at, std::byte value, size_t bytes) {
    return run(FillArgs{at, value, bytes});
  }
  virtual Status write(EnginePtr<std::byte> to, const void* from, size_t bytes) = 0;
  /// Synchronous: `to` is valid when it returns.
  virtual Status read(void* to, EnginePtr<const std::byte> from, size_t bytes) = 0;
  /// Whether it is host memory.
  [[nodiscard]] virtual bool in_host() const noexcept { return false; }
  /// The pointer through which host code may access `at`; null if it cannot.
  [[nodiscard]] virtual std::byte* host(EnginePtr<std::byte> /*at*/) noexcept { return nullptr; }

 protected:
  // Not virtual, so that the memory of the process' heap is trivially destructible; delete objects
  // through their own type.
  ~EngineMemory() = default;
  virtual Status take(size_t bytes, EnginePtr<std::byte>* out) = 0;
  /// Frees the memory once all work enqueued before has run.
  virtual void give_back(EnginePtr<std::byte> at, size_t bytes) noexcept = 0;

 private:
  friend class EngineBuffer;
};

}  // namespace gen::engine

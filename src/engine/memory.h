// SPDX-License-Identifier: Apache-2.0
// Memory that operations can address: arenas, constants, step blocks, caches. Its bytes are reached
// through the engine alone.
#pragma once

#include <cstddef>
#include <utility>

#include "base/status.h"
#include "engine/engine_ptr.h"

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

/// Threads: any.
class EngineMemory {
 public:
  virtual ~EngineMemory() = default;

  /// `bytes` bytes on a multiple of 64; none for 0. The memory outlives its buffers. kOutOfMemory.
  Result<EngineBuffer> allocate(size_t bytes);

 protected:
  virtual Status take(size_t bytes, EnginePtr<std::byte>* out) = 0;
  /// Takes effect when what was enqueued before has run.
  virtual void give_back(EnginePtr<std::byte> at, size_t bytes) noexcept = 0;

 private:
  friend class EngineBuffer;
};

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// Pinned host memory for small uploads and downloads: pieces are allocated in order and all freed
// at once when the device is done with them.
#pragma once

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "engine/memory/gpu_allocator.h"

namespace gen::cuda {

/// Threads: one at a time.
class Staging {
 public:
  explicit Staging(const engine::GpuTable& table) noexcept : table_(table) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// `bytes` bytes aligned to 16, valid until reset(). kOutOfMemory; kDevice if the allocator
  /// returns misaligned memory.
  Status take(size_t bytes, std::byte** out);
  /// Frees all pieces, which must no longer be in use.
  void reset() noexcept;
  /// Bytes allocated since the last reset.
  [[nodiscard]] size_t used() const noexcept { return used_; }
  /// Bytes of the host's memory that it holds.
  [[nodiscard]] size_t bytes() const noexcept { return bytes_; }

 private:
  struct Piece {
    std::byte* data = nullptr;
    size_t size = 0;
  };
  void release(const Piece& piece) noexcept;

  const engine::GpuTable& table_;
  std::vector<Piece> pieces_;  // the last one is taken from
  size_t at_ = 0;              // in it
  size_t used_ = 0;
  size_t bytes_ = 0;
};

}  // namespace gen::cuda

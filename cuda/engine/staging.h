// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host through which small things go up and come back: pieces are taken one
// after another, and all are given back at once when the device is done with them.
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

  /// `bytes` bytes on a multiple of 16, valid until reset(). kOutOfMemory; kDevice for memory at
  /// odd addresses.
  Status take(size_t bytes, std::byte** out);
  /// Nobody uses what has been taken any more.
  void reset() noexcept;
  /// Taken since the last reset.
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

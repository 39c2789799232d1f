// SPDX-License-Identifier: Apache-2.0
// Cuts one block of scratch memory into arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine::cpu {

/// The number of floats, rounded up to a multiple of 64 bytes.
constexpr int64_t padded_floats(int64_t floats) { return (floats + 15) / 16 * 16; }

/// Carves 64-byte aligned arrays out of one block of scratch; without a block it only counts.
class Carver {
 public:
  explicit Carver(std::byte* memory) noexcept : memory_(memory) {}
  template <typename T>
  T* take(int64_t count) noexcept {
    auto* piece = memory_ != nullptr ? reinterpret_cast<T*>(memory_ + used_) : nullptr;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
  [[nodiscard]] bool counts_only() const noexcept { return memory_ == nullptr; }
  [[nodiscard]] size_t used() const noexcept { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

}  // namespace gen::engine::cpu

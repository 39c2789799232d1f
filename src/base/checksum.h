// SPDX-License-Identifier: Apache-2.0
// XXH64, a published 64-bit hash: detects damaged files and distinguishes models. Not for security:
// anyone who can change the bytes can change the sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gen {

/// Bytes in any number of pieces, with seed 0. Threads: not synchronised.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  /// The bytes of a number, little-endian.
  void add_number(uint64_t number) noexcept;
  /// Of everything added so far; more may follow.
  [[nodiscard]] uint64_t value() const noexcept;

 private:
  static constexpr size_t kStripe = 32;

  void take_stripe(const std::byte* stripe) noexcept;

  uint64_t lanes_[4] = {0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579};
  std::byte rest_[kStripe];  // [total_ % kStripe] bytes that do not fill a stripe yet
  uint64_t total_ = 0;
};

/// Of bytes in one piece.
uint64_t checksum(std::span<const std::byte> bytes) noexcept;

}  // namespace gen

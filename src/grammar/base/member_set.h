// SPDX-License-Identifier: Apache-2.0
// A set of members' bits, see members.h.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstdint>

namespace gen::grammar {

class MemberSet {
 public:
  static constexpr uint32_t kBits = 256;

  static constexpr MemberSet bit(uint32_t number) noexcept {
    MemberSet made;
    made.words_[number / 64] = uint64_t{1} << number % 64;
    return made;
  }

  [[nodiscard]] constexpr bool has(uint32_t number) const noexcept {
    return (words_[number / 64] >> number % 64 & 1) != 0;
  }
  /// Bits 4 * number to 4 * number + 3.
  [[nodiscard]] constexpr uint32_t four(uint32_t number) const noexcept {
    return static_cast<uint32_t>(words_[number / 16] >> number % 16 * 4 & 15);
  }
  [[nodiscard]] constexpr bool none() const noexcept { return *this == MemberSet(); }
  [[nodiscard]] constexpr uint32_t count() const noexcept {
    int n = 0;
    for (const uint64_t word : words_) n += std::popcount(word);
    return static_cast<uint32_t>(n);
  }
  template <typename Visit>
  constexpr void each(Visit visit) const {
    for (uint32_t i = 0; i < words_.size(); ++i) {
      for (uint64_t bits = words_[i]; bits != 0; bits &= bits - 1) {
        visit(i * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }
  [[nodiscard]] constexpr const std::array<uint64_t, kBits / 64>& words() const noexcept {
    return words_;
  }

  constexpr MemberSet& operator|=(const MemberSet& other) noexcept {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  constexpr MemberSet& operator&=(const MemberSet& other) noexcept {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  constexpr MemberSet operator~() const noexcept {
    MemberSet made;
    for (size_t i = 0; i < words_.size(); ++i) made.words_[i] = ~words_[i];
    return made;
  }
  friend constexpr MemberSet operator|(MemberSet a, const MemberSet& b) noexcept { return a |= b; }
  friend constexpr MemberSet operator&(MemberSet a, const MemberSet& b) noexcept { return a &= b; }
  constexpr auto operator<=>(const MemberSet&) const = default;

 private:
  std::array<uint64_t, kBits / 64> words_{};
};

}  // namespace gen::grammar

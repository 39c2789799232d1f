// SPDX-License-Identifier: Apache-2.0
// TokenSet: a set of a vocabulary's tokens under construction: a bit per token, and a list of the
// tokens as long as they are few, so that a small set is cheap to clear and to list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gen::grammar {

class TokenSet {
 public:
  explicit TokenSet(size_t words) : bits_(words, 0) {}

  void clear() {
    if (many_) std::fill(bits_.begin(), bits_.end(), 0);
    for (const uint32_t token : few_) bits_[token / 64] = 0;
    few_.clear();
    many_ = false;
  }
  void add(int32_t token) {
    const auto number = static_cast<uint32_t>(token);
    uint64_t& word = bits_[number / 64];
    const uint64_t bit = uint64_t{1} << (number % 64);
    if ((word & bit) != 0) return;
    if (!many_) few_.push_back(number);  // first, because only listed tokens are cleared
    word |= bit;
    if (few_.size() > bits_.size()) become_many();
  }
  void add(std::span<const int32_t> tokens) {
    if (tokens.size() > bits_.size()) become_many();
    for (const int32_t token : tokens) add(token);
  }
  /// The set's bits, which may be changed in any way.
  std::span<uint64_t> all() {
    become_many();
    return bits_;
  }

  [[nodiscard]] std::span<const uint64_t> bits() const noexcept { return bits_; }
  /// Whether there are too many tokens for a list; otherwise few() has them.
  [[nodiscard]] bool many() const noexcept { return many_; }
  [[nodiscard]] const std::vector<uint32_t>& few() const noexcept { return few_; }

 private:
  void become_many() {
    if (many_) return;
    many_ = true;
    few_.clear();
  }

  std::vector<uint64_t> bits_;
  std::vector<uint32_t> few_;
  bool many_ = false;
};

}  // namespace gen::grammar

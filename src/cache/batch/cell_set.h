// SPDX-License-Identifier: Apache-2.0
// A set of cell numbers that finds its next member in the time of its levels, one for each factor
// of 64: bit i of a level tells whether word i of the level below has members.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gen::cache {

/// Members lie in [0, size). Only the constructor allocates.
class CellSet {
 public:
  /// All of [0, size).
  explicit CellSet(int32_t size) : size_(size), count_(size) {
    auto bits = static_cast<size_t>(size);
    do {
      const size_t words = (bits + 63) / 64;
      levels_.emplace_back(words, ~uint64_t{0});
      if (bits % 64 != 0) levels_.back().back() = (uint64_t{1} << (bits % 64)) - 1;
      bits = words;
    } while (bits > 1);
  }

  [[nodiscard]] int32_t size() const noexcept { return size_; }
  [[nodiscard]] int32_t count() const noexcept { return count_; }
  [[nodiscard]] bool has(int32_t cell) const noexcept {
    const auto i = static_cast<size_t>(cell);
    return (levels_[0][i / 64] >> (i % 64) & 1U) != 0;
  }
  void add(int32_t cell) noexcept {
    if (has(cell)) return;
    ++count_;
    auto i = static_cast<size_t>(cell);
    for (auto& level : levels_) {
      const bool had = level[i / 64] != 0;
      level[i / 64] |= uint64_t{1} << (i % 64);
      if (had) return;
      i /= 64;
    }
  }
  void remove(int32_t cell) noexcept {
    if (!has(cell)) return;
    --count_;
    auto i = static_cast<size_t>(cell);
    for (auto& level : levels_) {
      level[i / 64] &= ~(uint64_t{1} << (i % 64));
      if (level[i / 64] != 0) return;
      i /= 64;
    }
  }
  /// The first member from `cell` on, or -1. `cell` may be any number from 0 up.
  [[nodiscard]] int32_t next(int32_t cell) const noexcept {
    auto i = static_cast<size_t>(cell);
    for (size_t level = 0; level < levels_.size(); ++level) {
      if (i / 64 >= levels_[level].size()) return -1;
      const uint64_t rest = levels_[level][i / 64] >> (i % 64);
      if (rest == 0) {
        i = i / 64 + 1;
        continue;
      }
      i += static_cast<size_t>(std::countr_zero(rest));
      for (; level > 0; --level) {
        i = i * 64 + static_cast<size_t>(std::countr_zero(levels_[level - 1][i]));
      }
      return static_cast<int32_t>(i);
    }
    return -1;
  }
  /// The last cell before `end` that is not a member, or -1. Cost: O(size / 64).
  [[nodiscard]] int32_t last_missing(int32_t end) const noexcept {
    for (auto i = static_cast<size_t>(end); i > 0;) {
      const size_t word = (i - 1) / 64;
      const uint64_t missing = ~levels_[0][word] << (63 - (i - 1) % 64);
      if (missing != 0) {
        return static_cast<int32_t>(i - 1 - static_cast<size_t>(std::countl_zero(missing)));
      }
      i = word * 64;
    }
    return -1;
  }
  [[nodiscard]] size_t bytes() const noexcept {
    size_t words = 0;
    for (const auto& level : levels_) words += level.size();
    return words * sizeof(uint64_t);
  }

 private:
  int32_t size_;
  int32_t count_;
  std::vector<std::vector<uint64_t>> levels_;
};

}  // namespace gen::cache

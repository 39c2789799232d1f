// SPDX-License-Identifier: Apache-2.0
// TextIndex: where in a text its last tokens have stood before. Tokens go into a ring; a hash of
// every few of them leads to the newest place where they stand, and each place to the one before
// it, as in match finders of Lempel-Ziv compressors. Memory is bounded by the ring, adding a token
// and finding places take time that does not depend on the text's length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gen::generate {

/// Threads: one at a time.
class TextIndex {
 public:
  /// Places are found by the `key` tokens before them, 1 or 2; the oldest of more than `most`
  /// tokens are forgotten. Nothing is allocated yet.
  TextIndex(int32_t key, size_t most) noexcept;

  /// Makes room for so many tokens in all. A text that outgrows it makes more. std::bad_alloc.
  void reserve(size_t tokens);
  /// Adds to the text. std::bad_alloc, and then nothing is added.
  void add(std::span<const int32_t> tokens);
  /// What comes next does not follow what came last.
  void part() { add(std::span(&kGap, 1)); }
  void clear() noexcept;

  /// Tokens added so far, forgotten ones and gaps included.
  [[nodiscard]] int64_t size() const noexcept { return size_; }
  /// A token that is not forgotten: one of the last `ring`, or kGap.
  [[nodiscard]] int32_t at(int64_t place) const noexcept {
    return tokens_[static_cast<size_t>(place) & mask_];
  }
  [[nodiscard]] bool holds(int64_t place) const noexcept {
    return place >= 0 && place < size_ && size_ - place <= static_cast<int64_t>(tokens_.size());
  }
  /// Bytes.
  [[nodiscard]] size_t memory() const noexcept;

  static constexpr int32_t kGap = -1;

  /// A place where the text went on, behind `length` tokens that are the last ones of a text.
  struct Match {
    int64_t next;  // the token that came then
    int32_t length;
  };
  /// Finds places behind what `text` ends with, the newest first, each with how many tokens agree,
  /// `depth` at most. Looks at no more places than there is room for; how many were found. Where
  /// the text is the index's own its end is not found.
  size_t find(std::span<const int32_t> text, int32_t depth, std::span<Match> found) const noexcept;

 private:
  [[nodiscard]] size_t slot(int32_t first, int32_t second) const noexcept;
  void grow(size_t tokens);
  void put(int32_t token) noexcept;

  const int32_t key_;
  const size_t most_;           // a power of two
  size_t mask_ = 0;             // of the ring
  int64_t size_ = 0;
  std::vector<int32_t> tokens_;  // ring
  std::vector<int32_t> back_;    // ring: how far back the place before this one is, 0: none
  std::vector<int64_t> heads_;   // by hash: the newest place + 1, 0: none
};

}  // namespace gen::generate

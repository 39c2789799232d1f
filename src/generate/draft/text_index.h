// SPDX-License-Identifier: Apache-2.0
// TextIndex: finds earlier occurrences of the last tokens of a text. Tokens are stored in a ring. A
// hash of the last few tokens leads to the newest place where they occur, and each place links to
// the previous one, as in match finders of Lempel-Ziv compressors. Memory is bounded by the ring;
// adding a token and finding places take time independent of the text's length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gen::generate {

/// Threads: one at a time.
class TextIndex {
 public:
  /// Places are keyed by the `key` tokens before them, 1 or 2. Keeps at most `most` tokens, the
  /// newest. Allocates nothing yet.
  TextIndex(int32_t key, size_t most) noexcept;

  /// Reserves memory for `tokens` tokens in all; a longer text allocates. May throw std::bad_alloc.
  void reserve(size_t tokens);
  /// Appends tokens. May throw std::bad_alloc; then nothing is added.
  void add(std::span<const int32_t> tokens);
  /// Marks a border: the next token does not continue the last one.
  void part() { add(std::span(&kGap, 1)); }
  void clear() noexcept;

  /// Tokens added so far, including forgotten ones and borders.
  [[nodiscard]] int64_t size() const noexcept { return size_; }
  /// A token among the last `ring` ones, or kGap.
  [[nodiscard]] int32_t at(int64_t place) const noexcept {
    return tokens_[static_cast<size_t>(place) & mask_];
  }
  [[nodiscard]] bool holds(int64_t place) const noexcept {
    return place >= 0 && place < size_ && size_ - place <= static_cast<int64_t>(tokens_.size());
  }
  /// Bytes.
  [[nodiscard]] size_t memory() const noexcept;

  static constexpr int32_t kGap = -1;

  /// A place after which the text continued; the `length` tokens before it match.
  struct Match {
    int64_t next;  // index of the token that followed
    int32_t length;
  };
  /// Finds places that the last tokens of `text` lead to, newest first, each with the number of
  /// matching tokens, at most `depth`. Returns how many were written to `found`. If the index holds
  /// `text` itself, its end is not among them.
  size_t find(std::span<const int32_t> text, int32_t depth, std::span<Match> found) const noexcept;

 private:
  [[nodiscard]] size_t slot(int32_t first, int32_t second) const noexcept;
  void grow(size_t tokens);
  void put(int32_t token) noexcept;

  const int32_t key_;
  const size_t most_;  // a power of two
  size_t mask_ = 0;    // ring size - 1
  int64_t size_ = 0;
  std::vector<int32_t> tokens_;  // ring
  std::vector<int32_t> back_;    // ring: distance to the previous place with this hash, 0: none
  std::vector<int64_t> heads_;   // by hash: the newest place + 1, 0: none
};

}  // namespace gen::generate

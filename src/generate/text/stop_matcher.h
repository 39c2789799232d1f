// SPDX-License-Identifier: Apache-2.0
// StopMatcher: lets text through up to the first stop string and never a byte of it. Text is fed in
// pieces of any size; what may still become a stop string is held back, no more and no longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::generate {

/// Follows every stop string with its Knuth-Morris-Pratt automaton: time is linear in the text
/// times the number of stop strings, whatever they look like.
/// Threads: one at a time.
class StopMatcher {
 public:
  static constexpr size_t kShortPiece = 12;

  /// Empty strings are ignored. What is held back never takes more memory than is reserved here if
  /// pieces have at most kShortPiece bytes.
  explicit StopMatcher(std::span<const std::string> stops);

  /// Appends to `out` what is now known to belong to no stop string. True when one has completed in
  /// this piece: then `out` got all text before it, the rest is dropped and feeding is over. If
  /// several complete in one piece, the one that starts first counts. Where there is no memory for
  /// what it holds back nothing has changed; `out` is the caller's to make room in.
  bool feed(std::string_view piece, std::string* out);

  /// Appends what is held back, at the end of the text.
  void flush(std::string* out);

  /// The same, taken out: whoever goes on says it first.
  [[nodiscard]] std::string take_held() noexcept;

  /// So that a piece of `n` bytes takes no more memory.
  void make_room(size_t n) { held_.reserve(held_.size() + n); }

  /// Bytes held back: the longest suffix of the text that is a proper prefix of a stop string.
  [[nodiscard]] size_t held() const noexcept { return held_.size(); }

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> border;  // [i]: longest proper border of text[0, i]
    size_t matched = 0;            // bytes of `text` that the text so far ends with
  };

  std::vector<Stop> stops_;
  std::string held_;
};

}  // namespace gen::generate

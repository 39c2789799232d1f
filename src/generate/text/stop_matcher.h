// SPDX-License-Identifier: Apache-2.0
// StopMatcher: passes text through up to the first stop string and none of its bytes. Text is fed
// in pieces of any size; only what may still become a stop string is held back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gen::generate {

/// Runs a Knuth-Morris-Pratt automaton for every stop string: time is linear in the text times the
/// number of stop strings, whatever they contain. Threads: one at a time.
class StopMatcher {
 public:
  static constexpr size_t kShortPiece = 12;

  /// Empty strings are ignored. Reserves all memory for text held back if pieces have at most
  /// kShortPiece bytes.
  explicit StopMatcher(std::span<const std::string> stops);

  /// Appends to `out` the text that certainly belongs to no stop string. True if a stop string was
  /// completed in this piece: `out` then has all text before it, the rest is dropped, and no more
  /// may be fed. If several were completed in one piece, the one that starts first counts. If there
  /// is no memory for the text held back, nothing has changed; the caller makes room in `out`.
  bool feed(std::string_view piece, std::string* out);

  /// Appends the text held back; for the end of the text.
  void flush(std::string* out);

  /// Removes and returns the text held back; a call that continues emits it first.
  [[nodiscard]] std::string take_held() noexcept;

  /// Reserves memory so that a piece of `n` bytes does not allocate.
  void make_room(size_t n) { held_.reserve(held_.size() + n); }

  /// Bytes held back: the longest suffix of the text that is a proper prefix of a stop string.
  [[nodiscard]] size_t held() const noexcept { return held_.size(); }

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> border;  // [i]: longest proper border of text[0, i]
    size_t matched = 0;            // bytes of `text` that match the end of the text so far
  };

  std::vector<Stop> stops_;
  std::string held_;
};

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Finds the names of special tokens in a text: leftmost first, the longest of those that start
// there. Used by vocab_tokenizer.cpp and where SentencePiece keeps user-defined tokens whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gen::tokenizer {

struct SpecialMatch {
  size_t begin;
  size_t end;
  int32_t id;
};

/// Storage: the texts sorted; a search narrows the sorted range byte by byte.
/// Threads: immutable once built.
class SpecialMatcher {
 public:
  SpecialMatcher() = default;
  /// `text` must outlive the matcher.
  void add(std::string_view text, int32_t id) { entries_.push_back({text, id}); }
  /// Call it once, after the last add.
  void finish();

  /// The first match at or after `offset`. Cost: one table look-up per byte at which no text
  /// begins.
  [[nodiscard]] std::optional<SpecialMatch> find(std::string_view text,
                                                 size_t offset) const noexcept;

  /// The longest match that begins at `offset`, which is below text.size().
  [[nodiscard]] std::optional<SpecialMatch> match_at(std::string_view text,
                                                     size_t offset) const noexcept;

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

 private:
  struct Entry {
    std::string_view text;
    int32_t id;
  };
  [[nodiscard]] const Entry* longest_at(std::string_view text, size_t offset) const noexcept;

  std::vector<Entry> entries_;
  std::array<bool, 256> starts_{};
};

}  // namespace gen::tokenizer

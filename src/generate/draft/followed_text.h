// SPDX-License-Identifier: Apache-2.0
// FollowedText: an index over the text of one session, updated on each use. Drafts are copied from
// earlier occurrences in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "generate/draft/drafter.h"
#include "generate/draft/text_index.h"

namespace gen::generate {

/// Threads: one at a time.
class FollowedText {
 public:
  explicit FollowedText(int32_t key) noexcept : index_(key, kMost) {}

  /// Adds the new tokens, or the whole text if it is a different one; returns true in that case.
  /// May throw std::bad_alloc; the next call then starts over.
  bool follow(std::span<const int32_t> text);
  [[nodiscard]] const TextIndex& index() const noexcept { return index_; }
  /// The token at `place` of the text continued by `tree`; -1 beyond its end.
  [[nodiscard]] int32_t at(int64_t place, const DraftTree& tree) const noexcept;
  /// The grade of a token whose places agree in `agreement` tokens and of which this share votes
  /// for it. Grade 0 is reserved for drafters that do not look up.
  [[nodiscard]] static constexpr int32_t grade(int32_t agreement, double share) noexcept {
    const int32_t length = agreement < 4 ? 1 : agreement < 10 ? 2 : 3;
    return share > 0.5 || length == 1 ? length : length - 1;
  }
  /// The grade of a token drafted after a gap.
  static constexpr int32_t kGapGrade = 4;

 private:
  /// Most tokens of a text that are indexed; nearly all contexts are shorter.
  static constexpr size_t kMost = size_t{1} << 20U;
  /// A text is taken for a continuation if its last tokens match those of the old one. A wrong
  /// match only makes some drafts worse.
  static constexpr int64_t kCompared = 16;

  TextIndex index_;
};

}  // namespace gen::generate

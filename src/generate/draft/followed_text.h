// SPDX-License-Identifier: Apache-2.0
// FollowedText: an index over the text of one session, brought up to date whenever it is asked, and
// guesses copied from where the text has come by before.
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

  /// Takes in what has come since, or the whole text where it is another one. True for that.
  /// std::bad_alloc, and then the text is begun again next time.
  bool follow(std::span<const int32_t> text);
  [[nodiscard]] const TextIndex& index() const noexcept { return index_; }
  /// The token at a place of the text as `tree` goes on with it, -1 for one beyond that.
  [[nodiscard]] int32_t at(int64_t place, const DraftTree& tree) const noexcept;
  /// Of a guess from places where so many tokens agree and this share says the same. 0 is left to
  /// what does not look up.
  [[nodiscard]] static constexpr int32_t grade(int32_t agreement, double share) noexcept {
    const int32_t length = agreement < 4 ? 1 : agreement < 10 ? 2 : 3;
    return share > 0.5 || length == 1 ? length : length - 1;
  }
  /// Of a guess behind tokens that are new.
  static constexpr int32_t kGapGrade = 4;

 private:
  /// The number of tokens of a text that are remembered. Few models have longer contexts.
  static constexpr size_t kMost = size_t{1} << 20U;
  /// A text whose last tokens agree with the old one's is taken for its continuation. Where it is
  /// not, a few guesses are worse.
  static constexpr int64_t kCompared = 16;

  TextIndex index_;
};

}  // namespace gen::generate

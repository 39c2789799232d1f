// SPDX-License-Identifier: Apache-2.0
// WordCuts: positions where a normalised text may be split so that each part can be encoded
// separately: between two characters that are not adjacent in any piece, because no merge can ever
// join them. Used by sentencepiece_bpe.cpp.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

#include "tokenizer/sentencepiece_normalizer.h"

namespace gen::tokenizer {

/// Storage: a bit for each last byte of a character and first byte of the next one, so characters
/// share bits. The sign for a space counts as a space, because it begins most words.
class WordCuts {
 public:
  /// Forbids splits between characters that are adjacent in `piece`, which is UTF-8.
  void forbid(std::string_view piece) noexcept {
    for (size_t at = 1; at < piece.size(); ++at) {
      if (begins_character(piece[at])) joined_.set(pair_at(piece, at));
    }
  }
  /// Whether to split before text[at], where a character other than the first begins.
  [[nodiscard]] bool may_cut(std::string_view text, size_t at) const noexcept {
    return !joined_[pair_at(text, at)];
  }

 private:
  static bool begins_character(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }
  static size_t pair_at(std::string_view text, size_t at) noexcept {
    const bool left_space = text.substr(0, at).ends_with(kSpaceSign);
    const bool right_space = text.substr(at).starts_with(kSpaceSign);
    const auto left = static_cast<unsigned char>(left_space ? ' ' : text[at - 1]);
    const auto right = static_cast<unsigned char>(right_space ? ' ' : text[at]);
    return size_t{left} * 256 + right;
  }

  std::bitset<size_t{256} * 256> joined_;
};

}  // namespace gen::tokenizer

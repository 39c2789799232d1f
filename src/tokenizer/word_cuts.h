// SPDX-License-Identifier: Apache-2.0
// WordCuts: where a normalized text may be cut so that each part can be encoded by itself: between
// two characters that no piece holds side by side, since no merge can ever join them. Used by
// sentencepiece_bpe.cpp.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>

#include "tokenizer/sentencepiece_normalizer.h"

namespace gen::tokenizer {

/// Storage: a bit for each last byte of a character and first byte of the next one, so characters
/// share theirs. The sign for a space counts as a space, for it begins most words.
class WordCuts {
 public:
  /// Never cut between characters that stand side by side in `piece`, which is UTF-8.
  void forbid(std::string_view piece) noexcept {
    for (size_t at = 1; at < piece.size(); ++at) {
      if (begins_character(piece[at])) joined_.set(pair_at(piece, at));
    }
  }
  /// Whether to cut before text[at], where a character begins that is not the first.
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

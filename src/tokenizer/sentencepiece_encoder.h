// SPDX-License-Identifier: Apache-2.0
// SpEncoder: from a normalised text to ids, the part in which the kinds of SentencePiece models
// differ; and the input of both kinds. Used by sentencepiece_tokenizer.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/vocab.h"

namespace gen::tokenizer {

/// Text that is not a piece becomes its bytes, or one unknown token for any run of such characters.
struct UnknownRule {
  int32_t id = -1;                      // the unknown token, -1 for none
  bool by_bytes = false;                // `bytes` is complete
  std::array<int32_t, 256> bytes = {};  // [byte]

  /// Appends the ids of `text`; the ids of the whole text begin at (*out)[first]. kTokenizer if
  /// there is no rule for it.
  Status append(std::string_view text, size_t first, std::vector<int32_t>* out) const;
};

/// A user-defined token as it appears in a normalised text.
struct KeptToken {
  std::string text;
  int32_t id;
};

/// Must outlive everything that is made from it.
struct SpPieces {
  const VocabSpec& spec;
  std::span<const KeptToken> kept;  // if empty, user-defined tokens are treated like normal ones
  const SpecialMatcher& kept_texts;
  const UnknownRule& unknown;

  /// Whether the token is a piece with its text in `spec`.
  [[nodiscard]] bool holds(size_t id) const noexcept {
    const TokenType type = spec.types[id];
    return type == TokenType::kNormal || type == TokenType::kUnused ||
           (type == TokenType::kUserDefined && kept.empty());
  }
};

/// Threads: immutable.
class SpEncoder {
 public:
  virtual ~SpEncoder() = default;
  /// Appends the ids of `text`, UTF-8 of less than 4 GiB. On failure some ids may have been
  /// appended.
  virtual Status encode(std::string_view text, std::vector<int32_t>* out) const = 0;
};

/// Byte-pair encoding: of all adjacent pairs that form a piece, the one with the best score is
/// merged first, the leftmost of equals. Kept tokens stay whole. O(n log n).
std::unique_ptr<const SpEncoder> make_sp_bpe(const SpPieces& pieces);

/// The pieces with the best sum of scores. O(n * bytes of the longest piece).
std::unique_ptr<const SpEncoder> make_sp_unigram(const SpPieces& pieces);

/// Bytes of the character that `text` begins with; `text` is UTF-8 and not empty.
inline size_t character_bytes(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

}  // namespace gen::tokenizer

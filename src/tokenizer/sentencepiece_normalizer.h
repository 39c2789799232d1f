// SPDX-License-Identifier: Apache-2.0
// SpNormalizer: SentencePiece's normalisation of a text before it is split into pieces. Used by
// sentencepiece_tokenizer.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "tokenizer/sentencepiece_charsmap.h"
#include "tokenizer/special_matcher.h"

namespace gen::tokenizer {

/// U+2581, which represents a space in pieces.
inline constexpr std::string_view kSpaceSign = "\xE2\x96\x81";

/// A piece's text with a space in place of each kSpaceSign.
std::string with_plain_spaces(std::string_view text);

struct SpNormalizerRules {
  bool add_dummy_prefix = false;          // a space before the text
  bool remove_extra_whitespaces = false;  // at both ends, and all but one of several in a row
  bool escape_whitespaces = true;         // spaces become kSpaceSign
};

/// Threads: immutable.
class SpNormalizer {
 public:
  SpNormalizer(SpNormalizerRules rules, Charsmap map) : rules_(rules), map_(std::move(map)) {}

  /// Appends the normalised `text`, always UTF-8. A text of `kept` is not replaced. If `goes_on`,
  /// the text follows another one: no space is inserted before it and none is removed at its ends.
  /// kInvalidArgument for more than 4 GiB.
  Status normalize(std::string_view text, bool goes_on, const SpecialMatcher& kept,
                   std::string* out) const;

 private:
  struct Prefix {
    size_t bytes;  // of the text
    std::string_view becomes;
  };
  [[nodiscard]] Prefix prefix(std::string_view text, const SpecialMatcher& kept) const noexcept;
  [[nodiscard]] std::string_view space() const noexcept {
    return rules_.escape_whitespaces ? kSpaceSign : " ";
  }
  void add(std::string_view text, std::string* out) const;

  SpNormalizerRules rules_;
  Charsmap map_;
};

}  // namespace gen::tokenizer

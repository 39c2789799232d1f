// SPDX-License-Identifier: Apache-2.0
// The regular expressions that split a text into words, by the name that GGUF files give a model
// family's pre-tokenizer (tokenizer.ggml.pre). To add a family, add its rules and names in
// pretokenizer_data.cpp and a line to pretokenizer_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gen::tokenizer {

enum PretokenizerFlag : uint32_t {
  /// A word that is itself a token is used without merging.
  kWholeWordsFirst = 1U << 0,
  /// Texts are normalised to NFC first. Only for families whose own tokenizer is known to do so.
  kFormC = 1U << 1,
  /// Texts begin with BOS where a file does not say whether they do.
  kBeginsWithBos = 1U << 2,
  /// Matches of the first expression are cut into three characters each, counted from their end.
  kThreesFromRight = 1U << 3,
  /// A match of white space that does not end in a line break is cut into 512 characters each, then
  /// 256, 128 and so on.
  kSpacesByPowers = 1U << 4,
};

struct PretokenizerRules {
  /// PCRE2 syntax with UTF. Each expression splits every stretch left by the previous one into its
  /// matches and the texts between them.
  std::span<const char* const> expressions;
  uint32_t flags = 0;  // of PretokenizerFlag
};

/// Null for an unknown name.
const PretokenizerRules* find_pretokenizer_rules(std::string_view name) noexcept;

/// A name for each kind of words, with commas between them.
std::string pretokenizer_examples();

}  // namespace gen::tokenizer

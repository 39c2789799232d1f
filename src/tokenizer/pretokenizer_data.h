// SPDX-License-Identifier: Apache-2.0
// The regular expressions that split a text into words, by the name that GGUF files give a model
// family's pre-tokenizer (tokenizer.ggml.pre). To add a family, add its rules and names in
// pretokenizer_data.cpp and a line to pretokenizer_test.cpp.
#pragma once

#include <span>
#include <string_view>

namespace gen::tokenizer {

struct PretokenizerRules {
  /// PCRE2 syntax with UTF. Each expression splits every stretch left by the previous one into its
  /// matches and the texts between them.
  std::span<const char* const> expressions;
  /// A word that is itself a token is used without merging.
  bool whole_words_first;
  /// Texts are normalised to NFC first. Only for families whose own tokenizer is known to do so.
  bool form_c = false;
};

/// Null for an unknown name.
const PretokenizerRules* find_pretokenizer_rules(std::string_view name) noexcept;

}  // namespace gen::tokenizer

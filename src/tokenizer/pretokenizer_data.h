// SPDX-License-Identifier: Apache-2.0
// Which regular expressions cut a text into words, by the name that GGUF files give a model
// family's pre-tokenizer (tokenizer.ggml.pre). To add a family, add its rules and names in
// pretokenizer_data.cpp and a line to pretokenizer_test.cpp.
#pragma once

#include <span>
#include <string_view>

namespace gen::tokenizer {

struct PretokenizerRules {
  /// PCRE2 syntax with UTF. Each expression cuts every stretch the one before it left into its
  /// matches and what is between them.
  std::span<const char* const> expressions;
  /// A word that is a token itself is not put together by merges.
  bool whole_words_first;
  /// Texts are brought into Unicode's form C before anything else. Only for families whose own
  /// tokenizer is known to do that.
  bool form_c = false;
};

/// Null for an unknown name.
const PretokenizerRules* find_pretokenizer_rules(std::string_view name) noexcept;

}  // namespace gen::tokenizer

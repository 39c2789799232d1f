// SPDX-License-Identifier: Apache-2.0
// Small vocabularies for tests.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/mask/vocabulary.h"

namespace gen::grammar::test {

/// Tokens with these bytes, then `n_named` tokens without, "<0>" and so on, then the end token.
inline std::shared_ptr<const Vocabulary> vocabulary(const std::vector<std::string>& texts,
                                                    int n_named = 0) {
  std::vector<TokenText> tokens;
  for (const std::string& text : texts) tokens.push_back({text, ""});
  for (int i = 0; i < n_named; ++i) tokens.push_back({"", "<" + std::to_string(i) + ">"});
  tokens.push_back({"</s>", ""});
  const int32_t end = static_cast<int32_t>(tokens.size()) - 1;
  return Vocabulary::create(std::move(tokens), {&end, 1}).value();
}

/// All bytes, so that every text can be spelt.
inline std::vector<std::string> all_bytes() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  return texts;
}

inline bool has(const std::vector<uint64_t>& mask, int32_t token) {
  return ((mask[static_cast<size_t>(token) / 64] >> (token % 64)) & 1) != 0;
}

}  // namespace gen::grammar::test

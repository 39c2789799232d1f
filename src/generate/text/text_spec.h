// SPDX-License-Identifier: Apache-2.0
// TextSpec: properties shared by all texts of a generator, for transcript.h.
#pragma once

#include <cstdint>
#include <span>

namespace gen::tokenizer {
class Tokenizer;
}  // namespace gen::tokenizer

namespace gen::generate {

struct TextSpec {
  const tokenizer::Tokenizer* tokenizer = nullptr;  // null: texts are empty
  std::span<const int32_t> end_tokens;              // tokens that end a text
  int32_t vocab_size = 0;
  int32_t max_seq_len = 0;
  bool shifts = false;  // a full context does not end a text
};

}  // namespace gen::generate

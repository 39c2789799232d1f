// SPDX-License-Identifier: Apache-2.0
// What must hold of a VocabSpec before any tokenizer is built from it. Vocabularies come from files
// that may be hostile, so nothing here is assumed. Used by tokenizer.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "tokenizer/vocab.h"

namespace gen::tokenizer {

inline constexpr size_t kMaxTokens = size_t{1} << 24;
/// Of one token's text. The longest in use are runs of some hundred spaces. Encoding a byte may
/// take as long as this.
inline constexpr size_t kMaxTokenBytes = 4096;

/// The byte that a text of the form <0x0A> stands for (two upper-case digits), or -1.
int32_t parse_byte_token(std::string_view text) noexcept;

/// Checks all tables and ids (kFormat naming the entry) and completes the spec: missing scores and
/// types of a BPE vocabulary are filled in, a type of 0 ("undefined") becomes normal, and tokens
/// whose texts are well-known control texts such as <|im_end|> become control tokens.
Status check_and_complete(VocabSpec* spec);

}  // namespace gen::tokenizer

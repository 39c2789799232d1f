// SPDX-License-Identifier: Apache-2.0
// Invariants of a VocabSpec that are checked before any tokenizer is built from it. Vocabularies
// come from files that may be hostile, so nothing is assumed. Used by tokenizer.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "tokenizer/vocab.h"

namespace gen::tokenizer {

inline constexpr size_t kMaxTokens = size_t{1} << 24;
/// Maximum length of a token's text. The longest in use are runs of some hundred spaces. The time
/// to encode a byte may be proportional to it.
inline constexpr size_t kMaxTokenBytes = 4096;

/// The byte denoted by a text of the form <0x0A> (two upper-case digits), or -1.
int32_t parse_byte_token(std::string_view text) noexcept;

/// Checks all tables and ids (kFormat naming the entry) and completes the spec: missing scores and
/// types of a BPE vocabulary are filled in, a type of 0 ("undefined") becomes normal, and tokens
/// whose texts are well-known control texts such as <|im_end|> become control tokens.
Status check_and_complete(VocabSpec* spec);

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// Small vocabularies made by hand and random texts, shared by the tokenizer tests. The byte-level
// BPE one gives byte b the id b, the SentencePiece one the id 3 + b, so that expected ids can be
// written down.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace gen::tokenizer::test {

/// UTF-8 of a code point below 0x800.
inline std::string utf8_of(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  return {static_cast<char>(0xC0 | (code_point >> 6)),
          static_cast<char>(0x80 | (code_point & 0x3F))};
}

/// GPT-2's table, as its authors describe it: the bytes of '!'..'~', U+00A1..U+00AC and
/// U+00AE..U+00FF keep their character, the others take U+0100, U+0101, … in order.
inline std::vector<std::string> byte_characters() {
  std::vector<std::string> characters(256);
  uint32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool keeps =
        ('!' <= b && b <= '~') || (0xA1 <= b && b <= 0xAC) || (0xAE <= b && b <= 0xFF);
    characters[b] = utf8_of(keeps ? b : next++);
  }
  return characters;
}

/// Ids 0..255 are the bytes; merge i makes token 256 + i. In merges a space is written as "Ġ".
inline VocabSpec bpe_vocab(std::vector<std::string> merges, std::string pre = "gpt-2") {
  VocabSpec spec;
  spec.kind = VocabKind::kByteBpe;
  spec.pre = std::move(pre);
  spec.tokens = byte_characters();
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ', 1);
    spec.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  spec.merges = std::move(merges);
  spec.types.assign(spec.tokens.size(), TokenType::kNormal);
  spec.scores.assign(spec.tokens.size(), 0);
  return spec;
}

/// Appends a token and returns its id.
inline int32_t add_token(VocabSpec* spec, std::string text, TokenType type, float score = 0) {
  spec->tokens.push_back(std::move(text));
  spec->types.push_back(type);
  spec->scores.push_back(score);
  return static_cast<int32_t>(spec->tokens.size() - 1);
}

/// 0 unknown, 1 <s>, 2 </s>, 3 + b the byte b, then the pieces from 259 on, earlier ones better. A
/// space is written as "_" here and becomes U+2581.
inline VocabSpec sp_vocab(const std::vector<std::string>& pieces) {
  VocabSpec spec;
  spec.kind = VocabKind::kSentencePiece;
  add_token(&spec, "<unk>", TokenType::kUnknown);
  spec.bos = add_token(&spec, "<s>", TokenType::kControl);
  spec.eos = add_token(&spec, "</s>", TokenType::kControl);
  spec.unk = 0;
  spec.add_space_prefix = true;
  for (uint32_t b = 0; b < 256; ++b) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    add_token(&spec, {'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'}, TokenType::kByte);
  }
  float score = 0;
  for (const std::string& piece : pieces) {
    std::string text;
    for (const char c : piece) c == '_' ? text.append("\xE2\x96\x81") : text.append(1, c);
    add_token(&spec, text, TokenType::kNormal, score);
    score -= 1;
  }
  return spec;
}

inline std::shared_ptr<const Tokenizer> must_create(VocabSpec spec) {
  auto made = create_tokenizer(std::move(spec));
  return made.ok() ? *made : nullptr;
}

using Ids = std::vector<int32_t>;

/// The ids of `text`, or {-1} on failure.
inline Ids encode(const Tokenizer& tokenizer, std::string_view text, uint32_t flags = 0) {
  Ids ids;
  return tokenizer.encode(text, flags, &ids).ok() ? ids : Ids{-1};
}

inline std::string decode(const Tokenizer& tokenizer, const Ids& ids,
                          bool special_as_text = false) {
  std::string text;
  return tokenizer.decode(ids, special_as_text, &text).ok() ? text : "(failed)";
}

/// Words, spaces, punctuation and characters of every length; never U+2581.
inline std::string random_text(std::mt19937* random, size_t characters) {
  static const char* const kParts[] = {"a",
                                       "b",
                                       "th",
                                       "e",
                                       " ",
                                       " ",
                                       "  ",
                                       "\n",
                                       "'s",
                                       "12",
                                       "!",
                                       "\t",
                                       "\xC3\xA9",
                                       "\xE6\x97\xA5",
                                       "\xF0\x9F\xA6\x99",
                                       "\xEF\xBF\xBD",
                                       "\xC2\xA0",
                                       "<s>",
                                       "A",
                                       ".",
                                       "\r\n"};
  std::string text;
  for (size_t i = 0; i < characters; ++i) text += kParts[(*random)() % std::size(kParts)];
  return text;
}

}  // namespace gen::tokenizer::test

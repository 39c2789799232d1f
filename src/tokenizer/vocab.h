// SPDX-License-Identifier: Apache-2.0
// VocabSpec: a vocabulary as plain data, before any checks. A reader of model files or a test fills
// it; create_tokenizer (tokenizer.h) validates it and builds the tokenizer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gen::tokenizer {

enum class VocabKind : int32_t {
  kSentencePiece,  // GGUF tokenizer.ggml.model "llama"
  kByteBpe,        // "gpt2"
  kTextBpe,        // "gemma4", "whitespace"
  kUnigram,        // "t5"
  kWordPiece,      // "bert"
  kRwkv,           // "rwkv"
  kPlamo2,         // "plamo2"
  kHybridDna,      // "hybriddna"
};

/// Whether words, split by the expressions of VocabSpec::pre, are written in bytes.
constexpr bool is_byte_bpe(VocabKind kind) noexcept {
  return kind == VocabKind::kByteBpe || kind == VocabKind::kHybridDna;
}

/// Whether a piece's score decides, so that every one must be there.
constexpr bool needs_scores(VocabKind kind) noexcept {
  return kind == VocabKind::kSentencePiece || kind == VocabKind::kUnigram ||
         kind == VocabKind::kPlamo2;
}

/// Numbers are those of SentencePiece and of tokenizer.ggml.token_type.
enum class TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

/// The VocabSpec::pre of BPE over characters that drops white space.
inline constexpr std::string_view kPreWhitespace = "whitespace";

/// Each field has the GGUF key that fills it beside it; without the key it keeps its default.
struct VocabSpec {
  VocabKind kind = VocabKind::kSentencePiece;  // tokenizer.ggml.model
  std::vector<std::string> tokens;             // tokenizer.ggml.tokens
  std::vector<float> scores;                   // .scores; see needs_scores
  std::vector<TokenType>
      types;  // .token_type; the same kinds need them, else empty means all normal
  std::vector<std::string> merges;  // .merges, "left right", best first (BPE); without any, the
                                    // lower id is the better merge (byte-level BPE)
  std::string pre = "default";      // .pre: whose pre-tokenizer (BPE)

  // -1: none. If the key is missing, the reader must set the family's default here.
  int32_t bos = -1;         // .bos_token_id
  int32_t eos = -1;         // .eos_token_id
  int32_t unk = -1;         // .unknown_token_id
  int32_t sep = -1;         // .seperator_token_id (sic)
  int32_t pad = -1;         // .padding_token_id
  int32_t eot = -1;         // .eot_token_id, end of turn
  int32_t eom = -1;         // .eom_token_id, end of message
  int32_t fim_prefix = -1;  // .fim_pre_token_id; older files: .prefix_token_id
  int32_t fim_suffix = -1;  // .fim_suf_token_id, .suffix_token_id
  int32_t fim_middle = -1;  // .fim_mid_token_id, .middle_token_id

  bool add_bos = false;  // .add_bos_token: the default for callers
  bool add_space_prefix =
      false;  // .add_space_prefix; the reader's default is true for SentencePiece
  bool remove_extra_whitespaces = false;  // .remove_extra_whitespaces
  bool escape_whitespaces = true;         // spaces are U+2581 in the pieces (SentencePiece)
  std::string charsmap;                   // .precompiled_charsmap (unigram), see Charsmap
  bool lowercase = true;                  // .normalizer.lowercase (WordPiece, "whitespace")
  bool strip_accents = true;              // .normalizer.strip_accents (WordPiece)
  // White space to the right of a special token belongs to it and gives no tokens. True for Phi-3,
  // whose GGUF indicates it only through general.name.
  bool special_strips_right = false;

  std::vector<int32_t> suppressed;  // .suppress_tokens: never generated where a call says nothing
  std::string chat_template;        // tokenizer.chat_template
};

}  // namespace gen::tokenizer

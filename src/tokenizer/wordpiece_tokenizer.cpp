// SPDX-License-Identifier: Apache-2.0
// WordPieceTokenizer, see wordpiece_tokenizer.h. The rules are those of BERT's own tokenizer: white
// space and each sign or Han letter end a word, control characters vanish.
#include "tokenizer/wordpiece_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/letter_data.h"
#include "tokenizer/lower_case.h"
#include "tokenizer/nfc.h"
#include "tokenizer/piece_trie.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/vocab_tokenizer.h"
#include "tokenizer/white_space.h"

namespace gen::tokenizer {
namespace {

bool within(std::span<const CharacterRange> all, uint32_t character) noexcept {
  const auto after = std::upper_bound(
      all.begin(), all.end(), character,
      [](uint32_t wanted, const CharacterRange& one) { return wanted < one.first; });
  return after != all.begin() && character <= (after - 1)->last;
}

bool is_han(uint32_t c) noexcept {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
         (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

// Every ASCII sign counts, also those that Unicode does not call punctuation.
bool is_sign(uint32_t c) noexcept {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  return within(punctuation(), c);
}

class WordPieceTokenizer final : public VocabTokenizer {
 public:
  WordPieceTokenizer(VocabSpec spec_in, SpecialRules rules)
      : VocabTokenizer(std::move(spec_in), rules), trie_(pieces()) {
    for (size_t i = 0; i < spec().tokens.size(); ++i) {
      add_piece(is_piece(i) ? with_plain_spaces(spec().tokens[i]) : spec().tokens[i]);
    }
  }

 protected:
  Status encode_text(std::string_view text, bool /*goes_on*/,
                     std::vector<int32_t>* out) const override {
    std::string word(kSpaceSign);
    for (size_t at = 0; at < text.size();) {
      const uint32_t character = utf8_next(text, &at);
      if (is_white_space(character)) {
        GEN_TRY(end_word(&word, out));
        continue;
      }
      if (character == 0xFFFD || within(controls(), character)) continue;
      const Decomposed parts =
          spec().strip_accents ? decompose(character) : Decomposed{{character}, 1};
      for (size_t i = 0; i < parts.count; ++i) {
        GEN_TRY(add_character(parts.characters[i], &word, out));
      }
    }
    return end_word(&word, out);
  }

 private:
  [[nodiscard]] bool is_piece(size_t id) const noexcept {
    const TokenType type = spec().types[id];
    return type == TokenType::kNormal || type == TokenType::kUnused ||
           type == TokenType::kUserDefined;
  }

  [[nodiscard]] std::vector<TriePiece> pieces() const {
    std::vector<TriePiece> all;
    for (size_t i = 0; i < spec().tokens.size(); ++i) {
      if (is_piece(i)) all.push_back({spec().tokens[i], static_cast<int32_t>(i)});
    }
    return all;
  }

  Status add_character(uint32_t character, std::string* word, std::vector<int32_t>* out) const {
    if (spec().strip_accents && within(accents(), character)) return {};
    const bool alone = is_sign(character) || is_han(character);
    if (alone) GEN_TRY(end_word(word, out));
    utf8_append(spec().lowercase ? lower_case(character) : character, word);
    if (alone) GEN_TRY(end_word(word, out));
    return {};
  }

  Status end_word(std::string* word, std::vector<int32_t>* out) const {
    const std::string_view text = *word;
    if (text.size() == kSpaceSign.size()) return {};
    const size_t first = out->size();
    for (size_t begin = 0; begin < text.size();) {
      const PieceTrie::Longest longest = trie_.longest(text, begin);
      if (longest.piece < 0) {  // the whole word is unknown then
        out->resize(first);
        if (spec().unk < 0) {
          return error(Code::kTokenizer, "text holds a word that the vocabulary cannot express");
        }
        out->push_back(spec().unk);
        break;
      }
      out->push_back(longest.piece);
      begin = longest.end;
    }
    word->resize(kSpaceSign.size());
    return {};
  }

  PieceTrie trie_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_wordpiece_tokenizer(VocabSpec spec) {
  spec.merges = {};
  SpecialRules rules;
  rules.space_prefix = true;
  return std::shared_ptr<const Tokenizer>(
      std::make_shared<WordPieceTokenizer>(std::move(spec), rules));
}

}  // namespace gen::tokenizer

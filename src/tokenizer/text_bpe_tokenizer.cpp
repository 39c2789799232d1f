// SPDX-License-Identifier: Apache-2.0
// TextBpeTokenizer, see text_bpe_tokenizer.h. A line is cut where no merge can join two characters,
// and what lies between two cuts is kept in a small table, as words repeat.
#include "tokenizer/text_bpe_tokenizer.h"

#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/bpe_merges.h"
#include "tokenizer/lower_case.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/vocab_check.h"
#include "tokenizer/vocab_tokenizer.h"
#include "tokenizer/white_space.h"
#include "tokenizer/word_cache.h"
#include "tokenizer/word_cuts.h"

namespace gen::tokenizer {
namespace {

std::string with_signs(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      out.append(kSpaceSign);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// With a line break for each white space.
std::string words_of(std::string_view text, bool lowercase) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = utf8_next(text, &at);
    utf8_append(is_white_space(c) ? '\n' : lowercase ? lower_case(c) : c, &out);
  }
  return out;
}

class TextBpeTokenizer final : public VocabTokenizer {
 public:
  TextBpeTokenizer(VocabSpec spec_in, MergeTable merges)
      : VocabTokenizer(std::move(spec_in), SpecialRules{}), merges_(std::move(merges)) {
    bytes_.fill(-1);
    drops_space_ = spec().pre == kPreWhitespace;
    whole_breaks_ = spec().pre != "sarvam-moe" && !drops_space_;
    for (size_t i = 0; i < spec().tokens.size(); ++i) add(static_cast<int32_t>(i));
  }

 protected:
  Status encode_text(std::string_view text, bool /*goes_on*/,
                     std::vector<int32_t>* out) const override {
    const std::string all = drops_space_ ? words_of(text, spec().lowercase) : with_signs(text);
    WordCache cache(all.size());
    WordMerger merger(merges_);
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = end_of_word(all, begin);
      const std::string_view word(all.data() + begin, end - begin);
      begin = end;
      if (drops_space_ && word[0] == '\n') continue;
      WordCache::Slot* const slot = cache.slot_of(word);
      if (WordCache::copy(slot, word, out)) continue;
      const size_t first = out->size();
      GEN_TRY(merge(word, &merger, out));
      WordCache::store(slot, word, first, *out);
    }
    return {};
  }

 private:
  void add(int32_t id) {
    const std::string& text = spec().tokens[static_cast<size_t>(id)];
    const TokenType type = spec().types[static_cast<size_t>(id)];
    if (type == TokenType::kByte) {
      const int32_t byte = parse_byte_token(text);
      bytes_[static_cast<size_t>(byte)] = id;
      const char piece = static_cast<char>(byte);
      add_piece({&piece, 1});
      return;
    }
    if (type == TokenType::kControl || type == TokenType::kUnknown) {
      add_piece(text);
      return;
    }
    // A run of spaces or of line breaks may be a user's token and what merges make as well.
    add_piece(drops_space_ ? text : with_plain_spaces(text));
    cuts_.forbid(text);
    size_t first = 0;
    const uint32_t character = utf8_next(text, &first);
    if (first == text.size()) characters_.emplace(character, id);
    if (whole_breaks_ && text.find_first_not_of('\n') == std::string::npos)
      line_breaks_.emplace(text.size(), id);
  }

  /// Line breaks in a row are a word.
  size_t end_of_word(std::string_view text, size_t begin) const noexcept {
    size_t end = begin;
    const bool breaks = text[begin] == '\n';
    do {
      utf8_next(text, &end);
    } while (end < text.size() && (text[end] == '\n') == breaks &&
             (breaks || !cuts_.may_cut(text, end)));
    return end;
  }

  Status merge(std::string_view word, WordMerger* merger, std::vector<int32_t>* out) const {
    if (word[0] == '\n') {
      const auto found = line_breaks_.find(word.size());
      if (found != line_breaks_.end()) {
        out->push_back(found->second);
        return {};
      }
    }
    merger->begin();
    for (size_t at = 0; at < word.size();) {
      const size_t first = at;
      const auto found = characters_.find(utf8_next(word, &at));
      if (found != characters_.end()) {
        merger->push(found->second);
        continue;
      }
      if (bytes_[0] < 0 && spec().unk >= 0) {  // there are all bytes or none
        merger->push(spec().unk);
        continue;
      }
      for (const char c : word.substr(first, at - first)) {
        const int32_t token = bytes_[static_cast<unsigned char>(c)];
        if (token < 0) {
          return error(Code::kTokenizer, "vocabulary has no token for byte 0x%02x",
                       static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
        merger->push(token);
      }
    }
    merger->finish(out);
    return {};
  }

  MergeTable merges_;
  WordCuts cuts_;
  std::array<int32_t, 256> bytes_{};  // -1: none
  bool whole_breaks_ = true;          // a token of line breaks is used without merging
  bool drops_space_ = false;
  std::unordered_map<uint32_t, int32_t> characters_;
  std::unordered_map<size_t, int32_t> line_breaks_;  // by how many
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_text_bpe_tokenizer(VocabSpec spec) {
  MergeTable merges(spec.merges.size());
  GEN_TRY(read_merges(spec.merges, ids_of(spec.tokens), &merges));
  spec.merges = {};  // only used during construction
  return std::shared_ptr<const Tokenizer>(
      std::make_shared<TextBpeTokenizer>(std::move(spec), std::move(merges)));
}

}  // namespace gen::tokenizer

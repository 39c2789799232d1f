// SPDX-License-Identifier: Apache-2.0
// RwkvTokenizer, see rwkv_tokenizer.h.
#include "tokenizer/rwkv_tokenizer.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "tokenizer/piece_trie.h"
#include "tokenizer/vocab_tokenizer.h"

namespace gen::tokenizer {
namespace {

int32_t nibble(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// False for a broken escape.
bool unescape(std::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out->push_back(text[i]);
      continue;
    }
    if (++i == text.size()) return false;
    switch (text[i]) {
      case 't':
        out->push_back('\t');
        break;
      case 'n':
        out->push_back('\n');
        break;
      case 'r':
        out->push_back('\r');
        break;
      case 'x': {
        const int32_t high = i + 2 < text.size() ? nibble(text[i + 1]) : -1;
        const int32_t low = i + 2 < text.size() ? nibble(text[i + 2]) : -1;
        if (high < 0 || low < 0) return false;
        out->push_back(static_cast<char>(high * 16 + low));
        i += 2;
        break;
      }
      default:  // a quote, a backslash
        out->push_back(text[i]);
    }
  }
  return true;
}

// Control tokens stand for their names, which no text contains unless it may.
bool is_plain(TokenType type) noexcept {
  return type != TokenType::kControl && type != TokenType::kUnknown;
}

class RwkvTokenizer final : public VocabTokenizer {
 public:
  RwkvTokenizer(VocabSpec spec_in, const std::vector<std::string>& bytes)
      : VocabTokenizer(std::move(spec_in), SpecialRules{}), trie_(pieces(bytes)) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      add_piece(is_plain(spec().types[i]) ? bytes[i] : spec().tokens[i]);
    }
  }

 protected:
  Status encode_text(std::string_view text, bool /*goes_on*/,
                     std::vector<int32_t>* out) const override {
    for (size_t begin = 0; begin < text.size();) {
      PieceTrie::Longest longest = trie_.longest(text, begin);
      if (longest.piece < 0) longest = {spec().unk, begin + 1};
      if (longest.piece < 0) {
        return error(Code::kTokenizer, "vocabulary has no token for byte 0x%02x",
                     static_cast<unsigned>(static_cast<unsigned char>(text[begin])));
      }
      out->push_back(longest.piece);
      begin = longest.end;
    }
    return {};
  }

 private:
  // Of two tokens with the same bytes the last counts, as in llama.cpp.
  [[nodiscard]] std::vector<TriePiece> pieces(const std::vector<std::string>& bytes) const {
    std::unordered_map<std::string_view, int32_t> ids;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (is_plain(spec().types[i]) && !bytes[i].empty()) ids[bytes[i]] = static_cast<int32_t>(i);
    }
    std::vector<TriePiece> all;
    all.reserve(ids.size());
    for (const auto& [text, id] : ids) all.push_back({text, id});
    return all;
  }

  PieceTrie trie_;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_rwkv_tokenizer(VocabSpec spec) {
  spec.merges = {};
  std::vector<std::string> bytes(spec.tokens.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!is_plain(spec.types[i])) continue;
    if (!unescape(spec.tokens[i], &bytes[i])) {
      return error(Code::kFormat, "token %zu has a broken escape", i);
    }
  }
  return std::shared_ptr<const Tokenizer>(std::make_shared<RwkvTokenizer>(std::move(spec), bytes));
}

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// See plamo2_tokenizer.h. From the end of a text on, each place gets the least cost of what follows
// it. Costs are scores in units of 1e-4, as the family's own tokenizer counts.
#include "tokenizer/plamo2_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "tokenizer/piece_trie.h"
#include "tokenizer/sentencepiece_encoder.h"
#include "tokenizer/vocab_check.h"
#include "tokenizer/vocab_tokenizer.h"

namespace gen::tokenizer {
namespace {

constexpr int64_t kUnknownCost = 10'000'000;  // of a character's bytes together
constexpr int64_t kMostCost = 20'000'000;     // a piece that costs as much is never used
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

int64_t cost_of(float score) noexcept {
  const double cost = std::round(-double{score} * 1e4);
  return static_cast<int64_t>(std::clamp(cost, -1e9, 1e9));
}

class Plamo2Tokenizer final : public VocabTokenizer {
 public:
  explicit Plamo2Tokenizer(VocabSpec spec_in)
      : VocabTokenizer(std::move(spec_in), SpecialRules{}), trie_(pieces()) {
    costs_.reserve(spec().scores.size());
    for (const float score : spec().scores) costs_.push_back(cost_of(score));
    for (size_t i = 0; i < spec().tokens.size(); ++i) {
      const std::string& text = spec().tokens[i];
      if (spec().types[i] != TokenType::kByte) {
        add_piece(text);
        continue;
      }
      const auto byte = static_cast<unsigned char>(parse_byte_token(text));
      bytes_[byte] = static_cast<int32_t>(i);
      const char as_text = static_cast<char>(byte);
      add_piece({&as_text, 1});
    }
  }

 protected:
  Status encode_text(std::string_view text, bool goes_on,
                     std::vector<int32_t>* out) const override {
    if (!goes_on && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    std::vector<int64_t> cost(text.size() + 1);   // of what follows; of characters' beginnings
    std::vector<int32_t> piece(text.size(), -1);  // that comes next; -1: bytes of a character
    for (size_t begin = text.size(); begin-- > 0;) {
      if ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) continue;
      cost[begin] = cost[begin + character_bytes(text.substr(begin))] + kUnknownCost;
      uint32_t node = PieceTrie::kRoot;
      for (size_t end = begin; end < text.size();) {
        node = trie_.step(node, text[end]);
        if (node == PieceTrie::kNowhere) break;
        ++end;
        const int32_t id = trie_.piece(node);
        if (id < 0) continue;
        const int64_t sum = cost[end] + costs_[static_cast<size_t>(id)];
        if (sum > cost[begin]) continue;
        cost[begin] = sum;
        piece[begin] = id;
      }
    }
    for (size_t begin = 0; begin < text.size();) {
      if (piece[begin] >= 0) {
        out->push_back(piece[begin]);
        begin += spec().tokens[static_cast<size_t>(piece[begin])].size();
        continue;
      }
      for (const char c : text.substr(begin, character_bytes(text.substr(begin)))) {
        out->push_back(bytes_[static_cast<unsigned char>(c)]);
        ++begin;
      }
    }
    return {};
  }

 private:
  // Not control tokens, whose names a text may contain only where it is told so.
  [[nodiscard]] std::vector<TriePiece> pieces() const {
    std::vector<TriePiece> all;
    for (size_t i = 0; i < spec().tokens.size(); ++i) {
      const TokenType type = spec().types[i];
      const bool is_text = type == TokenType::kNormal || type == TokenType::kUnused;
      if (!is_text || cost_of(spec().scores[i]) >= kMostCost) continue;
      all.push_back({spec().tokens[i], static_cast<int32_t>(i)});
    }
    return all;
  }

  PieceTrie trie_;
  std::vector<int64_t> costs_;           // [vocab size]
  std::array<int32_t, 256> bytes_ = {};  // [byte]
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_plamo2_tokenizer(VocabSpec spec) {
  spec.merges = {};
  if (std::find(spec.types.begin(), spec.types.end(), TokenType::kByte) == spec.types.end()) {
    return error(Code::kFormat, "vocabulary has byte tokens for 0 of 256 bytes");
  }
  return std::shared_ptr<const Tokenizer>(std::make_shared<Plamo2Tokenizer>(std::move(spec)));
}

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// BpeTokenizer, see bpe_tokenizer.h. Words repeat, so a long text keeps a small table of earlier
// words and copies their ids from the output. A vocabulary without merges is a SentencePiece one
// whose better pieces are those with the lower ids.
#include "tokenizer/bpe_tokenizer.h"

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/bpe_merges.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/dna_regions.h"
#include "tokenizer/nfc.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/sentencepiece_encoder.h"
#include "tokenizer/vocab_check.h"
#include "tokenizer/vocab_tokenizer.h"
#include "tokenizer/word_cache.h"

namespace gen::tokenizer {
namespace {

struct Parts {
  MergeTable merges;
  bool by_id = false;                    // the vocabulary has no merges
  std::array<int32_t, 256> byte_tokens;  // -1: the vocabulary cannot express the byte
};

std::array<int32_t, 256> find_byte_tokens(const VocabSpec& spec, const TokenIds& ids,
                                          const ByteAlphabet& alphabet) {
  std::array<int32_t, 256> tokens{};
  tokens.fill(-1);
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.types[i] != TokenType::kByte) continue;
    tokens[static_cast<size_t>(parse_byte_token(spec.tokens[i]))] = static_cast<int32_t>(i);
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t character = alphabet.character(static_cast<uint8_t>(byte));
    char text[2] = {static_cast<char>(character), 0};
    size_t length = 1;
    if (character >= 0x80) {
      text[0] = static_cast<char>(0xC0 | (character >> 6));
      text[1] = static_cast<char>(0x80 | (character & 0x3F));
      length = 2;
    }
    const auto found = ids.find({text, length});
    if (found != ids.end()) tokens[byte] = found->second;
  }
  return tokens;
}

class BpeTokenizer final : public VocabTokenizer {
 public:
  BpeTokenizer(VocabSpec spec, Pretokenizer pretokenizer, Parts parts,
               const ByteAlphabet& alphabet);

 protected:
  Status encode_text(std::string_view text, bool goes_on, std::vector<int32_t>* out) const override;

 private:
  class Words;

  Status encode_words(std::string_view text, std::vector<int32_t>* out) const;

  [[nodiscard]] bool whole_words_first() const noexcept {
    return parts_.by_id || pretokenizer_.whole_words_first();
  }

  Pretokenizer pretokenizer_;
  Parts parts_;
  ByteAlphabet alphabet_;
  std::unordered_map<std::string, int32_t> whole_words_;  // only where the family wants it
  SpecialMatcher no_kept_texts_;
  UnknownRule unknown_;
  std::optional<DnaRegions> dna_;           // of that kind, if it has the tokens
  std::unique_ptr<const SpEncoder> by_id_;  // merges words that are written in the alphabet
};

class BpeTokenizer::Words final : public WordSink {
 public:
  Words(const BpeTokenizer& owner, size_t text_bytes, std::vector<int32_t>* out)
      : owner_(owner), out_(out), merger_(owner.parts_.merges), cache_(text_bytes) {}

  Status word(std::string_view text) override {
    WordCache::Slot* slot = cache_.slot_of(text);
    if (WordCache::copy(slot, text, out_)) return {};
    const size_t first = out_->size();
    GEN_TRY(merge(text));
    WordCache::store(slot, text, first, *out_);
    return {};
  }

 private:
  Status merge(std::string_view text) {
    if (!owner_.whole_words_.empty()) {
      key_.assign(text);
      const auto found = owner_.whole_words_.find(key_);
      if (found != owner_.whole_words_.end()) {
        out_->push_back(found->second);
        return {};
      }
    }
    if (owner_.by_id_ != nullptr) {
      key_.clear();
      for (const char c : text) {
        utf8_append(owner_.alphabet_.character(static_cast<uint8_t>(c)), &key_);
      }
      return owner_.by_id_->encode(key_, out_);
    }
    merger_.begin();
    for (const char c : text) {
      int32_t token = owner_.parts_.byte_tokens[static_cast<unsigned char>(c)];
      if (token < 0) token = owner_.spec().unk;
      if (token < 0) {
        return error(Code::kTokenizer, "vocabulary has no token for byte 0x%02x",
                     static_cast<unsigned>(static_cast<unsigned char>(c)));
      }
      merger_.push(token);
    }
    merger_.finish(out_);
    return {};
  }

  const BpeTokenizer& owner_;
  std::vector<int32_t>* out_;
  WordMerger merger_;
  WordCache cache_;
  std::string key_;
};

BpeTokenizer::BpeTokenizer(VocabSpec spec_in, Pretokenizer pretokenizer, Parts parts,
                           const ByteAlphabet& alphabet)
    : VocabTokenizer(std::move(spec_in), SpecialRules{}),
      pretokenizer_(std::move(pretokenizer)),
      parts_(std::move(parts)),
      alphabet_(alphabet) {
  const bool dna = spec().kind == VocabKind::kHybridDna;
  for (size_t i = 0; i < spec().tokens.size(); ++i) {
    const std::string& text = spec().tokens[i];
    const TokenType type = spec().types[i];
    if (type == TokenType::kByte) {
      const char byte = static_cast<char>(parse_byte_token(text));
      add_piece({&byte, 1});
    } else if (type == TokenType::kNormal || type == TokenType::kUnused) {
      const auto bases = dna ? bases_of(text) : std::nullopt;
      std::string bytes = bases ? std::string(*bases) : alphabet.to_bytes(text);
      add_piece(bytes);
      if (whole_words_first() && type == TokenType::kNormal && !bases) {
        whole_words_.emplace(std::move(bytes), static_cast<int32_t>(i));
      }
    } else {
      add_piece(text);
    }
  }
  if (dna) {
    DnaRegions regions(spec());
    if (regions.usable()) dna_ = std::move(regions);
  }
  if (parts_.by_id) {
    unknown_.id = spec().unk;
    by_id_ = make_sp_bpe({spec(), {}, no_kept_texts_, unknown_});
  }
}

Status BpeTokenizer::encode_text(std::string_view text, bool /*goes_on*/,
                                 std::vector<int32_t>* out) const {
  if (!dna_) return encode_words(text, out);
  for (;;) {
    const std::string_view plain = DnaRegions::take_plain(&text);
    if (!plain.empty()) GEN_TRY(encode_words(plain, out));
    if (text.empty()) return {};
    dna_->take_region(&text, out);
  }
}

Status BpeTokenizer::encode_words(std::string_view text, std::vector<int32_t>* out) const {
  std::string formed;
  if (pretokenizer_.wants_form_c()) text = to_nfc(text, &formed);
  Words words(*this, text.size(), out);
  return pretokenizer_.split(text, &words);
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_bpe_tokenizer(VocabSpec spec) {
  GEN_ASSIGN(Pretokenizer pretokenizer, Pretokenizer::create(spec.pre));
  if (spec.kind == VocabKind::kHybridDna) DnaRegions::make_marks_plain(&spec);
  const ByteAlphabet alphabet;
  Parts parts{MergeTable(spec.merges.size()), spec.merges.empty(), {}};
  if (parts.by_id) {
    for (size_t i = 0; i < spec.tokens.size(); ++i) spec.scores[i] = -static_cast<float>(i);
  }
  {
    const TokenIds ids = ids_of(spec.tokens);
    GEN_TRY(read_merges(spec.merges, ids, &parts.merges));
    parts.byte_tokens = find_byte_tokens(spec, ids, alphabet);
  }
  // Only used during construction, and often as large as the tokens.
  spec.merges = {};
  return std::shared_ptr<const Tokenizer>(std::make_shared<BpeTokenizer>(
      std::move(spec), std::move(pretokenizer), std::move(parts), alphabet));
}

}  // namespace gen::tokenizer

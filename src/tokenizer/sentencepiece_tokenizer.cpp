// SPDX-License-Identifier: Apache-2.0
// SentencePieceTokenizer, see sentencepiece_tokenizer.h.
#include "tokenizer/sentencepiece_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tokenizer/sentencepiece_encoder.h"
#include "tokenizer/sentencepiece_model_file.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/vocab_check.h"
#include "tokenizer/vocab_tokenizer.h"

namespace gen::tokenizer {
namespace {

struct Prepared {
  VocabSpec spec;
  SpModelType type = SpModelType::kBpe;
  Charsmap charsmap;
  std::vector<KeptToken> kept;
  SpecialRules rules;
};

// The unknown token among possibly several, or -1.
int32_t find_unknown(const VocabSpec& spec) {
  if (spec.unk >= 0) {
    const TokenType type = spec.types[static_cast<size_t>(spec.unk)];
    if (type == TokenType::kUnknown || type == TokenType::kControl) return spec.unk;
  }
  const auto found = std::find(spec.types.begin(), spec.types.end(), TokenType::kUnknown);
  return found == spec.types.end() ? -1 : static_cast<int32_t>(found - spec.types.begin());
}

// The vocabulary has byte tokens for all bytes or for none.
UnknownRule make_unknown_rule(const VocabSpec& spec) {
  UnknownRule rule;
  rule.id = find_unknown(spec);
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.types[id] != TokenType::kByte) continue;
    rule.by_bytes = true;
    rule.bytes[static_cast<size_t>(parse_byte_token(spec.tokens[id]))] = static_cast<int32_t>(id);
  }
  return rule;
}

class SentencePieceTokenizer final : public VocabTokenizer {
 public:
  explicit SentencePieceTokenizer(Prepared prepared);

 protected:
  Status encode_text(std::string_view text, bool goes_on, std::vector<int32_t>* out) const override;

 private:
  SpNormalizer normalizer_;
  std::vector<KeptToken> kept_;
  SpecialMatcher kept_texts_;
  UnknownRule unknown_;
  std::unique_ptr<const SpEncoder> encoder_;
};

SentencePieceTokenizer::SentencePieceTokenizer(Prepared prepared)
    : VocabTokenizer(std::move(prepared.spec), prepared.rules),
      normalizer_({.add_dummy_prefix = spec().add_space_prefix,
                   .remove_extra_whitespaces = spec().remove_extra_whitespaces,
                   .escape_whitespaces = spec().escape_whitespaces},
                  std::move(prepared.charsmap)),
      kept_(std::move(prepared.kept)),
      unknown_(make_unknown_rule(spec())) {
  for (const KeptToken& kept : kept_) kept_texts_.add(kept.text, kept.id);
  kept_texts_.finish();
  const SpPieces pieces{spec(), kept_, kept_texts_, unknown_};
  encoder_ = prepared.type == SpModelType::kUnigram ? make_sp_unigram(pieces) : make_sp_bpe(pieces);
  for (size_t i = 0; i < spec().tokens.size(); ++i) {
    const std::string& text = spec().tokens[i];
    const TokenType type = spec().types[i];
    if (type == TokenType::kByte) {
      const char byte = static_cast<char>(parse_byte_token(text));
      add_piece({&byte, 1});
    } else if (spec().escape_whitespaces &&
               (type == TokenType::kNormal || type == TokenType::kUnused)) {
      add_piece(with_plain_spaces(text));
    } else {
      add_piece(text);
    }
  }
}

Status SentencePieceTokenizer::encode_text(std::string_view text, bool goes_on,
                                           std::vector<int32_t>* out) const {
  std::string normalized;
  GEN_TRY(normalizer_.normalize(text, goes_on, kept_texts_, &normalized));
  return encoder_->encode(normalized, out);
}

Result<std::shared_ptr<const Tokenizer>> make(Prepared prepared) {
  return std::shared_ptr<const Tokenizer>(
      std::make_shared<SentencePieceTokenizer>(std::move(prepared)));
}

}  // namespace

Status UnknownRule::append(std::string_view text, size_t first, std::vector<int32_t>* out) const {
  if (by_bytes) {
    for (const char c : text) out->push_back(bytes[static_cast<unsigned char>(c)]);
    return {};
  }
  if (id < 0) {
    return error(Code::kTokenizer, "text holds a character that the vocabulary cannot express");
  }
  if (out->size() == first || out->back() != id) out->push_back(id);
  return {};
}

Result<std::shared_ptr<const Tokenizer>> create_sentencepiece_tokenizer(VocabSpec spec) {
  Prepared prepared;
  prepared.rules.space_prefix = spec.add_space_prefix;
  spec.merges = {};
  if (spec.kind == VocabKind::kUnigram) {
    prepared.type = SpModelType::kUnigram;
    GEN_ASSIGN(prepared.charsmap, Charsmap::create(spec.charsmap));
    spec.charsmap = {};
  }
  prepared.spec = std::move(spec);
  return make(std::move(prepared));
}

Result<std::shared_ptr<const Tokenizer>> load_sentencepiece_model(std::span<const std::byte> file) {
  GEN_ASSIGN(SpModel model, parse_sp_model(file));
  if (model.model_type != SpModelType::kUnigram && model.model_type != SpModelType::kBpe) {
    return error(Code::kUnsupported, "sentencepiece model type %d, supported are 1 and 2",
                 static_cast<int>(model.model_type));
  }
  if (model.treat_whitespace_as_suffix) {
    return error(Code::kUnsupported, "sentencepiece model with white space as suffix");
  }
  if (model.has_denormalizer) {
    return error(Code::kUnsupported, "sentencepiece model with a denormalizer");
  }
  Prepared prepared;
  prepared.type = model.model_type;
  GEN_ASSIGN(prepared.charsmap, Charsmap::create(model.charsmap));

  VocabSpec spec;
  spec.kind = VocabKind::kSentencePiece;
  spec.tokens = std::move(model.pieces);
  spec.scores = std::move(model.scores);
  spec.types = std::move(model.types);
  const auto control_or_none = [&](int32_t id) {
    const bool is_control = id >= 0 && static_cast<size_t>(id) < spec.types.size() &&
                            spec.types[static_cast<size_t>(id)] == TokenType::kControl;
    return is_control ? id : -1;
  };
  spec.bos = control_or_none(model.bos_id);
  spec.eos = control_or_none(model.eos_id);
  spec.pad = control_or_none(model.pad_id);
  spec.add_bos = spec.bos >= 0;
  spec.add_space_prefix = model.add_dummy_prefix;
  spec.remove_extra_whitespaces = model.remove_extra_whitespaces;
  spec.escape_whitespaces = model.escape_whitespaces;
  GEN_TRY(check_and_complete(&spec));
  spec.unk = find_unknown(spec);
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.types[i] != TokenType::kUserDefined) continue;
    prepared.kept.push_back({spec.tokens[i], static_cast<int32_t>(i)});
    // In a text, user-defined pieces are written with spaces.
    if (spec.escape_whitespaces) spec.tokens[i] = with_plain_spaces(spec.tokens[i]);
  }
  prepared.rules.space_prefix = spec.add_space_prefix;
  prepared.rules.space_after_user_tokens = false;
  prepared.rules.split_user_tokens = false;
  prepared.spec = std::move(spec);
  return make(std::move(prepared));
}

}  // namespace gen::tokenizer

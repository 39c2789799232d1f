// SPDX-License-Identifier: Apache-2.0
// SentencePieceTokenizer, see sentencepiece_tokenizer.h.
//
// The library prints to stderr or ends the process when something is wrong that it did not expect,
// and its only switch for that is one for the whole process. So it is given nothing to object to:
// pieces are not empty, not too long, unique, valid UTF-8 and of known types, there is exactly one
// unknown piece and no or all 256 byte pieces, scores are finite, the normalizer's map is sound
// (check_charsmap), and no text has more nested user-defined pieces than fit the array on its
// stack.
#include "tokenizer/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "tokenizer/sentencepiece_proto.h"
#include "tokenizer/vocab_check.h"
#include "tokenizer/vocab_tokenizer.h"
#include "tokenizer/word_cache.h"

namespace gen::tokenizer {
namespace {

constexpr std::string_view kSpaceSign = "\xE2\x96\x81";  // U+2581
// From here on a text is given to the library word by word, and only the words not met before: it
// takes some hundred bytes of memory per byte of text, gets slower as texts grow, and words repeat.
constexpr size_t kCutBytes = 1024;
constexpr size_t kMaxNestedUserTokens = 64;  // kResultSize of the library's matcher

struct Prepared {
  VocabSpec spec;
  SpModel model;
  SpecialRules rules;
  bool prefix_here = false;  // the space before a text is put here, not by the library
};

std::string with_plain_spaces(std::string_view text) {
  std::string out;
  for (size_t found; (found = text.find(kSpaceSign)) != std::string_view::npos;
       text.remove_prefix(found + kSpaceSign.size())) {
    out.append(text.substr(0, found)).push_back(' ');
  }
  return out.append(text);
}

// The names that control and unknown pieces go by inside the library: no UTF-8, so no text and no
// other piece can equal one. Their real texts are found by VocabTokenizer.
std::string hidden_name(size_t id) { return std::to_string(id).append(1, '\xFF'); }
bool is_hidden_name(std::string_view piece) noexcept { return piece.ends_with('\xFF'); }

// The unknown token among possibly several, or -1.
int32_t find_unknown(const VocabSpec& spec) {
  if (spec.unk >= 0) {
    const TokenType type = spec.types[static_cast<size_t>(spec.unk)];
    if (type == TokenType::kUnknown || type == TokenType::kControl) return spec.unk;
  }
  const auto found = std::find(spec.types.begin(), spec.types.end(), TokenType::kUnknown);
  return found == spec.types.end() ? -1 : static_cast<int32_t>(found - spec.types.begin());
}

// Fills the model's pieces from the vocabulary. With `keep_user_tokens` the library finds
// user-defined pieces itself, else they are plain pieces to it.
void fill_pieces(const VocabSpec& spec, bool keep_user_tokens, SpModel* model) {
  const int32_t unknown = find_unknown(spec);
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    TokenType type = spec.types[i];
    const bool hidden = type == TokenType::kControl || type == TokenType::kUnknown;
    model->pieces.push_back(hidden ? hidden_name(i) : spec.tokens[i]);
    if (static_cast<int32_t>(i) == unknown) {
      type = TokenType::kUnknown;
    } else if (type == TokenType::kUnknown) {
      type = TokenType::kUnused;
    } else if (type == TokenType::kUserDefined && !keep_user_tokens) {
      type = TokenType::kNormal;
    }
    model->byte_fallback = model->byte_fallback || type == TokenType::kByte;
    model->types.push_back(type);
  }
  model->scores = spec.scores;
  model->unk_id = unknown;
  model->bos_id = -1;
  model->eos_id = -1;
  model->pad_id = -1;
  if (unknown >= 0) return;
  // The library insists on one; if it ever shows up, encode_text reports it.
  model->unk_id = static_cast<int32_t>(model->pieces.size());
  model->pieces.push_back(hidden_name(model->pieces.size()));
  model->scores.push_back(0);
  model->types.push_back(TokenType::kUnknown);
}

// Where a text may be cut so that each part can be encoded by itself: between two ASCII characters
// that no piece holds side by side, since no merge can ever join them.
class Cuts {
 public:
  /// None for models in which what stands elsewhere in a text matters: the best path of a unigram
  /// model, unknown characters (a run of them is one token), a normalizer, unused pieces (how they
  /// come apart depends on the last time they were made).
  explicit Cuts(const SpModel& model) {
    if (model.model_type != SpModelType::kBpe || !model.byte_fallback ||
        model.remove_extra_whitespaces || model.add_dummy_prefix || !model.charsmap.empty() ||
        !model.escape_whitespaces) {
      return;
    }
    for (size_t i = 0; i < model.pieces.size(); ++i) {
      const TokenType type = model.types[i];
      if (type == TokenType::kUserDefined) return;
      if (type == TokenType::kUnused && !is_hidden_name(model.pieces[i])) return;
    }
    pairs_.assign(kAscii * kAscii, true);
    for (size_t i = 0; i < model.pieces.size(); ++i) {
      if (model.types[i] == TokenType::kNormal) forbid(with_plain_spaces(model.pieces[i]));
    }
  }

  [[nodiscard]] bool any() const noexcept { return !pairs_.empty(); }

  /// The first cut behind `begin`, which is below text.size(), or the end of the text.
  [[nodiscard]] size_t next(std::string_view text, size_t begin) const noexcept {
    size_t end = begin + 1;
    while (end < text.size() && !may_cut(text[end - 1], text[end])) ++end;
    return end;
  }

 private:
  static constexpr size_t kAscii = 128;

  [[nodiscard]] bool may_cut(char left, char right) const noexcept {
    const auto a = static_cast<unsigned char>(left);
    const auto b = static_cast<unsigned char>(right);
    return a < kAscii && b < kAscii && pairs_[a * kAscii + b];
  }
  void forbid(std::string_view piece) {
    for (size_t i = 1; i < piece.size(); ++i) {
      const auto a = static_cast<unsigned char>(piece[i - 1]);
      const auto b = static_cast<unsigned char>(piece[i]);
      if (a < kAscii && b < kAscii) pairs_[a * kAscii + b] = false;
    }
  }

  std::vector<bool> pairs_;  // [left][right]: no piece holds the two side by side
};

// What the library builds its tries from are C strings, and it takes room for 64 nested matches.
Status check_trie_pieces(const SpModel& model) {
  const bool unigram = model.model_type == SpModelType::kUnigram;
  std::vector<std::string_view> user;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const TokenType type = model.types[i];
    const bool in_trie = type == TokenType::kUserDefined ||
                         (unigram && (type == TokenType::kNormal || type == TokenType::kUnused));
    if (!in_trie) continue;
    if (model.pieces[i].find('\0') != std::string::npos) {
      return error(Code::kFormat, "token %zu holds a zero byte", i);
    }
    if (type == TokenType::kUserDefined) user.push_back(model.pieces[i]);
  }
  // Sorted, the pieces that begin a piece are a stack.
  std::sort(user.begin(), user.end());
  std::vector<std::string_view> nested;
  for (const std::string_view piece : user) {
    while (!nested.empty() && !piece.starts_with(nested.back())) nested.pop_back();
    nested.push_back(piece);
    if (nested.size() > kMaxNestedUserTokens) {
      return error(Code::kFormat, "more than %zu user-defined tokens begin alike",
                   kMaxNestedUserTokens);
    }
  }
  return {};
}

class SentencePieceTokenizer final : public VocabTokenizer {
 public:
  /// Takes the vocabulary out of `prepared`.
  explicit SentencePieceTokenizer(Prepared* prepared);

  /// To be called once, before the first use.
  Status load(const SpModel& model);

 protected:
  Status encode_text(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  Status encode_word(std::string_view text, std::vector<int32_t>* out) const;

  bool prefix_here_;
  Cuts cuts_;
  sentencepiece::SentencePieceProcessor processor_;
};

SentencePieceTokenizer::SentencePieceTokenizer(Prepared* prepared)
    : VocabTokenizer(std::move(prepared->spec), prepared->rules),
      prefix_here_(prepared->prefix_here),
      cuts_(prepared->model) {
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

Status SentencePieceTokenizer::load(const SpModel& model) {
  const std::string wire = serialize_sp_model(model);
  // A protobuf message cannot be larger.
  if (wire.size() > INT32_MAX) {
    return error(Code::kFormat, "vocabulary of %zu bytes, limit %d", wire.size(), INT32_MAX);
  }
  try {
    const auto status = processor_.LoadFromSerializedProto(wire);
    if (!status.ok()) {
      return error(Code::kTokenizer, "sentencepiece: %s", status.error_message());
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& failure) {  // its trie builder throws
    return error(Code::kTokenizer, "sentencepiece: %s", failure.what());
  }
  return {};
}

Status SentencePieceTokenizer::encode_text(std::string_view text, std::vector<int32_t>* out) const {
  std::string first_word;
  if (prefix_here_) first_word.push_back(' ');
  if (!cuts_.any() || text.size() < kCutBytes) return encode_word(first_word.append(text), out);
  WordCache cache(text.size());
  size_t begin = cuts_.next(text, 0);
  GEN_TRY(encode_word(first_word.append(text.substr(0, begin)), out));
  while (begin < text.size()) {
    const std::string_view word = text.substr(begin, cuts_.next(text, begin) - begin);
    begin += word.size();
    WordCache::Slot* slot = cache.slot_of(word);
    if (WordCache::copy(slot, word, out)) continue;
    const size_t first = out->size();
    GEN_TRY(encode_word(word, out));
    WordCache::store(slot, word, first, *out);
  }
  return {};
}

Status SentencePieceTokenizer::encode_word(std::string_view text, std::vector<int32_t>* out) const {
  std::vector<int> ids;
  const auto status = processor_.Encode(text, &ids);
  if (!status.ok()) return error(Code::kTokenizer, "sentencepiece: %s", status.error_message());
  for (const int id : ids) {
    if (id < 0 || id >= vocab_size()) {
      return error(Code::kTokenizer, "text holds a character that the vocabulary cannot express");
    }
    out->push_back(id);
  }
  return {};
}

Result<std::shared_ptr<const Tokenizer>> make(Prepared prepared) {
  GEN_TRY(check_trie_pieces(prepared.model));
  auto made = std::make_shared<SentencePieceTokenizer>(&prepared);
  GEN_TRY(made->load(prepared.model));
  return std::shared_ptr<const Tokenizer>(std::move(made));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> create_sentencepiece_tokenizer(VocabSpec spec) {
  Prepared prepared;
  SpModel& model = prepared.model;
  model.model_type = SpModelType::kBpe;
  fill_pieces(spec, /*keep_user_tokens=*/false, &model);
  model.escape_whitespaces = spec.escape_whitespaces;
  model.remove_extra_whitespaces = spec.remove_extra_whitespaces;
  prepared.prefix_here = spec.add_space_prefix && !spec.remove_extra_whitespaces;
  model.add_dummy_prefix = spec.add_space_prefix && !prepared.prefix_here;
  prepared.rules.space_prefix = spec.add_space_prefix;
  spec.merges = {};
  prepared.spec = std::move(spec);
  return make(std::move(prepared));
}

Result<std::shared_ptr<const Tokenizer>> load_sentencepiece_model(std::span<const std::byte> file) {
  Prepared prepared;
  GEN_ASSIGN(prepared.model, parse_sp_model(file));
  SpModel& model = prepared.model;
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
  GEN_TRY(check_charsmap(model.charsmap));

  VocabSpec spec;
  spec.kind = VocabKind::kSentencePiece;
  spec.tokens = std::exchange(model.pieces, {});
  spec.scores = std::exchange(model.scores, {});
  spec.types = std::exchange(model.types, {});
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
  model.byte_fallback = false;
  fill_pieces(spec, /*keep_user_tokens=*/true, &model);
  if (model.unk_id < static_cast<int32_t>(spec.tokens.size())) spec.unk = model.unk_id;
  // In a text, user-defined pieces are written with spaces.
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.types[i] == TokenType::kUserDefined && spec.escape_whitespaces) {
      spec.tokens[i] = with_plain_spaces(spec.tokens[i]);
    }
  }
  prepared.rules.space_prefix = spec.add_space_prefix;
  prepared.rules.space_after_user_tokens = false;
  prepared.rules.split_user_tokens = false;
  prepared.spec = std::move(spec);
  return make(std::move(prepared));
}

}  // namespace gen::tokenizer

// SPDX-License-Identifier: Apache-2.0
// Reading tokenizer.* metadata. Defaults for missing keys follow the families: what SentencePiece
// models of the Llama kind and the other kinds do when their files say nothing. See vocab.h.
#include "model/gguf/vocab.h"

#include <algorithm>
#include <cinttypes>
#include <limits>

#include "base/log.h"
#include "model/gguf/clean_name.h"
#include "tokenizer/pretokenizer_data.h"
#include "tokenizer/vocab_check.h"

namespace gen::gguf {
namespace {

using tokenizer::TokenType;
using tokenizer::VocabKind;
using tokenizer::VocabSpec;

constexpr const char* kModelKey = "tokenizer.ggml.model";

/// What the keys of a tokenizer.ggml.model mean where they are missing.
struct ModelRow {
  std::string_view name;
  VocabKind kind;
  int32_t bos, eos, unk, sep, pad;
  bool add_bos;
  bool add_space_prefix;
};
constexpr ModelRow kModels[] = {
    {"llama", VocabKind::kSentencePiece, 1, 2, 0, -1, -1, true, true},
    {"gpt2", VocabKind::kByteBpe, -1, -1, -1, -1, -1, false, false},
    {"gemma4", VocabKind::kTextBpe, -1, -1, -1, -1, -1, true, false},
    {"bert", VocabKind::kWordPiece, 101, -1, 100, 102, 0, true, false},
    {"t5", VocabKind::kUnigram, -1, 1, 2, -1, 0, false, false},
    {"rwkv", VocabKind::kRwkv, -1, -1, -1, -1, -1, false, false},
    {"plamo2", VocabKind::kPlamo2, 1, 2, 0, -1, 3, false, false},
    {"hybriddna", VocabKind::kHybridDna, -1, -1, -1, -1, -1, false, false},
    {"whitespace", VocabKind::kTextBpe, -1, -1, -1, -1, -1, false, false},
};

Result<const ModelRow*> read_model(const Metadata& metadata) {
  GEN_ASSIGN(const std::string name, metadata.get_string(kModelKey));
  if (names_no_tokenizer(name)) return no_tokenizer(metadata);
  std::string known;
  for (const ModelRow& row : kModels) {
    if (row.name == name) return &row;
    known.append(known.empty() ? "" : ", ").append(row.name);
  }
  return error(Code::kUnsupported, "metadata '%s': '%.*s' is not supported (%s are)", kModelKey,
               is_clean_name(name) ? shown_length(name) : 0, name.data(), known.c_str());
}

Status check_length(const char* key, size_t length, size_t tokens) noexcept {
  if (length == tokens) return {};
  return error(Code::kFormat, "metadata '%s': %zu elements for %zu tokens", key, length, tokens);
}

Status copy_strings(const Metadata& metadata, const char* key, std::vector<std::string>* out) {
  GEN_ASSIGN(const std::vector<std::string_view> views, metadata.get_strings(key));
  out->assign(views.begin(), views.end());
  return {};
}

/// Some files have whole numbers.
Status read_scores(const Metadata& metadata, const char* key, std::vector<float>* out) {
  const Value* const value = metadata.find(key);
  if (value != nullptr && value->type() == ValueType::kArray &&
      value->element_type() == ValueType::kI32) {
    GEN_ASSIGN(const std::vector<int32_t> numbers, metadata.get_i32s(key));
    out->assign(numbers.begin(), numbers.end());
    return {};
  }
  GEN_ASSIGN(*out, metadata.get_f32s(key));
  return {};
}

Status read_tokens(const Metadata& metadata, VocabSpec* spec) {
  constexpr const char* kTokens = "tokenizer.ggml.tokens";
  const Value* const listed = metadata.find(kTokens);
  // Before they are copied, which takes several times the file.
  if (listed != nullptr && listed->type() == ValueType::kArray &&
      (listed->count() < 1 || listed->count() > tokenizer::kMaxTokens)) {
    return error(Code::kFormat, "metadata '%s': %" PRIu64 " tokens outside [1, %zu]", kTokens,
                 static_cast<uint64_t>(listed->count()), tokenizer::kMaxTokens);
  }
  GEN_TRY(copy_strings(metadata, kTokens, &spec->tokens));
  const size_t tokens = spec->tokens.size();
  for (size_t i = 0; i < tokens; ++i) {
    if (spec->tokens[i].empty()) spec->tokens[i] = "[EMPTY_" + std::to_string(i) + "]";
  }
  const bool needed = needs_scores(spec->kind);
  constexpr const char* kScores = "tokenizer.ggml.scores";
  if (needed || metadata.has(kScores)) {
    GEN_TRY(read_scores(metadata, kScores, &spec->scores));
    GEN_TRY(check_length(kScores, spec->scores.size(), tokens));
  }
  constexpr const char* kTypes = "tokenizer.ggml.token_type";
  if (needed || metadata.has(kTypes)) {
    GEN_ASSIGN(const std::vector<int32_t> types, metadata.get_i32s(kTypes));
    GEN_TRY(check_length(kTypes, types.size(), tokens));
    spec->types.reserve(tokens);
    for (const int32_t type : types) spec->types.push_back(static_cast<TokenType>(type));
  }
  return {};
}

/// Files write "none" as a missing key or as -1.
Status read_id(const Metadata& metadata, const char* key, size_t tokens, int32_t* id) {
  const Value* value = metadata.find(key);
  if (value == nullptr) {
    if (*id >= 0 && static_cast<size_t>(*id) >= tokens) *id = -1;  // a default that is not there
    return {};
  }
  if (const auto as_signed = metadata.get_i32(key); as_signed.ok() && as_signed.value() == -1) {
    *id = -1;
    return {};
  }
  GEN_ASSIGN(const uint32_t number, metadata.get_u32(key));
  if (number == std::numeric_limits<uint32_t>::max()) {
    *id = -1;
    return {};
  }
  if (number >= tokens) {
    return error(Code::kFormat, "metadata '%s': token %" PRIu32 " outside vocabulary of %zu", key,
                 number, tokens);
  }
  *id = static_cast<int32_t>(number);
  return {};
}

Status read_ids(const Metadata& metadata, VocabSpec* spec) {
  struct Row {
    const char* key;
    int32_t* id;
  };
  const Row rows[] = {
      {"tokenizer.ggml.bos_token_id", &spec->bos},
      {"tokenizer.ggml.eos_token_id", &spec->eos},
      {"tokenizer.ggml.unknown_token_id", &spec->unk},
      {"tokenizer.ggml.seperator_token_id", &spec->sep},  // misspelt in the format
      {"tokenizer.ggml.padding_token_id", &spec->pad},
      {"tokenizer.ggml.eot_token_id", &spec->eot},
      {"tokenizer.ggml.eom_token_id", &spec->eom},
      {"tokenizer.ggml.prefix_token_id", &spec->fim_prefix},  // what newer files say counts
      {"tokenizer.ggml.suffix_token_id", &spec->fim_suffix},
      {"tokenizer.ggml.middle_token_id", &spec->fim_middle},
      {"tokenizer.ggml.fim_pre_token_id", &spec->fim_prefix},
      {"tokenizer.ggml.fim_suf_token_id", &spec->fim_suffix},
      {"tokenizer.ggml.fim_mid_token_id", &spec->fim_middle},
  };
  for (const Row& row : rows) {
    GEN_TRY(read_id(metadata, row.key, spec->tokens.size(), row.id));
  }
  return {};
}

bool is_phi3(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

/// The token that texts begin with although the file does not name it, or -1.
int32_t find_bos(const VocabSpec& spec) {
  if (spec.bos >= 0) return spec.bos;
  for (const std::string_view text :
       {"<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<bos>", "<s>", "[CLS]"}) {
    const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), text);
    if (found != spec.tokens.end()) return static_cast<int32_t>(found - spec.tokens.begin());
  }
  return -1;
}

void complete_bos(const Metadata& metadata, VocabSpec* spec) {
  constexpr const char* kKey = "tokenizer.ggml.bos_token_id";
  if (!spec->add_bos || metadata.has(kKey)) return;
  spec->bos = find_bos(*spec);
  if (spec->bos < 0) {
    log(LogLevel::kWarning, "metadata '%s' is missing: texts begin without such a token", kKey);
    return;
  }
  log(LogLevel::kWarning, "metadata '%s' is missing: texts begin with token %" PRId32, kKey,
      spec->bos);
}

Status read_flags(const Metadata& metadata, VocabSpec* spec) {
  struct Row {
    const char* key;
    bool* flag;
  };
  // Not .add_eos_token: something always follows what is encoded here, and an end would end it
  // first.
  const Row rows[] = {
      {"tokenizer.ggml.add_bos_token", &spec->add_bos},
      {"tokenizer.ggml.add_space_prefix", &spec->add_space_prefix},
      {"tokenizer.ggml.remove_extra_whitespaces", &spec->remove_extra_whitespaces},
      {"tokenizer.ggml.normalizer.lowercase", &spec->lowercase},
  };
  for (const Row& row : rows) {
    GEN_ASSIGN(*row.flag, metadata.get_bool(row.key, *row.flag));
  }
  constexpr const char* kAccents = "tokenizer.ggml.normalizer.strip_accents";
  GEN_ASSIGN(spec->strip_accents, metadata.get_bool(kAccents, spec->lowercase));
  // Many files of Gemma 4 say that it does not begin with BOS, without which it writes nonsense.
  const bool as_gemma = spec->pre != "sarvam-moe" && spec->pre != tokenizer::kPreWhitespace;
  if (spec->kind == VocabKind::kTextBpe && as_gemma) spec->add_bos = true;
  return {};
}

/// Tokens that the model must not generate, such as marks of pictures.
Status read_suppressed(const Metadata& metadata, VocabSpec* spec) {
  constexpr const char* kKey = "tokenizer.ggml.suppress_tokens";
  if (!metadata.has(kKey)) return {};
  GEN_ASSIGN(spec->suppressed, metadata.get_i32s(kKey));
  for (const int32_t id : spec->suppressed) {
    if (id >= 0 && static_cast<size_t>(id) < spec->tokens.size()) continue;
    return error(Code::kFormat, "metadata '%s': token %" PRId32 " outside vocabulary of %zu", kKey,
                 id, spec->tokens.size());
  }
  return {};
}

/// Byte-level BPE vocabularies are also those of families that merge plain text.
Status read_bpe(const Metadata& metadata, std::string_view pre_tokenizer, VocabSpec* spec) {
  constexpr const char* kPre = "tokenizer.ggml.pre";
  if (is_byte_bpe(spec->kind)) {
    GEN_ASSIGN(spec->pre, metadata.get_string(kPre, spec->pre));
    if (!pre_tokenizer.empty()) {
      spec->pre = pre_tokenizer;
    } else if (!metadata.has(kPre)) {
      log(LogLevel::kWarning,
          "metadata '%s' is missing: words are split as '%s', which may not be how the model's are",
          kPre, spec->pre.c_str());
    }
    for (const std::string_view name :
         {"gemma4", "granite-embed-multi-311m", "sarvam-moe", "whitespace"}) {
      if (spec->pre == name) spec->kind = VocabKind::kTextBpe;
    }
    const tokenizer::PretokenizerRules* rules = tokenizer::find_pretokenizer_rules(spec->pre);
    spec->add_bos = rules != nullptr && (rules->flags & tokenizer::kBeginsWithBos) != 0;
  }
  if (spec->pre == tokenizer::kPreWhitespace) spec->lowercase = false;
  constexpr const char* kMerges = "tokenizer.ggml.merges";
  if (is_byte_bpe(spec->kind) && !metadata.has(kMerges)) {
    log(LogLevel::kWarning, "metadata '%s' is missing: tokens are merged in the order of their ids",
        kMerges);
    return {};
  }
  return copy_strings(metadata, kMerges, &spec->merges);
}

Status read_charsmap(const Metadata& metadata, VocabSpec* spec) {
  constexpr const char* kKey = "tokenizer.ggml.precompiled_charsmap";
  const Value* value = metadata.find(kKey);
  if (value == nullptr) return {};
  const bool bytes =
      value->element_type() == ValueType::kU8 || value->element_type() == ValueType::kI8;
  if (value->type() != ValueType::kArray || !bytes) {
    return error(Code::kFormat, "metadata '%s': array of u8 wanted, %s found", kKey,
                 value->type_text().c_str());
  }
  const auto data = value->bytes();
  spec->charsmap.assign(reinterpret_cast<const char*>(data.data()), data.size());
  return {};
}

}  // namespace

bool names_no_tokenizer(std::string_view kind) noexcept {
  return kind == "none" || kind == "no_vocab";
}

Status no_tokenizer(const Metadata& metadata) {
  const Value* const model = metadata.find(kModelKey);
  if (model == nullptr) {
    return error(Code::kFormat, "the file has no tokenizer: metadata '%s' is missing", kModelKey);
  }
  const std::string kind = model->text();
  return error(Code::kFormat, "the file has no tokenizer: metadata '%s' is '%.*s'", kModelKey,
               is_clean_name(kind) ? shown_length(kind) : 0, kind.data());
}

Status no_pre_tokenizer(std::string_view pre_tokenizer, std::string_view kind) noexcept {
  return error(Code::kInvalidArgument,
               "pre-tokenizer '%.*s' for a vocabulary of kind '%.*s', which has none",
               is_clean_name(pre_tokenizer) ? shown_length(pre_tokenizer) : 0, pre_tokenizer.data(),
               static_cast<int>(kind.size()), kind.data());
}

Result<VocabSpec> read_vocab(const Metadata& metadata, std::string_view pre_tokenizer) {
  VocabSpec spec;
  GEN_ASSIGN(const ModelRow* row, read_model(metadata));
  spec.kind = row->kind;
  spec.bos = row->bos;
  spec.eos = row->eos;
  spec.unk = row->unk;
  spec.sep = row->sep;
  spec.pad = row->pad;
  spec.add_bos = row->add_bos;
  spec.add_space_prefix = row->add_space_prefix;
  if (row->name == tokenizer::kPreWhitespace) spec.pre = row->name;
  if (!is_byte_bpe(spec.kind) && !pre_tokenizer.empty()) {
    return no_pre_tokenizer(pre_tokenizer, row->name);
  }
  GEN_TRY(read_tokens(metadata, &spec));
  if (is_byte_bpe(spec.kind) || spec.kind == VocabKind::kTextBpe) {
    GEN_TRY(read_bpe(metadata, pre_tokenizer, &spec));
  }
  if (spec.kind == VocabKind::kUnigram) GEN_TRY(read_charsmap(metadata, &spec));
  GEN_TRY(read_ids(metadata, &spec));
  GEN_TRY(read_flags(metadata, &spec));
  complete_bos(metadata, &spec);
  GEN_TRY(read_suppressed(metadata, &spec));
  GEN_ASSIGN(spec.chat_template, metadata.get_string("tokenizer.chat_template", ""));
  const Value* name = metadata.find("general.name");
  spec.special_strips_right = name != nullptr && is_phi3(name->text());
  return spec;
}

}  // namespace gen::gguf

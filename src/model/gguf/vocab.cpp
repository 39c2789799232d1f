// SPDX-License-Identifier: Apache-2.0
// Reading tokenizer.* metadata. Defaults for missing keys follow the families: what SentencePiece
// models of the Llama kind and byte-level BPE models do when their files say nothing. See vocab.h.
#include "model/gguf/vocab.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <limits>

#include "base/log.h"
#include "model/gguf/clean_name.h"
#include "tokenizer/pretokenizer_data.h"

namespace gen::gguf {
namespace {

using tokenizer::TokenType;
using tokenizer::VocabKind;
using tokenizer::VocabSpec;

Result<VocabKind> read_kind(const Metadata& metadata) {
  GEN_ASSIGN(const std::string model, metadata.get_string("tokenizer.ggml.model"));
  if (model == "llama") return VocabKind::kSentencePiece;
  if (model == "gpt2") return VocabKind::kByteBpe;
  if (model == "gemma4") return VocabKind::kTextBpe;
  return error(
      Code::kUnsupported,
      "metadata 'tokenizer.ggml.model': '%.*s' is not supported (llama, gpt2 and gemma4 are)",
      is_clean_name(model) ? shown_length(model) : 0, model.data());
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

Status read_tokens(const Metadata& metadata, VocabSpec* spec) {
  GEN_TRY(copy_strings(metadata, "tokenizer.ggml.tokens", &spec->tokens));
  const size_t tokens = spec->tokens.size();
  if (tokens < 1 || tokens > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return error(Code::kFormat,
                 "metadata 'tokenizer.ggml.tokens': %zu tokens outside [1, %" PRId32 "]", tokens,
                 std::numeric_limits<int32_t>::max());
  }
  const bool needed = spec->kind == VocabKind::kSentencePiece;
  constexpr const char* kScores = "tokenizer.ggml.scores";
  if (needed || metadata.has(kScores)) {
    GEN_ASSIGN(spec->scores, metadata.get_f32s(kScores));
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
  if (spec->kind == VocabKind::kSentencePiece) {
    spec->unk = 0;
    spec->bos = 1;
    spec->eos = 2;
  }
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

/// Whether the models of a byte-level BPE vocabulary begin with BOS where their files do not say
/// so.
bool begins_with_bos(const std::string& pre) {
  const tokenizer::PretokenizerRules* rules = tokenizer::find_pretokenizer_rules(pre);
  return rules != nullptr && (rules->flags & tokenizer::kBeginsWithBos) != 0;
}

bool is_phi3(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

Status read_flags(const Metadata& metadata, VocabSpec* spec) {
  const bool sentencepiece = spec->kind == VocabKind::kSentencePiece;
  spec->add_bos = sentencepiece || begins_with_bos(spec->pre);
  spec->add_space_prefix = sentencepiece;
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
  };
  for (const Row& row : rows) {
    GEN_ASSIGN(*row.flag, metadata.get_bool(row.key, *row.flag));
  }
  // Many files of Gemma 4 say that it does not begin with BOS, without which it writes nonsense.
  if (spec->kind == VocabKind::kTextBpe) spec->add_bos = true;
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

}  // namespace

Result<VocabSpec> read_vocab(const Metadata& metadata) {
  VocabSpec spec;
  GEN_ASSIGN(spec.kind, read_kind(metadata));
  GEN_TRY(read_tokens(metadata, &spec));
  if (spec.kind != VocabKind::kSentencePiece) {
    GEN_TRY(copy_strings(metadata, "tokenizer.ggml.merges", &spec.merges));
  }
  if (spec.kind == VocabKind::kByteBpe) {
    constexpr const char* kPre = "tokenizer.ggml.pre";
    GEN_ASSIGN(spec.pre, metadata.get_string(kPre, spec.pre));
    if (!metadata.has(kPre)) {
      log(LogLevel::kWarning,
          "metadata '%s' is missing: words are split as '%s', which may not be how the model's are",
          kPre, spec.pre.c_str());
    }
  }
  GEN_TRY(read_ids(metadata, &spec));
  GEN_TRY(read_flags(metadata, &spec));
  GEN_TRY(read_suppressed(metadata, &spec));
  GEN_ASSIGN(spec.chat_template, metadata.get_string("tokenizer.chat_template", ""));
  const Value* name = metadata.find("general.name");
  spec.special_strips_right = name != nullptr && is_phi3(name->text());
  return spec;
}

}  // namespace gen::gguf

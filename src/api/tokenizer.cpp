// SPDX-License-Identifier: Apache-2.0
// tokenizer.h of the C API: tokenizers and conversations.
#include <generate/tokenizer.h>

#include <cstring>

#include "api/boundary.h"
#include "api/handles.h"
#include "api/model_handle.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/vocab.h"

namespace {

using gen::Code;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::tokenizer::Special;
using gen::tokenizer::Tokenizer;

Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const std::string& path) {
  bool is_gguf = false;
  {
    GEN_ASSIGN(const auto file, gen::MappedFile::open(path));
    constexpr std::string_view kMagic = "GGUF";
    const auto bytes = file.bytes();
    is_gguf = bytes.size() >= kMagic.size() &&
              std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
  }
  if (!is_gguf) {
    // Read, not mapped: what was checked must be what is used, whoever writes to the file
    // meanwhile.
    GEN_ASSIGN(const auto file, gen::MappedFile::open(path, gen::MappedFile::Mode::kRead));
    return gen::tokenizer::load_sentencepiece_model(file.bytes());
  }
  GEN_ASSIGN(auto gguf, gen::gguf::GgufFile::open(path, gen::MappedFile::Mode::kMap));
  GEN_ASSIGN(auto spec, gen::gguf::read_vocab(gguf->metadata()));
  return gen::tokenizer::create_tokenizer(std::move(spec));
}

/// A message may not hold the text of a control token, since the formatted text is encoded as a
/// whole.
Status check_message(const Tokenizer& tokenizer, const gen::tokenizer::ChatMessage& message) {
  std::vector<int32_t> ids;
  GEN_TRY(tokenizer.encode(message.content, gen::tokenizer::kParseSpecial, &ids));
  for (const int32_t id : ids) {
    if (!tokenizer.is_control(id)) continue;
    const std::string& text = tokenizer.spec().tokens[static_cast<size_t>(id)];
    return gen::error(Code::kInvalidArgument,
                      "a message of role %.40s holds the special text %.80s", message.role.c_str(),
                      text.c_str());
  }
  return {};
}

}  // namespace

gen_status gen_tokenizer_load(const char* path, gen_tokenizer** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(path, "path"));
    GEN_TRY(not_null(out, "out"));
    auto handle = std::make_unique<gen_tokenizer>();
    auto loaded = load_tokenizer(path);
    if (!loaded.ok()) return gen::api::in_file(path, loaded.status());
    handle->impl = std::move(loaded).value();
    *out = handle.release();
    return {};
  });
}

gen_status gen_tokenizer_encode(const gen_tokenizer* tokenizer, const char* text, size_t len,
                                uint32_t flags, int32_t* ids, size_t capacity, size_t* n,
                                gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(n, "n"));
    if ((flags &
         ~uint32_t{GEN_ENCODE_ADD_BOS | GEN_ENCODE_PARSE_SPECIAL | GEN_ENCODE_CONTINUE}) != 0) {
      return gen::error(Code::kInvalidArgument, "unknown encode flags 0x%x", flags);
    }
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    uint32_t inner = 0;
    if ((flags & GEN_ENCODE_ADD_BOS) != 0 && tokenizer->impl->spec().add_bos) {
      inner |= gen::tokenizer::kAddBos;
    }
    if ((flags & GEN_ENCODE_PARSE_SPECIAL) != 0) inner |= gen::tokenizer::kParseSpecial;
    std::vector<int32_t> tokens;
    const bool goes_on = (flags & GEN_ENCODE_CONTINUE) != 0;
    GEN_TRY(tokenizer->impl->encode(
        view, inner, &tokens, goes_on ? gen::tokenizer::kInText : gen::tokenizer::kTextStart));
    return gen::api::array_out<int32_t>(tokens, ids, capacity, n, "ids");
  });
}

gen_status gen_tokenizer_decode(const gen_tokenizer* tokenizer, const int32_t* ids, size_t count,
                                char* buf, size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(n, "n"));
    if (count > 0) GEN_TRY(not_null(ids, "ids"));
    std::string text;
    GEN_TRY(tokenizer->impl->decode({ids, count}, false, &text));
    return gen::api::text_out(text, buf, capacity, n);
  });
}

gen_status gen_tokenizer_piece(const gen_tokenizer* tokenizer, int32_t id, char* buf,
                               size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(n, "n"));
    std::string text;
    // As in the middle of a text, where no leading space is taken away: any ordinary token before
    // it will do.
    GEN_TRY(tokenizer->impl->append_piece(id, id, true, &text));
    return gen::api::text_out(text, buf, capacity, n);
  });
}

int32_t gen_tokenizer_vocab_size(const gen_tokenizer* tokenizer) {
  return tokenizer != nullptr ? tokenizer->impl->vocab_size() : 0;
}

int32_t gen_tokenizer_special(const gen_tokenizer* tokenizer, int32_t kind) {
  if (tokenizer == nullptr) return -1;
  switch (kind) {
    case GEN_SPECIAL_BOS:
      return tokenizer->impl->special(Special::kBos);
    case GEN_SPECIAL_EOS:
      return tokenizer->impl->special(Special::kEos);
    case GEN_SPECIAL_UNK:
      return tokenizer->impl->special(Special::kUnk);
    case GEN_SPECIAL_PAD:
      return tokenizer->impl->special(Special::kPad);
    case GEN_SPECIAL_SEP:
      return tokenizer->impl->special(Special::kSep);
    case GEN_SPECIAL_EOT:
      return tokenizer->impl->special(Special::kEot);
    default:
      return -1;
  }
}

void gen_tokenizer_free(gen_tokenizer* tokenizer) { delete tokenizer; }

gen_status gen_chat_new(gen_chat** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(out, "out"));
    *out = new gen_chat;
    return {};
  });
}

gen_status gen_chat_add(gen_chat* chat, const char* role, const char* text, size_t len,
                        gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(chat, "chat"));
    GEN_TRY(not_null(role, "role"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    if (*role == '\0') return {Code::kInvalidArgument, "role is empty"};
    if (!gen::utf8_valid(role)) return {Code::kInvalidArgument, "role is not UTF-8"};
    if (const size_t valid = gen::utf8_valid_prefix(view); valid != view.size()) {
      return gen::error(Code::kInvalidArgument, "text is not UTF-8 at byte %zu of %zu", valid,
                        view.size());
    }
    chat->messages.push_back({role, std::string(view)});
    return {};
  });
}

gen_status gen_chat_format(const gen_model* model, const gen_chat* chat,
                           int32_t add_generation_prompt, char* buf, size_t capacity, size_t* n,
                           gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(chat, "chat"));
    GEN_TRY(not_null(n, "n"));
    if (model->tokenizer.impl == nullptr) {
      return {Code::kUnsupported, "the model has no tokenizer, and so no chat template"};
    }
    const Tokenizer& tokenizer = *model->tokenizer.impl;
    for (const auto& message : chat->messages) GEN_TRY(check_message(tokenizer, message));
    GEN_ASSIGN(const std::string text,
               gen::tokenizer::format_chat(tokenizer.spec().chat_template, chat->messages,
                                           add_generation_prompt != 0));
    return gen::api::text_out(text, buf, capacity, n);
  });
}

void gen_chat_free(gen_chat* chat) { delete chat; }

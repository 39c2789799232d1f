// SPDX-License-Identifier: Apache-2.0
// tokenizer.h of the C API, but for loading (api/model/load_tokenizer.cpp).
#include <generate/tokenizer.h>

#include "api/boundary/boundary.h"
#include "api/text/text_handles.h"
#include "tokenizer/fill_in_middle.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::tokenizer::Special;

}  // namespace

gen_status gen_tokenizer_encode(const gen_tokenizer* tokenizer, const char* text, size_t len,
                                uint32_t flags, int32_t* ids, size_t capacity, size_t* n,
                                gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(n, "n"));
    if ((flags & ~uint32_t{GEN_ENCODE_ADD_BOS | GEN_ENCODE_PARSE_SPECIAL | GEN_ENCODE_CONTINUE}) !=
        0) {
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

gen_status gen_tokenizer_encode_fim(const gen_tokenizer* tokenizer, const char* prefix,
                                    size_t prefix_len, const char* suffix, size_t suffix_len,
                                    uint32_t flags, int32_t* ids, size_t capacity, size_t* n,
                                    gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(n, "n"));
    if ((flags & ~uint32_t{GEN_ENCODE_ADD_BOS}) != 0) {
      return gen::error(Code::kInvalidArgument, "flags 0x%x: only GEN_ENCODE_ADD_BOS is known here",
                        flags);
    }
    GEN_ASSIGN(const auto before, gen::api::text_in(prefix, prefix_len, "prefix"));
    GEN_ASSIGN(const auto after, gen::api::text_in(suffix, suffix_len, "suffix"));
    const bool bos = flags != 0 && tokenizer->impl->spec().add_bos;
    std::vector<int32_t> tokens;
    GEN_TRY(gen::tokenizer::encode_fill_in_middle(*tokenizer->impl, before, after,
                                                  bos ? gen::tokenizer::kAddBos : 0U, &tokens));
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
    // Decoded as in the middle of a text, where the leading space stays: any ordinary token may
    // come before it.
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

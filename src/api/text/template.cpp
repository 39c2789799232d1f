// SPDX-License-Identifier: Apache-2.0
// template.h of the C API: chat templates by themselves.
#include <generate/template.h>

#include "api/boundary/boundary.h"
#include "api/text/text_handles.h"
#include "template/request.h"
#include "chat/builtin_forms.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::templates::Template;
using gen::tokenizer::Special;
using gen::tokenizer::Tokenizer;

std::string text_of(const Tokenizer& tokenizer, Special kind) {
  const int32_t id = tokenizer.special(kind);
  return id < 0 ? std::string() : tokenizer.spec().tokens[static_cast<size_t>(id)];
}

}  // namespace

gen_status gen_template_new(const char* text, size_t len, gen_template** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(text, "text"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto source, gen::api::text_in(text, len, "text"));
    auto handle = std::make_unique<gen_template>();
    GEN_ASSIGN(handle->impl, Template::compile(source));
    *out = handle.release();
    return {};
  });
}

gen_status gen_template_from_tokenizer(const gen_tokenizer* tokenizer, gen_template** out,
                                       gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(tokenizer, "tokenizer"));
    GEN_TRY(not_null(out, "out"));
    const Tokenizer& of = *tokenizer->impl;
    std::string_view source = of.spec().chat_template;
    if (source.empty()) {
      const gen::chat::BuiltinForm* const form = gen::chat::recognise_form(of.spec());
      if (form == nullptr) return {Code::kUnsupported, "the file has no chat template"};
      source = form->source;
    }
    auto handle = std::make_unique<gen_template>();
    handle->defaults = {text_of(of, Special::kBos), text_of(of, Special::kEos)};
    auto compiled = Template::compile(source);
    if (!compiled.ok()) {
      return gen::error(Code::kUnsupported, "the file's chat template cannot be used: %s",
                        compiled.status().message());
    }
    handle->impl = std::move(*compiled);
    *out = handle.release();
    return {};
  });
}

gen_status gen_template_render(const gen_template* of, const char* request, size_t len, char* buf,
                               size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(of, "template"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto json, gen::api::text_in(request, len, "request"));
    GEN_ASSIGN(const std::string made,
               gen::templates::render_request(*of->impl, json, of->defaults));
    return gen::api::text_out(made, buf, capacity, n);
  });
}

void gen_template_free(gen_template* of) { delete of; }

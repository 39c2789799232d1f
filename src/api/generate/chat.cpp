// SPDX-License-Identifier: Apache-2.0
// Conversations of chat.h in the C API; chat_session.cpp has the sessions that hold one.
#include <generate/chat.h>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"
#include "api/model/model_handle.h"
#include "chat/chat_borders.h"

namespace {

using gen::Code;
using gen::InUseGuard;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::chat::Conversation;
using gen::tokenizer::Tokenizer;

/// Runs `change` on the conversation while no other call uses it.
template <typename F>
gen_status edit(gen_chat* chat, gen_error* error, F change) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(chat, "chat"));
    const std::shared_ptr<gen::generate::Chat> kept = chat->impl;
    const InUseGuard in_use(&kept->in_use);
    GEN_TRY(in_use.entered("the conversation"));
    return change(kept->conversation);
  });
}

Result<const Tokenizer*> tokenizer_of(const Tokenizer* tokenizer) {
  if (tokenizer != nullptr) return tokenizer;
  return gen::error(Code::kUnsupported, "the model has no tokenizer, and so no chat template");
}

std::string_view text_or_empty(const char* text) { return text != nullptr ? text : ""; }

}  // namespace

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
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_TRY(not_null(role, "role"));
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    GEN_ASSIGN(auto message, gen::chat::chat_message(role, view));
    conversation.messages.push_back(std::move(message));
    return {};
  });
}

gen_status gen_chat_set_name(gen_chat* chat, const char* name, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_TRY(not_null(name, "name"));
    return conversation.set_name(name);
  });
}

gen_status gen_chat_set_reasoning(gen_chat* chat, const char* text, size_t len, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    return conversation.set_reasoning(view);
  });
}

gen_status gen_chat_add_tool_call(gen_chat* chat, const char* id, const char* name,
                                  const char* arguments, size_t len, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_TRY(not_null(name, "name"));
    GEN_ASSIGN(const auto json, gen::api::text_in(arguments, len, "arguments"));
    return conversation.add_tool_call(text_or_empty(id), name, json);
  });
}

gen_status gen_chat_add_tool_result(gen_chat* chat, const char* id, const char* name,
                                    const char* text, size_t len, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_ASSIGN(const auto view, gen::api::text_in(text, len, "text"));
    return conversation.add_tool_result(text_or_empty(id), text_or_empty(name), view);
  });
}

gen_status gen_chat_add_tool(gen_chat* chat, const char* description, size_t len,
                             gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_ASSIGN(const auto json, gen::api::text_in(description, len, "description"));
    return conversation.add_tool(json);
  });
}

gen_status gen_chat_set_variable(gen_chat* chat, const char* name, const char* value, size_t len,
                                 gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_TRY(not_null(name, "name"));
    GEN_ASSIGN(const auto json, gen::api::text_in(value, len, "value"));
    return conversation.set_variable(name, json);
  });
}

gen_status gen_chat_set_template(gen_chat* chat, const char* text, size_t len, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_TRY(not_null(text, "text"));
    GEN_ASSIGN(const auto source, gen::api::text_in(text, len, "text"));
    return conversation.set_template(source);
  });
}

gen_status gen_chat_truncate(gen_chat* chat, int32_t n, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) { return conversation.truncate(n); });
}

gen_status gen_chat_describe(const gen_chat* chat, char* buf, size_t capacity, size_t* n,
                             gen_error* error) {
  if (n != nullptr) *n = 0;
  return edit(const_cast<gen_chat*>(chat), error, [&](const Conversation& conversation) -> Status {
    GEN_TRY(not_null(n, "n"));
    return gen::api::text_out(conversation.describe(), buf, capacity, n);
  });
}

gen_status gen_chat_set_time(gen_chat* chat, const char* time, gen_error* error) {
  return edit(chat, error, [&](Conversation& conversation) -> Status {
    GEN_TRY(not_null(time, "time"));
    return conversation.set_time(time);
  });
}

gen_status gen_chat_format(const gen_model* model, const gen_chat* chat,
                           int32_t add_generation_prompt, char* buf, size_t capacity, size_t* n,
                           gen_error* error) {
  if (n != nullptr) *n = 0;
  return edit(const_cast<gen_chat*>(chat), error, [&](const Conversation& conversation) -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto* const tokenizer, tokenizer_of(model->tokenizer.impl.get()));
    GEN_ASSIGN(const std::string text,
               gen::chat::format_chat(*tokenizer, conversation, add_generation_prompt != 0));
    return gen::api::text_out(text, buf, capacity, n);
  });
}

gen_status gen_chat_encode(const gen_model* model, const gen_chat* chat,
                           int32_t add_generation_prompt, int32_t* ids, size_t capacity, size_t* n,
                           gen_error* error) {
  if (n != nullptr) *n = 0;
  return edit(const_cast<gen_chat*>(chat), error, [&](const Conversation& conversation) -> Status {
    GEN_TRY(not_null(model, "model"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto* const tokenizer, tokenizer_of(model->tokenizer.impl.get()));
    std::vector<int32_t> made;
    GEN_TRY(gen::chat::encode_chat(*tokenizer, conversation, add_generation_prompt != 0, &made));
    return gen::api::array_out<int32_t>(made, ids, capacity, n, "ids");
  });
}

gen_status gen_session_append_chat(gen_session* session, const gen_chat* chat,
                                   int32_t add_generation_prompt, gen_error* error) {
  return edit(const_cast<gen_chat*>(chat), error, [&](const Conversation& conversation) -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    GEN_ASSIGN(const auto* const tokenizer, tokenizer_of(used->generator().tokenizer()));
    std::vector<int32_t> ids;
    GEN_TRY(gen::chat::encode_chat(*tokenizer, conversation, add_generation_prompt != 0, &ids));
    if (ids.empty()) {
      return {Code::kInvalidArgument, "the chat template makes nothing of the conversation"};
    }
    std::vector<int32_t> borders;
    if (used->keeps_points()) {
      borders = gen::chat::chat_borders(*tokenizer, conversation, ids);
    }
    return used->append_chat(ids, borders);
  });
}

void gen_chat_free(gen_chat* chat) {
  if (chat != nullptr && !chat->lent) delete chat;
}

// SPDX-License-Identifier: Apache-2.0
// chat.h of the C API.
#include <generate/chat.h>

#include "api/boundary/boundary.h"
#include "api/generate/generating_call.h"
#include "api/generate/handles.h"
#include "api/model/model_handle.h"

namespace {

using gen::Code;
using gen::InUseGuard;
using gen::Result;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::chat::Conversation;
using gen::generate::ChatSession;
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

Status send(gen_chat_session* chat_session, const char* text, size_t len,
            const gen_sampling* sampling, gen_token_callback callback, void* user,
            gen_result** result) {
  GEN_TRY(not_null(chat_session, "chat_session"));
  std::optional<std::string_view> message;
  if (text != nullptr) {
    GEN_ASSIGN(message, gen::api::text_in(text, len, "text"));
  }
  GEN_ASSIGN(const auto used, chat_session->shared.enter("the chat session"));
  return gen::api::generating_call(
      [&](const gen::generate::CallParams& params, gen::generate::EventCallback event, void* data,
          std::optional<gen::generate::GenResult>* outcome) {
        return used->send(message, params, event, data, outcome);
      },
      sampling, callback, user, result);
}

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
    return used->append_chat(ids);
  });
}

void gen_chat_free(gen_chat* chat) { delete chat; }

gen_status gen_chat_session_new(gen_generator* generator, gen_chat* chat, gen_chat_session** out,
                                gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    const gen::SharedCallbacks callbacks = generator->shared.callbacks();
    auto handle = std::make_unique<gen_chat_session>();
    auto shared = chat != nullptr ? chat->impl : std::make_shared<gen::generate::Chat>();
    GEN_ASSIGN(auto made, ChatSession::create(used.shared(), std::move(shared)));
    gen::api::fill_session(made->session(), callbacks, &handle->session);
    handle->session.lent = true;
    handle->shared = gen::api::Shared<ChatSession>(std::move(made), callbacks);
    *out = handle.release();
    return {};
  });
}

gen_status gen_chat_session_send(gen_chat_session* chat_session, const char* text, size_t len,
                                 const gen_sampling* sampling, gen_result** result,
                                 gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error,
               [&] { return send(chat_session, text, len, sampling, nullptr, nullptr, result); });
}

gen_status gen_chat_session_send_stream(gen_chat_session* chat_session, const char* text,
                                        size_t len, const gen_sampling* sampling,
                                        gen_token_callback callback, void* user,
                                        gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(reinterpret_cast<const void*>(callback), "callback"));
    return send(chat_session, text, len, sampling, callback, user, result);
  });
}

gen_session* gen_chat_session_session(gen_chat_session* chat_session) {
  return chat_session != nullptr ? &chat_session->session : nullptr;
}

void gen_chat_session_free(gen_chat_session* chat_session) {
  if (chat_session != nullptr) {
    gen::api::end_handle(chat_session, chat_session->shared.callbacks());
  }
}

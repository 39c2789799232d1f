// SPDX-License-Identifier: Apache-2.0
// Chat sessions of chat.h in the C API; chat.cpp has the conversations, stream.cpp the streams.
#include <generate/chat.h>

#include "api/boundary/boundary.h"
#include "api/generate/generating_call.h"
#include "api/generate/handles.h"

namespace {

using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::generate::ChatSession;

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

gen_status gen_chat_session_end_reasoning(gen_chat_session* chat_session, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(chat_session, "chat_session"));
    return chat_session->shared.keep()->end_reasoning();
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

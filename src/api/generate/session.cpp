// SPDX-License-Identifier: Apache-2.0
// session.h of the C API.
#include <generate/session.h>

#include "api/boundary/boundary.h"
#include "api/generate/generating_call.h"
#include "api/generate/handles.h"
#include "api/boundary/state_call.h"

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;
using gen::cache::StateContents;
using gen::cache::StateKind;
using gen::generate::Prompt;
using gen::generate::Session;

}  // namespace

void gen::api::fill_session(std::shared_ptr<Session> session, const SharedCallbacks& callbacks,
                            gen_session* handle) {
  lend_cache(*session, &handle->cache);
  handle->cache.callbacks = callbacks;
  lend_state(session, callbacks, &handle->state);
  handle->shared = Shared<Session>(std::move(session), callbacks);
}

gen_status gen_session_new(gen_generator* generator, gen_session** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(generator, "generator"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto used, generator->shared.enter("the generator"));
    const gen::SharedCallbacks callbacks = generator->shared.callbacks();
    auto handle = std::make_unique<gen_session>();
    GEN_ASSIGN(auto made, used->new_session());
    gen::api::fill_session(std::move(made), callbacks, handle.get());
    *out = handle.release();
    return {};
  });
}

gen_status gen_session_generate(gen_session* session, const char* prompt, size_t len,
                                const gen_sampling* sampling, gen_result** result,
                                gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return gen::api::generating_call(used.shared(), prompt, len, sampling, nullptr, nullptr,
                                     result);
  });
}

gen_status gen_session_generate_stream(gen_session* session, const char* prompt, size_t len,
                                       const gen_sampling* sampling, gen_token_callback callback,
                                       void* user, gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(reinterpret_cast<const void*>(callback), "callback"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return gen::api::generating_call(used.shared(), prompt, len, sampling, callback, user, result);
  });
}

gen_status gen_session_append(gen_session* session, const char* text, size_t len,
                              gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(text, "text"));
    Prompt prompt;
    GEN_ASSIGN(prompt.text, gen::api::text_in(text, len, "text"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->append(prompt);
  });
}

gen_status gen_session_append_tokens(gen_session* session, const int32_t* tokens, size_t count,
                                     gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    if (count > 0) GEN_TRY(not_null(tokens, "tokens"));
    Prompt prompt;
    prompt.tokens = {tokens, count};
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->append(prompt);
  });
}

gen_status gen_session_score(gen_session* session, const char* text, size_t len, float* logprobs,
                             size_t capacity, size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(text, "text"));
    GEN_TRY(not_null(n, "n"));
    Prompt prompt;
    GEN_ASSIGN(prompt.text, gen::api::text_in(text, len, "text"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    // The size of the buffer is checked before the model runs.
    GEN_ASSIGN(*n, used->score_length(prompt));
    if (logprobs == nullptr) return {};
    if (*n > capacity) {
      return gen::error(Code::kOutOfRange, "%zu values do not fit a buffer of %zu", *n, capacity);
    }
    *n = 0;
    std::vector<float> values;
    GEN_TRY(used->score(prompt, &values, nullptr));
    return gen::api::array_out<float>(values, logprobs, capacity, n, "values");
  });
}

gen_status gen_session_tokens(const gen_session* session, int32_t* ids, size_t capacity, size_t* n,
                              gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    GEN_ASSIGN(const auto tokens, used->tokens());
    return gen::api::array_out<int32_t>(tokens, ids, capacity, n, "ids");
  });
}

int32_t gen_session_length(const gen_session* session) {
  return session != nullptr ? session->shared.peek().length() : 0;
}

gen_status gen_session_truncate(gen_session* session, int32_t n, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->truncate(n);
  });
}

gen_status gen_session_reset(gen_session* session, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->reset();
  });
}

gen_status gen_session_fork(const gen_session* session, gen_session** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(out, "out"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    const gen::SharedCallbacks callbacks = session->shared.callbacks();
    auto handle = std::make_unique<gen_session>();
    GEN_ASSIGN(auto made, used->fork());
    gen::api::fill_session(std::move(made), callbacks, handle.get());
    *out = handle.release();
    return {};
  });
}

gen_status gen_session_save(const gen_session* session, const char* path, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(path, "path"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->save([path](const StateContents& contents) {
      return gen::api::state_to_file(StateKind::kSession, contents, path);
    });
  });
}

gen_status gen_session_save_buffer(const gen_session* session, void* buf, size_t capacity,
                                   size_t* n, gen_error* error) {
  if (n != nullptr) *n = 0;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(n, "n"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->save([=](const StateContents& contents) {
      return gen::api::state_to_buffer(StateKind::kSession, contents, buf, capacity, n);
    });
  });
}

gen_status gen_session_load(gen_session* session, const char* path, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(path, "path"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return gen::api::state_from_file(
        path, [&used](std::span<const std::byte> state) { return used->load(state); });
  });
}

gen_status gen_session_load_buffer(gen_session* session, const void* data, size_t size,
                                   gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(data, "data"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->load({static_cast<const std::byte*>(data), size});
  });
}

gen_status gen_session_set_cancel(gen_session* session, gen_cancel* cancel, gen_error* error) {
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    return used->set_cancel(cancel != nullptr ? cancel->flag : nullptr);
  });
}

void gen_session_cancel(gen_session* session) {
  if (session != nullptr) session->shared.peek().cancel();
}

double gen_session_progress(const gen_session* session) {
  return session != nullptr ? static_cast<double>(session->shared.peek().progress()) : 0.0;
}

const kv_cache* gen_session_cache(const gen_session* session) {
  return session != nullptr ? &session->cache : nullptr;
}

void gen_session_free(gen_session* session) {
  if (session == nullptr || session->lent) return;
  gen::api::end_handle(session, session->shared.callbacks());
}

// SPDX-License-Identifier: Apache-2.0
// stream.h of the C API, and gen_chat_session_open_stream: a Generation pulled event by event.
#include <generate/chat.h>
#include <generate/stream.h>

#include "api/boundary/boundary.h"
#include "api/generate/handles.h"

struct gen_stream : gen::Postponed {
  gen::SharedCallbacks callbacks;
  std::unique_ptr<gen::generate::Generation> own;  // null for a chat session's stream
  std::unique_ptr<gen::generate::ChatTurn> turn;   // null for a session's stream
  gen::HomeProcess home;
  gen::InUseFlag in_use;
  gen_token token{};
  std::vector<gen_piece> pieces;

  gen::generate::Generation& generation() { return turn != nullptr ? turn->generation() : *own; }
  /// Called with each event.
  void read(const gen::generate::Event& event) {
    gen::api::fill_token(turn != nullptr ? turn->read(event) : event, &pieces, &token);
  }
  /// Called after each event.
  gen::Status note() noexcept { return turn != nullptr ? turn->note_end() : gen::Status(); }
};

namespace {

using gen::Code;
using gen::Status;
using gen::api::guard;
using gen::api::not_null;

void end(gen_stream* stream) { gen::api::end_handle(stream, stream->callbacks); }

/// The checks of every call on a stream; `body` runs while the stream is held.
template <typename F>
Status with_stream(gen_stream* stream, F&& body) {
  GEN_TRY(not_null(stream, "stream"));
  const gen::api::Entry entry(stream->callbacks);
  GEN_TRY(entry.entered("the stream"));
  const gen::api::HeldHandle<gen_stream> held(stream, &stream->in_use, end);
  GEN_TRY(held.entered("the stream"));
  return body();
}

}  // namespace

gen_status gen_stream_open(gen_session* session, const char* prompt, size_t len,
                           const gen_sampling* sampling, gen_stream** out, gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(session, "session"));
    GEN_TRY(not_null(out, "out"));
    gen::generate::Prompt what;
    GEN_ASSIGN(what.text, gen::api::text_in(prompt, len, "prompt"));
    GEN_ASSIGN(const auto used, session->shared.enter("the session"));
    auto handle = std::make_unique<gen_stream>();
    handle->callbacks = session->shared.callbacks();
    GEN_ASSIGN(handle->own, used->open(what, gen::api::params_of(sampling)));
    *out = handle.release();
    return {};
  });
}

gen_status gen_chat_session_open_stream(gen_chat_session* chat_session, const char* text,
                                        size_t len, const gen_sampling* sampling, gen_stream** out,
                                        gen_error* error) {
  if (out != nullptr) *out = nullptr;
  return guard(error, [&]() -> Status {
    GEN_TRY(not_null(chat_session, "chat_session"));
    GEN_TRY(not_null(out, "out"));
    std::optional<std::string_view> message;
    if (text != nullptr) {
      GEN_ASSIGN(message, gen::api::text_in(text, len, "text"));
    }
    GEN_ASSIGN(const auto used, chat_session->shared.enter("the chat session"));
    auto handle = std::make_unique<gen_stream>();
    handle->callbacks = chat_session->shared.callbacks();
    GEN_ASSIGN(handle->turn, used->open(message, gen::api::params_of(sampling)));
    *out = handle.release();
    return {};
  });
}

gen_status gen_stream_next(gen_stream* stream, const gen_token** token, gen_error* error) {
  if (token != nullptr) *token = nullptr;
  return guard(error, [&] {
    return with_stream(stream, [&]() -> Status {
      GEN_TRY(not_null(token, "token"));
      GEN_ASSIGN(const gen::generate::Event* event, stream->generation().next());
      if (event != nullptr) stream->read(*event);
      GEN_TRY(stream->note());
      if (event == nullptr) return {};
      *token = &stream->token;
      return {};
    });
  });
}

gen_status gen_stream_poll(gen_stream* stream, const gen_token** token, int32_t* state,
                           gen_error* error) {
  if (token != nullptr) *token = nullptr;
  if (state != nullptr) *state = GEN_STREAM_PENDING;
  return guard(error, [&] {
    return with_stream(stream, [&]() -> Status {
      GEN_TRY(not_null(token, "token"));
      GEN_TRY(not_null(state, "state"));
      gen::generate::Generation& generation = stream->generation();
      if (generation.ended()) {
        *state = GEN_STREAM_END;
        return generation.result().status;
      }
      const gen::generate::Event* const event = generation.poll();
      if (event != nullptr) stream->read(*event);
      if (Status noted = stream->note(); !noted.ok()) {
        *state = GEN_STREAM_END;
        return noted;
      }
      if (event == nullptr) return {};
      *token = &stream->token;
      *state = GEN_STREAM_TOKEN;
      return {};
    });
  });
}

size_t gen_stream_alternatives(gen_stream* stream, const int32_t** ids, const float** logprobs) {
  if (ids != nullptr) *ids = nullptr;
  if (logprobs != nullptr) *logprobs = nullptr;
  size_t count = 0;
  guard(nullptr, [&] {
    return with_stream(stream, [&]() -> Status {
      const gen::generate::GenResult& result = stream->generation().result();
      const auto each = static_cast<size_t>(result.top_count);
      const size_t begin = static_cast<size_t>(stream->token.index) * each;
      if (stream->token.id < 0 || begin + each > result.top_ids.size()) return {};
      if (ids != nullptr && each > 0) *ids = result.top_ids.data() + begin;
      if (logprobs != nullptr && each > 0) *logprobs = result.top_logprobs.data() + begin;
      count = each;
      return {};
    });
  });
  return count;
}

gen_status gen_stream_result(gen_stream* stream, gen_result** result, gen_error* error) {
  if (result != nullptr) *result = nullptr;
  return guard(error, [&] {
    return with_stream(stream, [&]() -> Status {
      GEN_TRY(not_null(result, "result"));
      if (!stream->generation().ended()) {
        return {Code::kState, "the stream is not at its end, so there is no result yet"};
      }
      auto handle = std::make_unique<gen_result>();
      gen::api::fill_result(gen::generate::GenResult(stream->generation().result()), handle.get());
      *result = handle.release();
      return {};
    });
  });
}

void gen_stream_close(gen_stream* stream) {
  if (gen::api::usable(stream) && stream->in_use.retire()) end(stream);
}

// SPDX-License-Identifier: Apache-2.0
// Sessions, their streams, and conversations. See generate.hpp.
#ifndef GENERATE_SESSION_HPP
#define GENERATE_SESSION_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator.hpp"

namespace gen {

/// One generation pulled piece by piece; a single-pass range. The session must outlive it, and
/// serve no other call meanwhile.
class Stream : public detail::Handle<gen_stream, gen_stream_close> {
 public:
  using Handle::Handle;

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Token;
    using difference_type = std::ptrdiff_t;
    using pointer = const Token *;
    using reference = const Token &;
    iterator() = default;
    explicit iterator(Stream *stream) : stream_(stream) { ++*this; }
    const Token &operator*() const noexcept { return token_; }
    const Token *operator->() const noexcept { return &token_; }
    iterator &operator++() {
      if (!stream_->next(&token_)) stream_ = nullptr;
      return *this;
    }
    bool operator==(const iterator &other) const noexcept { return stream_ == other.stream_; }
    bool operator!=(const iterator &other) const noexcept { return stream_ != other.stream_; }

   private:
    Stream *stream_ = nullptr;
    Token token_{};
  };

  iterator begin() { return iterator(this); }
  iterator end() noexcept { return iterator(); }
  /// False at the end. Throws the error that ends the generation early; result() then has the
  /// partial result.
  bool next(Token *token) {
    const gen_token *piece = nullptr;
    detail::call(gen_stream_next, get(), &piece);
    if (piece == nullptr) return false;
    *token = detail::view_of(*piece);
    return true;
  }
  /// The most probable tokens at the position of the last piece's token, best first, with their
  /// log-probabilities; if asked for by Sampling::logprobs().
  std::vector<std::pair<int32_t, float>> alternatives() {
    const int32_t *ids = nullptr;
    const float *logprobs = nullptr;
    std::vector<std::pair<int32_t, float>> all(gen_stream_alternatives(get(), &ids, &logprobs));
    for (size_t i = 0; i < all.size(); ++i) all[i] = {ids[i], logprobs[i]};
    return all;
  }
  /// At the end only.
  Result result() const { return Result(detail::made<gen_result>(gen_stream_result, get())); }
};

/// One growing sequence with its cache.
class Session : public detail::Handle<gen_session, gen_session_free> {
 public:
  explicit Session(const Generator &generator) : Handle(detail::made<gen_session>(gen_session_new, generator.get())) {}

  Result generate(std::string_view prompt, const Sampling &sampling = Sampling()) {
    return detail::generated(gen_session_generate, get(), detail::data(prompt), prompt.size(), sampling.get());
  }
  template <class Take>
  Result generate(std::string_view prompt, const Sampling &sampling, Take &&take) {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_session_generate_stream, get(), detail::data(prompt), prompt.size(), sampling.get(),
                                      &callback.run, static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
  Stream stream(std::string_view prompt, const Sampling &sampling = Sampling()) {
    return Stream(
        detail::made<gen_stream>(gen_stream_open, get(), detail::data(prompt), prompt.size(), sampling.get()));
  }
  void append(std::string_view text) { detail::call(gen_session_append, get(), detail::data(text), text.size()); }
  void append(const std::vector<int32_t> &tokens) {
    detail::call(gen_session_append_tokens, get(), tokens.data(), tokens.size());
  }
  /// Makes the session hold a conversation, so that generating with an empty prompt answers it.
  void append(const Chat &chat, bool add_generation_prompt = true) {
    detail::call(gen_session_append_chat, get(), chat.get(), add_generation_prompt ? 1 : 0);
  }
  /// Log-probabilities of a text's tokens as a continuation; the session is unchanged.
  std::vector<float> score(std::string_view text) {
    return detail::filled<std::vector<float>>(gen_session_score, get(), detail::data(text), text.size());
  }
  std::vector<int32_t> tokens() const { return detail::filled<std::vector<int32_t>>(gen_session_tokens, get()); }
  int32_t length() const noexcept { return gen_session_length(get()); }
  void truncate(int32_t n) { detail::call(gen_session_truncate, get(), n); }
  void reset() { detail::call(gen_session_reset, get()); }
  Session fork() const { return Session(detail::made<gen_session>(gen_session_fork, get())); }
  /// Any thread.
  void cancel() noexcept { gen_session_cancel(get()); }
  double progress() const noexcept { return gen_session_progress(get()); }
  void save(const std::string &path) const { detail::call(gen_session_save, get(), path.c_str()); }
  void load(const std::string &path) { detail::call(gen_session_load, get(), path.c_str()); }
  std::vector<std::byte> save() const {
    return detail::filled<std::vector<std::byte>>(gen_session_save_buffer, get());
  }
  void load(const std::vector<std::byte> &state) {
    detail::call(gen_session_load_buffer, get(), state.data(), state.size());
  }

 private:
  explicit Session(gen_session *owned) : Handle(owned) {}
};

/// A conversation and a session that holds it. The Chat is shared: tools and their results can be
/// added to it between turns.
class ChatSession : public detail::Handle<gen_chat_session, gen_chat_session_free> {
 public:
  explicit ChatSession(const Generator &generator)
      : Handle(detail::made<gen_chat_session>(gen_chat_session_new, generator.get(), nullptr)) {}
  ChatSession(const Generator &generator, Chat &chat)
      : Handle(detail::made<gen_chat_session>(gen_chat_session_new, generator.get(), chat.get())) {}
  /// The user's message, and the answer to it.
  Result send(std::string_view text, const Sampling &sampling = Sampling()) {
    return detail::generated(gen_chat_session_send, get(), detail::data(text), text.size(), sampling.get());
  }
  template <class Take>
  Result send(std::string_view text, const Sampling &sampling, Take &&take) {
    return streamed(detail::data(text), text.size(), sampling, take);
  }
  /// Answers what the conversation ends with, such as the result of a tool, or continues an answer
  /// that was cut.
  Result answer(const Sampling &sampling = Sampling()) {
    return detail::generated(gen_chat_session_send, get(), nullptr, size_t{0}, sampling.get());
  }
  template <class Take>
  Result answer(const Sampling &sampling, Take &&take) {
    return streamed(nullptr, 0, sampling, take);
  }
  /// Streams the answer, also without a message. While the stream lives, the conversation is in
  /// use.
  Stream stream(std::optional<std::string_view> text, const Sampling &sampling = Sampling()) {
    return Stream(detail::made<gen_stream>(gen_chat_session_open_stream, get(), text ? detail::data(*text) : nullptr,
                                           text ? text->size() : size_t{0}, sampling.get()));
  }
  /// Any thread.
  void cancel() noexcept { gen_session_cancel(gen_chat_session_session(get())); }
  /// Any thread; see gen_chat_session_end_reasoning.
  void end_reasoning() { detail::call(gen_chat_session_end_reasoning, get()); }
  int32_t length() const noexcept { return gen_session_length(gen_chat_session_session(get())); }
  /// Tokens and cache, without messages; see gen_chat_session_session.
  void save(const std::string &path) const {
    detail::call(gen_session_save, gen_chat_session_session(get()), path.c_str());
  }
  void load(const std::string &path) { detail::call(gen_session_load, gen_chat_session_session(get()), path.c_str()); }

 private:
  template <class Take>
  Result streamed(const char *text, size_t length, const Sampling &sampling, Take &take) {
    detail::Callback<Take> callback{take, nullptr};
    Result result = detail::generated(gen_chat_session_send_stream, get(), text, length, sampling.get(), &callback.run,
                                      static_cast<void *>(&callback));
    if (callback.thrown) std::rethrow_exception(callback.thrown);
    return result;
  }
};

}  // namespace gen

#endif  // GENERATE_SESSION_HPP

// SPDX-License-Identifier: Apache-2.0
// The C handles with destructors, and failures as one C++ exception that main() prints. Uses only
// public headers.
#pragma once

#include <generate/experimental.h>
#include <generate/generate.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace cli {

/// The conventional exit status of a program stopped by Ctrl-C.
constexpr int kInterruptedStatus = 130;

/// An error, as one line, with the exit code: 1, 2 for a wrong command line, kInterruptedStatus if
/// the user stopped the program.
struct Failure : std::runtime_error {
  explicit Failure(const std::string& message, int code = 1, gen_status why = GEN_OK)
      : std::runtime_error(message), exit_code(code), status(why) {}
  int exit_code;
  gen_status status;  // of the library call that failed, if there was one
};

/// Turns a failing status into a Failure.
inline void check(gen_status status, const gen_error& error) {
  if (status == GEN_ERROR_CANCELLED) throw Failure("stopped", kInterruptedStatus, status);
  if (status != GEN_OK) throw Failure(error.message, 1, status);
}

/// The same for the value of an option.
inline void check_option(const char* option, gen_status status, const gen_error& error) {
  if (status != GEN_OK) throw Failure(std::string(option) + ": " + error.message, 2, status);
}

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
template <typename T, auto Free>
using Handle = std::unique_ptr<T, Deleter<Free>>;

using Model = Handle<gen_model, gen_model_free>;
using ModelOptions = Handle<gen_model_options, gen_model_options_free>;
using Tokenizer = Handle<gen_tokenizer, gen_tokenizer_free>;
using Chat = Handle<gen_chat, gen_chat_free>;
using ChatSession = Handle<gen_chat_session, gen_chat_session_free>;
using Agent = Handle<gen_agent, gen_agent_free>;
using AgentOptions = Handle<gen_agent_options, gen_agent_options_free>;
using ToolRegistry = Handle<gen_tool_registry, gen_tool_registry_free>;
using MemoryEstimate = Handle<gen_memory_estimate, gen_memory_estimate_free>;
using QuantizeOptions = Handle<gen_quantize_options, gen_quantize_options_free>;
using Options = Handle<gen_options, gen_options_free>;
using Generator = Handle<gen_generator, gen_free>;
using Session = Handle<gen_session, gen_session_free>;
using Stream = Handle<gen_stream, gen_stream_close>;
using Sampling = Handle<gen_sampling, gen_sampling_free>;
using Result = Handle<gen_result, gen_result_free>;
using Request = Handle<gen_request, gen_request_free>;
using Tracer = Handle<gen_tracer, gen_tracer_free>;
using Cache = Handle<kv_cache, kv_cache_free>;

/// A message of the library about settings, with the names of the program's options instead of the
/// library's: "it needs --paged", not "it needs paged_kv".
std::string by_options(const std::string& message);

/// The same for a call that checks all options together.
inline void check_options(gen_status status, const gen_error& error) {
  if (status == GEN_OK) return;
  const std::string message = by_options(error.message);
  throw Failure(message, message == error.message ? 1 : 2, status);
}

/// Calls make(args…, &handle, &error) and owns the handle.
template <typename H, typename F, typename... Args>
H make(F function, Args... args) {
  typename H::pointer raw = nullptr;
  gen_error error;
  check(function(args..., &raw, &error), error);
  return H(raw);
}
/// The same with check_options.
template <typename H, typename F, typename... Args>
H make_by_options(F function, Args... args) {
  typename H::pointer raw = nullptr;
  gen_error error;
  const gen_status status = function(args..., &raw, &error);
  // Messages about files contain names that are not options.
  if (status == GEN_ERROR_INVALID_ARGUMENT || status == GEN_ERROR_OUT_OF_RANGE) {
    check_options(status, error);
  }
  check(status, error);
  return H(raw);
}

/// Text from a function that fills (buf, capacity, &n, &error).
template <typename F>
std::string text_of(F function) {
  size_t n = 0;
  gen_error error;
  check(function(nullptr, size_t{0}, &n, &error), error);
  std::string text(n + 1, '\0');
  check(function(text.data(), text.size(), &n, &error), error);
  text.resize(n);
  return text;
}

}  // namespace cli

// SPDX-License-Identifier: Apache-2.0
// Results, pieces, and callbacks that get pieces. See generate.hpp.
#ifndef GENERATE_RESULT_HPP
#define GENERATE_RESULT_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "handle.hpp"

namespace gen {

/// The outcome of a generation. Its views live as long as it does.
class Result : public detail::Handle<gen_result, gen_result_free> {
 public:
  using Handle::Handle;
  std::string_view text() const noexcept {
    size_t n = 0;
    const char *text = gen_result_text(get(), &n);
    return {text != nullptr ? text : "", n};
  }
  std::vector<int32_t> tokens() const { return copied(gen_result_tokens); }
  std::vector<float> logprobs() const { return copied(gen_result_logprobs); }
  /// The most probable tokens at a step, with their log-probabilities, best first; see Sampling::logprobs.
  std::vector<std::pair<int32_t, float>> top_logprobs(size_t index) const {
    const int32_t *ids = nullptr;
    const float *logprobs = nullptr;
    std::vector<std::pair<int32_t, float>> all(gen_result_top_logprobs(get(), index, &ids, &logprobs));
    for (size_t i = 0; i < all.size(); ++i) all[i] = {ids[i], logprobs[i]};
    return all;
  }
  int32_t finish_reason() const noexcept { return gen_result_finish_reason(get()); }
  /// `key`: "prompt", "prompt_cached", "prompt_evaluated", "completion", …, "grammar_complete"
  int64_t usage(const std::string &key) const {
    int64_t value = 0;
    detail::call(gen_result_usage, get(), key.c_str(), &value);
    return value;
  }
  double seconds(const std::string &key) const {
    double value = 0;
    detail::call(gen_result_timings, get(), key.c_str(), &value);
    return value;
  }
  /// What a chat session read in the answer, as JSON; see gen_result_answer.
  std::string answer() const { return detail::filled<std::string>(gen_result_answer, get()); }
  /// The drafts that were verified, as JSON; see gen_result_drafts.
  std::string drafts() const { return detail::filled<std::string>(gen_result_drafts, get()); }
  /// The error that ended the generation, or NULL.
  const gen_error *error() const noexcept { return gen_result_error(get()); }

 private:
  template <class T>
  std::vector<T> copied(const T *(*getter)(const gen_result *, size_t *)) const {
    size_t n = 0;
    const T *values = getter(get(), &n);
    return n == 0 ? std::vector<T>() : std::vector<T>(values, values + n);
  }
};

/// One piece. `text` is whole characters, valid until the next piece.
struct Token {
  int32_t id;
  std::string_view text;
  float logprob;
  bool done;
  int32_t finish_reason;
  int32_t index;
  const gen_token_logprob *top;  ///< [top_count] the most probable tokens here, best first, see Sampling::logprobs
  int32_t top_count;
  const gen_piece *pieces;  ///< [piece_count] what a chat session read: text, reasoning, calls
  int32_t piece_count;
};

namespace detail {

inline Token view_of(const gen_token &token) noexcept {
  return {token.id,        {token.text != nullptr ? token.text : "", token.text_len}, token.logprob, token.done != 0,
          token.finish_reason, token.index, token.top, token.top_count,
          token.pieces, token.piece_count};
}

/// A function(args…, gen_result **, gen_error *) that generates.
template <class Function, class... Args>
Result generated(Function function, Args... args) {
  gen_error error;
  gen_result *made = nullptr;
  const gen_status status = function(args..., &made, &error);
  if (status == GEN_OK || gen_result_finish_reason(made) == GEN_FINISH_CALLBACK) return Result(made);
  throw Error(status, error.message, std::shared_ptr<gen_result>(made, gen_result_free));
}

/// Calls `Take(token)`, which returns whether to continue; an exception from it leaves the
/// generating call.
template <class Take>
struct Callback {
  Take &take;
  std::exception_ptr thrown;
  static int run(void *user, const gen_token *token) noexcept {
    auto &self = *static_cast<Callback *>(user);
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Take &, const Token &>>) {
        self.take(view_of(*token));
        return 0;
      } else {
        return self.take(view_of(*token)) ? 0 : 1;
      }
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

}  // namespace detail

}  // namespace gen

#endif  // GENERATE_RESULT_HPP

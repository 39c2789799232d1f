// SPDX-License-Identifier: Apache-2.0
// Transcript: the output of a call. It takes token after token, decodes them, holds back what may
// become a stop string, and decides what ends the text: a stop token, a stop string, the end of a
// grammar, max_new_tokens, or the context, in this order. It is independent of models, caches and
// steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "generate/request/call_params.h"
#include "generate/request/result.h"
#include "generate/text/stop_matcher.h"
#include "generate/text/text_spec.h"
#include "sampling/chain.h"
#include "tokenizer/stream_decoder.h"

namespace gen::generate {

/// Writes tokens, text, log-probabilities and finish reason of a result; its caller writes the
/// rest. Threads: one at a time.
class Transcript {
 public:
  /// Both must outlive it.
  Transcript(const CallParams& params, GenResult* result)
      : params_(params), result_(*result), stops_(params.stops.strings) {}

  /// Begins after `held`, all tokens of the session. `unsaid` is the end of their text that no
  /// event had; it is emitted first. May throw std::bad_alloc; nothing has changed then.
  Status begin(const TextSpec& spec, std::span<const int32_t> held, std::string unsaid);
  /// Most tokens that may be kept.
  [[nodiscard]] int32_t most() const noexcept { return most_; }

  /// Tokens that end the text; valid after begin().
  [[nodiscard]] std::span<const int32_t> stop_tokens() const noexcept { return stop_tokens_; }

  /// The role of a token under the call's grammar: kAny without one; kPart of the text, even if it
  /// is a stop token; kLast, after which nothing follows; kEnd, which ends the text.
  enum class Role { kAny, kPart, kLast, kEnd };
  /// Takes the token that was sampled last; the session holds `length` tokens including it. True if
  /// it is kept: event() describes it. False if it ends the text, including a stop token without a
  /// grammar. A failure, or std::bad_alloc, changes nothing.
  Result<bool> take(const sampling::Choice& choice, int32_t length, Role role);
  /// What ends the text at its current place; kNone if it continues.
  [[nodiscard]] FinishReason end() const noexcept { return end_; }
  /// Ends the text; event() is then the done event. If it is `told`, it has the text held back,
  /// unless a stop string ended the text or there is no text. What it does not have is kept for
  /// take_unsaid(). An incomplete character is replaced by U+FFFD only if the model ended the text;
  /// after any other end the next call can complete it.
  void close(FinishReason reason, bool told) noexcept;
  /// Returns the text held back that no event had.
  [[nodiscard]] std::string take_unsaid() noexcept;

  /// The event of the last take() or close(); valid until the next call.
  [[nodiscard]] const Event& event() const noexcept { return event_; }

 private:
  const CallParams& params_;
  GenResult& result_;
  StopMatcher stops_;
  std::optional<tokenizer::StreamDecoder> decoder_;  // empty without a tokenizer
  std::vector<int32_t> stop_tokens_;
  int32_t most_ = 0;
  int32_t context_ = 0;  // length at which the session is full; not used if it shifts
  FinishReason end_ = FinishReason::kNone;
  std::string unsaid_;   // text emitted before the first token
  std::string piece_;    // text of the event
  std::string decoded_;  // decoded text, including stop strings
  Event event_;
};

}  // namespace gen::generate

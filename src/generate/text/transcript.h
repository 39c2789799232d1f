// SPDX-License-Identifier: Apache-2.0
// Transcript: what a call has said. It takes token after token, turns them into text, holds back
// what may become a stop string, and decides what ends the text: a stop token, a stop string, the
// end of a grammar, max_new_tokens, or the context, in this order. It knows nothing of models,
// caches and steps.
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

/// Writes tokens, text and log-probabilities of a result, and its finish reason; the rest of it is
/// the caller's. Threads: one at a time.
class Transcript {
 public:
  /// Both must outlive it.
  Transcript(const CallParams& params, GenResult* result)
      : params_(params), result_(*result), stops_(params.stops.strings) {}

  /// The text goes on behind `held`, all that the session holds, the end of which was left `unsaid`
  /// and is said first. May throw std::bad_alloc; nothing has been said then.
  Status begin(const TextSpec& spec, std::span<const int32_t> held, std::string unsaid);
  /// Tokens that may be kept at most.
  [[nodiscard]] int32_t most() const noexcept { return most_; }

  /// Those that end the text; once begun.
  [[nodiscard]] std::span<const int32_t> stop_tokens() const noexcept { return stop_tokens_; }

  /// What the call's grammar makes of a token: nothing without one; a part of the text, whether or
  /// not it is a stop token; the last part, to which nothing is to be added; the end of the text.
  enum class Role { kAny, kPart, kLast, kEnd };
  /// Takes the token that was drawn last; the session holds `length` tokens with it. True if it is
  /// kept: event() then tells of it. False for one that ends the text, a stop token where there is
  /// no grammar. A failure, or std::bad_alloc, takes nothing.
  Result<bool> take(const sampling::Choice& choice, int32_t length, Role role);
  /// What ends the text where it now stands, kNone if it goes on.
  [[nodiscard]] FinishReason end() const noexcept { return end_; }
  /// Ends the text; event() is then the done event. Where that is `told`, everything held comes
  /// out, unless a stop string was what ended it or nothing was said; what does not is left unsaid.
  /// Only where the model has ended it an unfinished character is given up; after any other end the
  /// next call can complete it.
  void close(FinishReason reason, bool told) noexcept;
  /// Text of the tokens that was held back and in no event.
  [[nodiscard]] std::string take_unsaid() noexcept;

  /// Of what was last taken or closed; valid until the next call.
  [[nodiscard]] const Event& event() const noexcept { return event_; }

 private:
  const CallParams& params_;
  GenResult& result_;
  StopMatcher stops_;
  std::optional<tokenizer::StreamDecoder> decoder_;  // none without a tokenizer
  std::vector<int32_t> stop_tokens_;
  int32_t most_ = 0;
  int32_t context_ = 0;  // length at which the session is full; never where it shifts
  FinishReason end_ = FinishReason::kNone;
  std::string unsaid_;   // before the first token
  std::string piece_;    // characters of the event
  std::string decoded_;  // characters before stop strings are taken out
  Event event_;
};

}  // namespace gen::generate

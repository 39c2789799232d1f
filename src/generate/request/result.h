// SPDX-License-Identifier: Apache-2.0
// What generation gives back: the events of a stream and the result of a whole call. Plain data;
// made by generation.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sampling/logprobs.h"

namespace gen::generate {

/// Numbers are frozen and equal GEN_FINISH_*.
enum class FinishReason : int32_t {
  kNone = 0,
  kStopToken = 1,
  kStopString = 2,
  kLength = 3,
  kContextFull = 4,
  kGrammarComplete = 5,
  kGrammarDeadEnd = 6,
  kCancelled = 7,
  kCallback = 8,
  kError = 9,
};

/// "stop_token", "length", …; "none" for anything else.
const char* finish_reason_name(FinishReason reason) noexcept;

/// One step of a stream: a kept token with the characters it set free, or the end.
struct Event {
  /// The kept token; -1 in the done event.
  int32_t token = -1;
  /// Whole UTF-8 characters; empty while a character or a possible stop string is held back. The
  /// done event carries what was still held. A NUL stands behind it. Valid until the next call on
  /// the generation.
  std::string_view text = "";
  float logprob = 0.0F;  // log-softmax of the raw logits if asked for, else 0
  std::span<const sampling::TokenLogprob> top;  // params.logprobs alternatives, best first
  int32_t index = 0;  // of the token among those kept; in the done event their number
  bool done = false;
  FinishReason finish_reason = FinishReason::kNone;  // set in the done event
};

struct Usage {
  /// Tokens of this call's prompt and of what was appended since the session's last generating
  /// call, as far as it is still held; BOS included.
  int32_t prompt = 0;
  int32_t prompt_cached = 0;  // of these, taken from a prefix cache
  int32_t completion = 0;     // tokens kept: without a stop token
  int64_t dropped = 0;        // taken from the session because its context was full
  int64_t drafted = 0;        // tokens guessed that the model looked at
  int64_t accepted = 0;       // of these, guessed right and said
};

/// Seconds spent inside the library; a caller's time between two pulls is not counted.
struct Timings {
  double prefill = 0.0;      // evaluating the prompt
  double decode = 0.0;       // everything after the first token
  double first_token = 0.0;  // from the start of the call to the first sampled token
};

/// The outcome of a call that has begun, whatever its status.
struct GenResult {
  std::string text;             // all events' texts in one
  std::vector<int32_t> tokens;  // the kept tokens, through the one that completed a stop string
  std::vector<float> logprobs;  // one per token if asked for, else none
  std::vector<int32_t> top_ids;     // [tokens, top_count] alternatives, best first
  std::vector<float> top_logprobs;  // [tokens, top_count]
  int32_t top_count = 0;
  FinishReason finish_reason = FinishReason::kNone;
  int32_t grammar_complete = -1;  // the tokens are a member: 1, not yet: 0, no grammar: -1
  Usage usage;
  Timings timings;
  Status status;          // OK, or what ended the call: kCancelled, kModel, …
  int32_t user_code = 0;  // what a callback returned to stop
};

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Output of generation: the events of a stream and the result of a whole call. Plain data, filled
// by generation.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "calls/call_parser.h"
#include "sampling/logprobs.h"

namespace gen::generate {

/// The numbers are part of the ABI and equal GEN_FINISH_*.
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

/// One event of a stream: a kept token with the characters it completed, or the end.
struct Event {
  /// The kept token; -1 in the done event.
  int32_t token = -1;
  /// Whole UTF-8 characters; empty while a character or a possible stop string is held back. The
  /// done event has what was held back. A NUL follows the text. Valid until the next call on the
  /// generation.
  std::string_view text = "";
  float logprob = 0.0F;  // log-softmax of the raw logits if requested, else 0
  std::span<const sampling::TokenLogprob> top;  // params.logprobs alternatives, best first
  int32_t index = 0;  // index of the token among the kept ones; in the done event their number
  bool done = false;
  FinishReason finish_reason = FinishReason::kNone;  // set in the done event
  /// What a chat session read in the text: what is reasoning, text or part of a call.
  std::span<const calls::Piece> pieces = {};
};

struct Usage {
  /// Tokens of this call's prompt and of what was appended since the session's last generating
  /// call, as far as the session still holds them; includes BOS.
  int32_t prompt = 0;
  int32_t prompt_cached = 0;  // of these, tokens from a prefix cache
  /// Tokens that this call evaluated before the first one was sampled: also earlier ones that ran
  /// again, because a state goes back to snapshots only, a window to its copies, a context shift or
  /// the pool took entries, or the last one's logits are needed.
  int32_t prompt_evaluated = 0;
  int32_t completion = 0;  // kept tokens, without a stop token
  int64_t dropped = 0;     // by context shifts, and of turns that a chat session left out
  int64_t drafted = 0;     // draft tokens that the model verified
  int64_t accepted = 0;    // of these, accepted and emitted
};

/// The drafts that steps of a call verified, in order.
struct DraftRows {
  struct Step {
    int32_t index = 0;         // of the first drafted token among the kept ones
    const char* drafter = "";  // static text
    size_t end = 0;            // of its tokens in the list
  };
  struct Token {
    int32_t token = 0;
    int32_t parent = -1;  // in its step; -1: the text
    uint8_t grade = 0;
    bool accepted = false;
  };
  std::vector<Step> steps;
  std::vector<Token> tokens;
  bool incomplete = false;  // there was no memory for a step
};

/// Seconds spent inside the library; the caller's time between two pulls is not counted.
struct Timings {
  double prefill = 0.0;      // evaluating the prompt
  double decode = 0.0;       // everything after the first token
  double first_token = 0.0;  // from the start of the call to the first sampled token
};

/// The outcome of a call that has begun, whatever its status.
struct GenResult {
  std::string text;              // texts of all events
  std::vector<int32_t> tokens;   // the kept tokens, including the one that completed a stop string
  std::vector<float> logprobs;   // one per token if requested, else empty
  std::vector<int32_t> top_ids;  // [tokens, top_count] alternatives, best first
  std::vector<float> top_logprobs;  // [tokens, top_count]
  int32_t top_count = 0;
  FinishReason finish_reason = FinishReason::kNone;
  int32_t grammar_complete = -1;  // 1: complete under the grammar; 0: not yet; -1: no grammar
  Usage usage;
  DraftRows drafts;
  Timings timings;
  std::shared_ptr<const calls::Answer> answer;  // of a chat session that reads answers; else null
  Status status;          // OK, or what ended the call: kCancelled, kModel, …
  int32_t user_code = 0;  // what a callback returned to stop
};

}  // namespace gen::generate

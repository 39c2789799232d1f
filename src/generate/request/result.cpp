// SPDX-License-Identifier: Apache-2.0
// See result.h.
#include "generate/request/result.h"

namespace gen::generate {

const char* finish_reason_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kNone:
      break;
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContextFull:
      return "context_full";
    case FinishReason::kGrammarComplete:
      return "grammar_complete";
    case FinishReason::kGrammarDeadEnd:
      return "grammar_dead_end";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kCallback:
      return "callback";
    case FinishReason::kError:
      return "error";
  }
  return "none";
}

}  // namespace gen::generate

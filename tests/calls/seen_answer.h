// SPDX-License-Identifier: Apache-2.0
// SeenAnswer: what a reader of a parser's pieces has seen, put together again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/call_parser.h"

namespace gen::calls::test {

struct SeenAnswer {
  std::string text, reasoning;
  std::vector<Call> calls;  // without ids
  bool open = false;        // a call has begun

  /// False if the pieces are in an impossible order.
  bool take(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      const bool of_call = piece.kind > PieceKind::kCallName;
      if (of_call && !open) return false;
      switch (piece.kind) {
        case PieceKind::kText:
          text += piece.text;
          break;
        case PieceKind::kReasoning:
          reasoning += piece.text;
          break;
        case PieceKind::kCallName:
          if (open || piece.call != calls.size()) return false;
          calls.push_back({"", piece.text, ""});
          open = true;
          break;
        case PieceKind::kArguments:
          calls.back().arguments += piece.text;
          break;
        case PieceKind::kCallBroken:
          calls.pop_back();
          open = false;
          break;
        case PieceKind::kCallEnd:
          open = false;
          break;
      }
    }
    return true;
  }

  /// Whether the pieces say what the answer says. White space at its beginning is only in these.
  [[nodiscard]] bool agrees(const Answer& answer) const {
    if (open || reasoning != answer.reasoning || calls.size() != answer.calls.size()) return false;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].name != answer.calls[i].name) return false;
      if (calls[i].arguments != answer.calls[i].arguments) return false;
    }
    return std::string_view(text).ends_with(answer.text);
  }
};

}  // namespace gen::calls::test

// SPDX-License-Identifier: Apache-2.0
// AnswerOutput: what a parser says of an answer, as pieces and as a whole. White space is held back
// until more text follows it, since none belongs before a mark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/call_parser.h"

namespace gen::calls {

class AnswerOutput {
 public:
  /// Where pieces go from now on.
  void set_pieces(std::vector<Piece>* pieces) noexcept { pieces_ = pieces; }

  /// Text, or reasoning.
  void emit(std::string_view text);
  /// Reasoning follows, or text. `stretch`: it is another one than what came before.
  void turn_to(bool reasoning, bool stretch);
  /// White space that follows a mark is not part of the text, nor is what was held back before it
  /// if `drop`.
  void skip_blanks(bool drop = false) noexcept {
    skips_ = true;
    if (drop) blanks_.clear();
  }

  void begin_call(std::string_view name) { add(PieceKind::kCallName, name); }
  void add_arguments(std::string_view json) {
    if (!json.empty()) add(PieceKind::kArguments, json);
  }
  void end_call(Call call);
  void break_call() { add(PieceKind::kCallBroken, {}); }
  void note(size_t at, const char* fault);

  /// The end. Without calls the text is the answer's as it was, else it has no white space at its
  /// ends.
  void finish();
  /// Forgets what was said, but not where it stands.
  void forget() {
    answer_ = {};
    blanks_.clear();
  }

  [[nodiscard]] const Answer& answer() const noexcept { return answer_; }
  [[nodiscard]] bool reasoning() const noexcept { return reasoning_; }
  /// Whether text other than white space came since the last call of mark_place().
  [[nodiscard]] bool said_more() const noexcept { return said_more_; }
  void mark_place() noexcept { said_more_ = false; }

 private:
  void say(std::string_view text);
  void add(PieceKind kind, std::string_view text);
  [[nodiscard]] std::string& current() noexcept {
    return reasoning_ ? answer_.reasoning : answer_.text;
  }

  std::vector<Piece>* pieces_ = nullptr;
  Answer answer_;
  std::string blanks_;  // held back
  bool reasoning_ = false;
  bool skips_ = false;
  bool stretch_ = false;
  bool said_more_ = false;
};

}  // namespace gen::calls

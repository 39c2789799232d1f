// SPDX-License-Identifier: Apache-2.0
// See answer_output.h.
#include "calls/answer_output.h"

#include <algorithm>
#include <utility>

#include "calls/text.h"

namespace gen::calls {
namespace {

constexpr size_t kMaxFaults = 64;

bool is_running_text(PieceKind kind) { return kind <= PieceKind::kReasoning; }

}  // namespace

void AnswerOutput::add(PieceKind kind, std::string_view text) {
  const size_t call = answer_.calls.size();
  const bool goes_on = is_running_text(kind) || kind == PieceKind::kArguments;
  if (goes_on && !pieces_->empty() && pieces_->back().kind == kind &&
      pieces_->back().call == call) {
    pieces_->back().text += text;
  } else {
    pieces_->push_back({kind, call, std::string(text)});
  }
}

void AnswerOutput::say(std::string_view text) {
  if (text.empty()) return;
  current() += text;
  add(reasoning_ ? PieceKind::kReasoning : PieceKind::kText, text);
}

void AnswerOutput::emit(std::string_view text) {
  if (skips_) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (text.empty()) return;
    skips_ = false;
  }
  size_t end = text.size();
  while (end > 0 && is_blank(text[end - 1])) --end;
  if (end > 0) {
    said_more_ = true;
    say(blanks_);
    blanks_.clear();
    if (stretch_ && !current().empty()) say("\n");
    stretch_ = false;
    say(text.substr(0, end));
  }
  blanks_ += text.substr(end);
}

void AnswerOutput::turn_to(bool reasoning, bool stretch) {
  reasoning_ = reasoning;
  stretch_ |= stretch;
  skip_blanks(true);
}

void AnswerOutput::end_call(Call call) {
  add(PieceKind::kCallEnd, {});
  answer_.calls.push_back(std::move(call));
}

void AnswerOutput::note(size_t at, const char* fault) {
  if (answer_.faults.size() < kMaxFaults) answer_.faults.push_back({at, fault});
}

void AnswerOutput::finish() {
  if (answer_.calls.empty()) {
    say(blanks_);
    blanks_.clear();
    return;
  }
  std::string& text = answer_.text;
  text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

}  // namespace gen::calls

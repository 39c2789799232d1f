// SPDX-License-Identifier: Apache-2.0
// See answer_marks.h.
#include "calls/answer_marks.h"

#include "calls/text.h"

namespace gen::calls {

AnswerMarks::AnswerMarks(const CallFormat& format) {
  const auto add = [&](MarkKind kind, std::string_view text, bool in_reasoning) {
    text = mark_of(text);
    if (text.empty()) return;
    if (kind != MarkKind::kReasoningClose) in_text_.push_back({kind, text});
    if (in_reasoning) in_reasoning_.push_back({kind, text});
  };
  for (const Marks& one : format.reasoning) {
    add(MarkKind::kReasoningOpen, one.open, false);
    add(MarkKind::kReasoningClose, one.close, true);
  }
  for (const Marks& wrapper : format.wrappers) {
    add(MarkKind::kWrapper, wrapper.open, false);
    add(MarkKind::kWrapper, wrapper.close, false);
  }
  if (format.messages) {
    for (const auto& mark : format.messages->starts) add(MarkKind::kHeader, mark, true);
    for (const auto& mark : format.messages->ends) add(MarkKind::kMessageEnd, mark, true);
  }
  if (format.call.empty()) return;  // what stands in sections is text
  add(MarkKind::kSection, format.section.open, true);
  for (const std::string& open : format.openings) add(MarkKind::kSection, open, true);
  if (format.call[0].field == Field::kText) add(MarkKind::kCall, format.call[0].text, true);
}

// Of equal marks the first counts.
AnswerMarks::Found AnswerMarks::at(std::string_view text, bool reasoning) const noexcept {
  Found found;
  for (const Mark& mark : reasoning ? in_reasoning_ : in_text_) {
    if (mark.text[0] != text[0]) continue;
    if (text.starts_with(mark.text)) {
      if (found.mark == nullptr || mark.text.size() > found.mark->text.size()) found.mark = &mark;
    } else if (mark.text.starts_with(text)) {
      found.incomplete = true;
    }
  }
  return found;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// AnswerMarks: the marks of a format that end text or reasoning, and the search for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "calls/call_format.h"

namespace gen::calls {

enum class MarkKind : uint8_t {
  kReasoningOpen,
  kReasoningClose,
  kWrapper,
  kSection,
  kCall,  // the first mark of a call whose section's mark is missing
  kHeader,
  kMessageEnd,
};

struct Mark {
  MarkKind kind = MarkKind::kWrapper;
  std::string_view text;  // of the format
};

class AnswerMarks {
 public:
  /// The format must outlive it.
  explicit AnswerMarks(const CallFormat& format);

  struct Found {
    const Mark* mark = nullptr;  // null: none stands here
    bool incomplete = false;     // more bytes may make one, or a longer one
  };
  /// At the beginning of `text`, the longest.
  [[nodiscard]] Found at(std::string_view text, bool reasoning) const noexcept;

 private:
  std::vector<Mark> in_text_;
  std::vector<Mark> in_reasoning_;
};

}  // namespace gen::calls

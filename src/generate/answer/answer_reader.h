// SPDX-License-Identifier: Apache-2.0
// AnswerReader: the parser of calls (calls/call_parser.h) fed by the events of a generation.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_parser.h"
#include "generate/answer/answer_form.h"
#include "generate/request/result.h"
#include "tokenizer/tokenizer.h"

namespace gen::generate {

/// An answer as the model wrote it, with the texts of control tokens.
struct WrittenAnswer {
  std::string text;
  std::vector<size_t> controls;  // where control tokens begin and end in it, in pairs
};

class AnswerReader {
 public:
  /// `opening` as CallParser; `said` is the answer's beginning, if it goes on. The tokenizer must
  /// outlive it.
  AnswerReader(const AnswerForm& form, const tokenizer::Tokenizer& tokenizer,
               std::string_view opening, const WrittenAnswer& said);

  /// What the event adds; valid until the next call. May throw std::bad_alloc.
  const std::vector<calls::Piece>& take(const Event& event);
  /// The answer ends without a done event.
  void finish();

  [[nodiscard]] const calls::Answer& answer() const noexcept { return parser_.answer(); }
  [[nodiscard]] bool in_reasoning() const noexcept { return parser_.in_reasoning(); }
  /// All that was fed, `said` included.
  [[nodiscard]] const WrittenAnswer& written() const noexcept { return written_; }
  [[nodiscard]] const std::string& opening() const noexcept { return opening_; }

 private:
  void feed(std::string_view text);

  const tokenizer::Tokenizer& tokenizer_;
  std::string opening_;
  calls::CallParser parser_;
  WrittenAnswer written_;
  std::vector<calls::Piece> pieces_;
  bool finished_ = false;
};

}  // namespace gen::generate

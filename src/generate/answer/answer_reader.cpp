// SPDX-License-Identifier: Apache-2.0
// See answer_reader.h.
#include "generate/answer/answer_reader.h"

namespace gen::generate {

AnswerReader::AnswerReader(const AnswerForm& form, const tokenizer::Tokenizer& tokenizer,
                           std::string_view opening, const WrittenAnswer& said)
    : tokenizer_(tokenizer), opening_(opening), parser_(form.format, form.tools, opening) {
  feed(said.text);
  written_.controls = said.controls;
  pieces_.clear();
}

void AnswerReader::feed(std::string_view text) {
  written_.text += text;
  parser_.feed(text, &pieces_);
}

const std::vector<calls::Piece>& AnswerReader::take(const Event& event) {
  pieces_.clear();
  feed(event.text);
  if (event.token >= 0 && tokenizer_.is_control(event.token)) {
    written_.controls.push_back(written_.text.size());
    feed(tokenizer_.spec().tokens[static_cast<size_t>(event.token)]);
    written_.controls.push_back(written_.text.size());
  }
  if (event.done) finish();
  return pieces_;
}

void AnswerReader::finish() {
  if (finished_) return;
  finished_ = true;
  parser_.finish(&pieces_);
}

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// LiteralReader: reads a value as Python and JSON write it, and as some models write it with marks
// around strings and names without quotes. Writes it as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "calls/arguments/text_writer.h"

namespace gen::calls {

class LiteralReader {
 public:
  enum class State : uint8_t {
    kMore,
    kDone,    // the value ended with this byte
    kBefore,  // it ended before this byte, which is not part of it
    kBad,
  };
  /// `mark` is around strings, beside the quotes of Python; may be empty.
  explicit LiteralReader(std::string_view mark = {}) : mark_(mark) {}
  State take(char byte, std::string* json);
  [[nodiscard]] const char* fault() const noexcept { return fault_; }

 private:
  enum class Mode : uint8_t {
    kValue,
    kKey,
    kBareKey,
    kColon,
    kAfter,
    kWord,
    kQuotes,   // behind the first quotes, which may be three
    kString,   // between quotes
    kBehind,   // behind quotes that may end it
    kEscape,   // behind a backslash
    kHex,      // digits of an escape
    kOctal,    // the same
    kOpening,  // in the mark before a string
    kMarked,   // between marks
  };
  struct Frame {
    char close;
    bool first = true;
    std::unordered_set<std::string> names = {};
  };

  State bad(const char* fault) {
    fault_ = fault;
    return State::kBad;
  }
  // kMore: the byte is taken, or mode_ changed and it is to be taken again (again_).
  State step(char c, std::string* json);
  State value(char c, std::string* json);
  State key(char c, std::string* json);
  State colon(char c, std::string* json);
  State after(char c, std::string* json);
  State word(char c, std::string* json);
  State quotes(char c, std::string* json);
  State in_string(char c, std::string* json);
  State behind(char c, std::string* json);
  State escape(char c, std::string* json);
  State digit(char c, std::string* json);
  State marked(char c, std::string* json);
  State open(char close, std::string* json);
  State close(std::string* json);
  State character(uint32_t code, std::string* json);
  State text(std::string_view bytes, std::string* json);
  State text(char c, std::string* json) { return text(std::string_view(&c, 1), json); }
  State end_string(std::string* json);
  void begin_string(bool is_key, Mode mode);
  State repeat(Mode mode) {
    mode_ = mode;
    again_ = true;
    return State::kMore;
  }

  std::string mark_;
  Mode mode_ = Mode::kValue;
  bool again_ = false;
  bool may_close_ = false;  // of kValue
  bool is_key_ = false;
  char quote_ = 0;
  int run_ = 0;  // quotes in a row
  bool triple_ = false;
  int digits_ = 0;  // of an escape that are still to come
  uint32_t code_ = 0;
  uint32_t high_ = 0;   // half a surrogate pair that waits for the other
  std::string behind_;  // white space there
  std::string held_;    // a word, or what may be the mark behind a string
  std::string name_;    // a key as JSON, without its quotes
  TextWriter writer_;
  std::vector<Frame> frames_;
  const char* fault_ = "";
};

}  // namespace gen::calls

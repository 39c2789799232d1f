// SPDX-License-Identifier: Apache-2.0
// FoundCalls: calls that are JSON objects without marks, in a text byte by byte. A call is an
// object with a text "name" and an object "arguments" (or the format's keys), or "tool" and
// "parameters". Wrappers are calls, too: an array of calls, {"tool_calls": [...]}, and {"function":
// {…}} as in OpenAI's API. Other objects are text, with all that is in them. Of an object that does
// not end, or is no JSON, the complete calls in it count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calls/arguments/json_scanner.h"
#include "calls/call_format.h"
#include "calls/call_parser.h"

namespace gen::calls {

class FoundCalls {
 public:
  /// A stretch of the text that is replaced by calls.
  struct Region {
    size_t begin = 0;
    size_t end = 0;
    std::vector<Call> calls;
  };

  explicit FoundCalls(const Keys& keys) : keys_(keys) {}

  /// The next byte, of which the first is a bracket; `text` is all of them, this one included.
  /// kDone: the bracket is closed. kBad: the byte does not fit, and belongs to what follows.
  JsonScanner::State take(char byte, const std::string& text);
  /// What was found by now.
  [[nodiscard]] const std::vector<Region>& regions() const noexcept { return regions_; }
  /// Whether the outermost object has only members so far that a call or a wrapper has.
  [[nodiscard]] bool may_be_call() const noexcept { return may_be_call_; }

 private:
  struct Range {
    size_t begin = 0;
    size_t end = 0;
    bool operator==(const Range&) const = default;
  };
  struct Frame {
    size_t begin = 0;
    size_t first = 0;  // of the regions inside
    bool object = false;
    bool all_calls = true;  // of an array
    size_t values = 0;
    std::string key;  // of the member that is being read
    std::string name, tool, id;
    Range arguments, parameters;  // of objects; or of texts that hold one
    bool arguments_are_text = false;
    bool wraps_list = false;      // "tool_calls" with calls
    bool wraps_function = false;  // "function" with a call
  };
  /// What kind of value ended.
  enum class Ended : uint8_t { kScalar, kText, kObject, kArray, kCalls, kFunction };

  void end_value(Ended kind, Range range, const std::string& text);
  Ended end_frame(const Frame& frame, size_t end, const std::string& text);

  const Keys& keys_;
  JsonScanner scanner_;
  std::vector<Frame> frames_;
  size_t scalar_ = 0;  // where the scalar begins
  bool in_scalar_ = false;
  bool may_be_call_ = true;
  std::vector<Region> regions_;
};

}  // namespace gen::calls

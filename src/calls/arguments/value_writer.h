// SPDX-License-Identifier: Apache-2.0
// ValueWriter: the JSON of a value that is written without quotes.
#pragma once

#include <string>

#include "calls/arguments/text_writer.h"
#include "calls/tool.h"

namespace gen::calls {

/// kText is a string. kOther is JSON, or Python's way of it, or else a string. kUnknown is the JSON
/// that it is, unless that is a string or none at all: then it is a string as it stands. What can
/// only be a string is written as it comes.
class ValueWriter {
 public:
  void begin(ValueKind kind);
  /// False for a byte that is not UTF-8 at its place; also at the end.
  bool put(char byte, std::string* json);
  bool end(std::string* json);
  /// Nothing but white space so far.
  [[nodiscard]] bool blank() const noexcept { return blank_; }

 private:
  ValueKind kind_ = ValueKind::kUnknown;
  bool quoted_ = false;
  bool blank_ = true;
  std::string raw_;  // what waits for the end
  TextWriter writer_;
};

}  // namespace gen::calls

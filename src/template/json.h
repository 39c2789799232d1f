// SPDX-License-Identifier: Apache-2.0
// JSON to values and back, as Python's json module reads and writes it.
#pragma once

#include <string_view>

#include "template/evaluator.h"
#include "template/value.h"

namespace gen::templates {

/// The value of a JSON text, in `heap`; its texts and numbers are of `writer`. Of a key that comes
/// twice the last value counts. kInvalidArgument, naming the byte, for what is no JSON (RFC 8259,
/// or NaN and Infinity as Python has them) or nested deeper than 100.
Result<Value> read_json(std::string_view text, Heap* heap, Writer writer);

struct JsonForm {
  bool ascii = false;
  bool sorted = false;
  bool indented = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// json.dumps. What was a text stays its writer's; brackets, quotes and escapes are the user's.
/// kInvalidArgument for what JSON does not have.
Status write_json(Evaluator& evaluator, const Value& value, const JsonForm& form, Text* out,
                  int depth = 0);

}  // namespace gen::templates

// SPDX-License-Identifier: Apache-2.0
// Conversion between JSON and values, with the rules of Python's json module.
#pragma once

#include <string_view>

#include "template/evaluator.h"
#include "template/value.h"

namespace gen::templates {

/// The value of a JSON text, in `heap`; its texts and numbers belong to `writer`. If a key comes
/// twice, the last value counts. kInvalidArgument, naming the byte, for invalid JSON (RFC 8259, and
/// NaN and Infinity as in Python) or nesting deeper than 100.
Result<Value> read_json(std::string_view text, Heap* heap, Writer writer);

struct JsonForm {
  bool ascii = false;
  bool sorted = false;
  bool indented = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// json.dumps. Texts keep their writer; brackets, quotes and escapes are the user's.
/// kInvalidArgument for values that JSON does not have.
Status write_json(Evaluator& evaluator, const Value& value, const JsonForm& form, Text* out,
                  int depth = 0);

}  // namespace gen::templates

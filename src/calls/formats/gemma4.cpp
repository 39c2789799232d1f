// SPDX-License-Identifier: Apache-2.0
// Gemma 4: dictionaries with strings between marks.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat gemma4_format() {
  CallFormat format;
  format.name = "gemma4";
  format.signs = {"<|tool_call>", "<|\"|>"};
  format.reasoning = {{"<|channel>thought\n", "\n<channel|>"}};
  // The model asks for the result with a mark of its own.
  format.wrappers = {{"<|tool_response>", ""}};
  format.call = {{Field::kText, "<|tool_call>call:"},
                 {Field::kName},
                 {Field::kArguments},
                 {Field::kText, "<tool_call|>"}};
  format.syntax = Syntax::kDict;
  format.marks.quote = "<|\"|>";
  return format;
}

}  // namespace gen::calls

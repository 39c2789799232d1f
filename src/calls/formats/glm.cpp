// SPDX-License-Identifier: Apache-2.0
// GLM 4.5 to 5.2, Laguna: keys and values in tags of their own.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat glm_format() {
  CallFormat format;
  format.name = "glm";
  format.signs = {"<tool_call>", "<arg_key>"};
  format.reasoning = {{"<think>", "</think>\n"}};
  // Without reasoning the template writes its end alone.
  format.wrappers = {{"", "</think>"}};
  format.after = "\n";
  format.call = {{Field::kText, "<tool_call>"},
                 {Field::kName},
                 {Field::kText, "\n"},
                 {Field::kArguments},
                 {Field::kText, "</tool_call>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = "<arg_key>";
  format.marks.middle = "</arg_key>\n<arg_value>";
  format.marks.close = "</arg_value>\n";
  return format;
}

}  // namespace gen::calls

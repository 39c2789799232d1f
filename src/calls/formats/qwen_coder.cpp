// SPDX-License-Identifier: Apache-2.0
// Qwen3-Coder and Qwen 3.5 on, Nemotron 3, Step 3.5.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat qwen_coder_format() {
  CallFormat format;
  format.name = "qwen3-coder";
  format.signs = {"<tool_call>", "<function=", "<parameter="};
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.section = {"<tool_call>\n", "\n</tool_call>"};
  format.after = "\n";
  format.call = {{Field::kText, "<function="},
                 {Field::kName},
                 {Field::kText, ">\n"},
                 {Field::kArguments},
                 {Field::kText, "</function>"}};
  format.syntax = Syntax::kTagged;
  format.marks = {.open = "<parameter=", .middle = ">\n", .close = "\n</parameter>\n"};
  return format;
}

}  // namespace gen::calls

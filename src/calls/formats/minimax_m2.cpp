// SPDX-License-Identifier: Apache-2.0
// MiniMax M2.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat minimax_m2_format() {
  CallFormat format;
  format.name = "minimax-m2";
  format.signs = {"<minimax:tool_call>"};
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.section = {"<minimax:tool_call>\n", "\n</minimax:tool_call>"};
  format.between = "\n";
  format.call = {{Field::kText, "<invoke name=\""},
                 {Field::kName},
                 {Field::kText, "\">\n"},
                 {Field::kArguments},
                 {Field::kText, "</invoke>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = "<parameter name=\"";
  format.marks.middle = "\">";
  format.marks.close = "</parameter>\n";
  return format;
}

}  // namespace gen::calls

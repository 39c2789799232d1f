// SPDX-License-Identifier: Apache-2.0
// MiniMax M3: each tag behind a token, arguments as nested tags.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat minimax_m3_format() {
  CallFormat format;
  format.name = "minimax-m3";
  format.signs = {"]<]minimax[>["};
  format.reasoning = {{"<mm:think>", "</mm:think>"}};
  format.section = {"]<]minimax[>[<tool_call>\n", "]<]minimax[>[</tool_call>"};
  format.several = true;
  format.call = {{Field::kText, "]<]minimax[>[<invoke name=\""},
                 {Field::kName},
                 {Field::kText, "\">\n"},
                 {Field::kArguments},
                 {Field::kText, "]<]minimax[>[</invoke>\n"}};
  format.syntax = Syntax::kNested;
  format.marks.lead = "]<]minimax[>[";
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// DeepSeek V4: as V3.2 with another name of the section.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat deepseek_v4_format() {
  CallFormat format;
  format.name = "deepseek-v4";
  format.signs = {"｜DSML｜", "tool_calls>"};
  format.reasoning = {{"<think>", "</think>"}};
  // Without reasoning the template writes its end alone.
  format.wrappers = {{"", "</think>"}};
  format.section = {"\n\n<｜DSML｜tool_calls>\n", "\n</｜DSML｜tool_calls>"};
  format.between = "\n";
  format.call = {{Field::kText, "<｜DSML｜invoke name=\""},
                 {Field::kName},
                 {Field::kText, "\">\n"},
                 {Field::kArguments},
                 {Field::kText, "</｜DSML｜invoke>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = "<｜DSML｜parameter name=\"";
  format.marks.middle = "\" string=\"false\">";
  format.marks.text_middle = "\" string=\"true\">";
  format.marks.close = "</｜DSML｜parameter>\n";
  return format;
}

}  // namespace gen::calls

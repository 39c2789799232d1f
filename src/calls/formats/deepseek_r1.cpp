// SPDX-License-Identifier: Apache-2.0
// DeepSeek R1 and V3, Cogito: arguments in a code fence.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat deepseek_r1_format() {
  CallFormat format;
  format.name = "deepseek-r1";
  format.signs = {"<｜tool▁calls▁begin｜>", "```json"};
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.section = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"};
  format.between = "\n";
  format.call = {{Field::kText, "<｜tool▁call▁begin｜>function<｜tool▁sep｜>"},
                 {Field::kName},
                 {Field::kText, "\n```json\n"},
                 {Field::kArguments},
                 {Field::kText, "\n```<｜tool▁call▁end｜>"}};
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// Seed-OSS: as Qwen3-Coder with other marks, and values on the line of their mark.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat seed_oss_format() {
  CallFormat format = qwen_coder_format();
  format.name = "seed-oss";
  format.signs = {"<seed:tool_call>"};
  format.reasoning = {{"<seed:think>", "</seed:think>"}};
  format.section = {"<seed:tool_call>\n", "\n</seed:tool_call>"};
  format.marks = {.open = "<parameter=", .middle = ">", .close = "</parameter>\n"};
  return format;
}

}  // namespace gen::calls

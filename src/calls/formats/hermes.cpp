// SPDX-License-Identifier: Apache-2.0
// Hermes, Qwen 2.5 and 3, and the many models trained in their form.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat hermes_format() {
  CallFormat format;
  format.name = "hermes";
  format.signs = {"<tool_call>", "\"arguments\": "};
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.section = {"<tool_call>\n", "\n</tool_call>"};
  format.after = "\n";
  format.call = {{Field::kObject}};
  return format;
}

}  // namespace gen::calls

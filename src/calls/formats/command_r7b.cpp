// SPDX-License-Identifier: Apache-2.0
// Command R7B, A and North: text, thinking and actions between tokens.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat command_r7b_format() {
  CallFormat format;
  format.name = "command-r7b";
  format.signs = {"<|START_ACTION|>"};
  format.reasoning = {{"<|START_THINKING|>", "<|END_THINKING|>"}};
  format.wrappers = {{"<|START_TEXT|>", "<|END_TEXT|>"},
                     {"<|START_RESPONSE|>", "<|END_RESPONSE|>"}};
  format.section = {"<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"};
  format.openings = {"<|START_ACTION|>["};
  format.between = ",\n    ";
  format.call = {{Field::kObject}};
  format.keys = {.name = "tool_name", .arguments = "parameters", .id = "tool_call_id"};
  format.ids = IdForm::kNumber;
  return format;
}

}  // namespace gen::calls

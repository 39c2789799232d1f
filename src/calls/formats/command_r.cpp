// SPDX-License-Identifier: Apache-2.0
// Command R and R+: a list in a code fence.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat command_r_format() {
  CallFormat format;
  format.name = "command-r";
  format.signs = {"Action:\\n```json", "\"tool_name\": "};
  format.section = {"Action:\n```json\n[\n", "\n]```"};
  format.openings = {"Action: ```json\n["};
  format.between = ",\n";
  format.call = {{Field::kObject}};
  format.keys = {.name = "tool_name", .arguments = "parameters"};
  return format;
}

}  // namespace gen::calls

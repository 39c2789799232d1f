// SPDX-License-Identifier: Apache-2.0
// Apriel 1.5 and 1.6, Jamba: a list between tags.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat apriel_format() {
  CallFormat format;
  format.name = "apriel";
  format.signs = {"<tool_calls>["};
  format.reasoning = {{"Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"}};
  format.wrappers = {{"[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"}};
  format.section = {"\n<tool_calls>[", "]</tool_calls>"};
  format.between = ", ";
  format.call = {{Field::kObject}};
  format.keys.id = "id";
  return format;
}

}  // namespace gen::calls

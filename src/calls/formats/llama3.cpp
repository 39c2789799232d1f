// SPDX-License-Identifier: Apache-2.0
// Llama 3: one bare object; the built-in tools' mark may stand before it.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat llama3_format() {
  CallFormat format;
  format.name = "llama3";
  format.signs = {"<|start_header_id|>", "\"parameters\": "};
  format.wrappers = {{"<|python_tag|>", ""}};
  format.call = {{Field::kObject}};
  format.keys.arguments = "parameters";
  format.parallel = false;
  return format;
}

}  // namespace gen::calls

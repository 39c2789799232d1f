// SPDX-License-Identifier: Apache-2.0
// Apertus: objects whose key is the name.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat apertus_format() {
  CallFormat format;
  format.name = "apertus";
  format.signs = {"<|tools_prefix|>"};
  format.reasoning = {{"<|inner_prefix|>", "<|inner_suffix|>"}};
  format.section = {"<|tools_prefix|>[", "]<|tools_suffix|>"};
  format.between = ", ";
  format.call = {{Field::kObject}};
  format.keys.name = "";
  return format;
}

}  // namespace gen::calls

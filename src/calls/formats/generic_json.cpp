// SPDX-License-Identifier: Apache-2.0
// JSON objects in the text, for models that no other format is known of.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat generic_json_format() {
  CallFormat format;
  format.name = "json";
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.call = {{Field::kObject}};
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// Functionary 3.1: an object in a tag with the name.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat functionary_31_format() {
  CallFormat format;
  format.name = "functionary-3.1";
  format.signs = {"<function=", "<|start_header_id|>"};
  format.call = {{Field::kText, "<function="},
                 {Field::kName},
                 {Field::kText, ">"},
                 {Field::kArguments},
                 {Field::kText, "</function>"}};
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// Mistral up to Nemo: a list of objects with ids of nine characters.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat mistral_list_format() {
  CallFormat format;
  format.name = "mistral-list";
  format.signs = {"[TOOL_CALLS]"};
  format.section = {"[TOOL_CALLS][", "]"};
  format.openings = {"[TOOL_CALLS] ["};
  format.between = ", ";
  format.call = {{Field::kObject}};
  format.keys.id = "id";
  format.ids = IdForm::kNine;
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// Ministral 3, Devstral 2, Mistral Large 3 and Medium 3.5: name and arguments between tokens.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat mistral_format() {
  CallFormat format;
  format.name = "mistral";
  format.signs = {"[TOOL_CALLS]", "[ARGS]"};
  format.reasoning = {{"[THINK]", "[/THINK]"}};
  format.call = {{Field::kText, "[TOOL_CALLS]"},
                 {Field::kName},
                 {Field::kText, "[ARGS]"},
                 {Field::kArguments}};
  format.ids = IdForm::kNine;
  return format;
}

}  // namespace gen::calls

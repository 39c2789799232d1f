// SPDX-License-Identifier: Apache-2.0
// Mistral Small 3.2: name, id and arguments between tokens.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat mistral_id_format() {
  CallFormat format;
  format.name = "mistral-id";
  format.signs = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"};
  format.reasoning = {{"[THINK]", "[/THINK]"}};
  format.call = {{Field::kText, "[TOOL_CALLS]"}, {Field::kName},
                 {Field::kText, "[CALL_ID]"},    {Field::kId},
                 {Field::kText, "[ARGS]"},       {Field::kArguments}};
  format.ids = IdForm::kNine;
  return format;
}

}  // namespace gen::calls

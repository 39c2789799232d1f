// SPDX-License-Identifier: Apache-2.0
// FunctionGemma: as Gemma 4 with other marks.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat function_gemma_format() {
  CallFormat format;
  format.name = "functiongemma";
  format.signs = {"<start_function_call>"};
  format.wrappers = {{"<start_function_response>", ""}};
  format.call = {{Field::kText, "<start_function_call>call:"},
                 {Field::kName},
                 {Field::kArguments},
                 {Field::kText, "<end_function_call>"}};
  format.syntax = Syntax::kDict;
  format.marks.quote = "<escape>";
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// OLMo 3: lines with calls in Python.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat olmo3_format() {
  CallFormat format;
  format.name = "olmo3";
  format.signs = {"<function_calls>"};
  format.reasoning = {{"<think>", "</think>"}};
  format.section = {"<function_calls>", "</function_calls>"};
  format.between = "\n";
  format.call = {{Field::kName}, {Field::kText, "("}, {Field::kArguments}, {Field::kText, ")"}};
  format.syntax = Syntax::kPython;
  return format;
}

}  // namespace gen::calls

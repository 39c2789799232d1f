// SPDX-License-Identifier: Apache-2.0
// LFM2 and LFM2.5: a list of calls in Python.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat lfm2_format() {
  CallFormat format;
  format.name = "lfm2";
  format.signs = {"<|tool_list_start|>"};
  format.other_signs = {"<|tool_call_start|>"};
  format.reasoning = {{"<think>", "</think>"}};
  format.section = {"<|tool_call_start|>[", "]<|tool_call_end|>"};
  format.between = ", ";
  format.call = {{Field::kName}, {Field::kText, "("}, {Field::kArguments}, {Field::kText, ")"}};
  format.syntax = Syntax::kPython;
  return format;
}

}  // namespace gen::calls

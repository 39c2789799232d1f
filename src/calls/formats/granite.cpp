// SPDX-License-Identifier: Apache-2.0
// Granite 3: a list behind a mark.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat granite_format() {
  CallFormat format;
  format.name = "granite3";
  format.signs = {"<|start_of_role|>", "<|tool_call|>"};
  format.reasoning = {{"<think>", "</think>"}};
  format.wrappers = {{"<response>", "</response>"}};
  format.section = {"<|tool_call|>[", "]"};
  format.openings = {"<tool_call>["};
  format.between = ", ";
  format.call = {{Field::kObject}};
  return format;
}

}  // namespace gen::calls

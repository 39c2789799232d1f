// SPDX-License-Identifier: Apache-2.0
// Phi-4-mini.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat phi4_format() {
  CallFormat format;
  format.name = "phi4";
  format.signs = {"<|/tool|>"};
  format.reasoning = {{"<think>", "</think>"}};
  format.section = {"<|tool_call|>[", "]<|/tool_call|>"};
  // Some write each call for itself.
  format.openings = {"<|tool_call|>"};
  format.wrappers = {{"", "<|/tool_call|>"}};
  format.between = ", ";
  format.call = {{Field::kObject}};
  return format;
}

}  // namespace gen::calls

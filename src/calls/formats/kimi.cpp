// SPDX-License-Identifier: Apache-2.0
// Kimi K2: names with a number over the whole conversation.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat kimi_format() {
  CallFormat format;
  format.name = "kimi-k2";
  format.signs = {"<|tool_calls_section_begin|>"};
  format.reasoning = {{"<think>", "</think>"}};
  format.section = {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"};
  format.several = true;
  format.call = {{Field::kText, "<|tool_call_begin|>"},
                 {Field::kIndexedName},
                 {Field::kText, "<|tool_call_argument_begin|>"},
                 {Field::kArguments},
                 {Field::kText, "<|tool_call_end|>"}};
  format.ids = IdForm::kIndexed;
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// Muse Glimmer: messages with recipients, whose bodies hold tags.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat muse_format() {
  CallFormat format;
  format.name = "muse";
  format.signs = {"<atem:function_calls>"};
  Messages messages;
  messages.starts = {"<|start|>"};
  messages.header_end = "<|message|>";
  messages.ends = {"<|eom|>", "<|eot|>"};
  messages.recipient = "to=";
  messages.name_lead = "functions.";
  messages.no_names = {"user", "assistant", "self"};
  messages.reasoning = {"to=self"};
  messages.body_is_arguments = false;
  messages.call_header = " to=NAME<|message|>";
  messages.call_end = "<|eom|>";
  messages.text_header = " to=user<|message|>";
  messages.reasoning_header = " to=self<|message|>";
  format.messages = messages;
  format.section = {"<atem:function_calls>\n", "\n</atem:function_calls>"};
  format.between = "\n";
  format.call = {{Field::kText, "<atem:invoke name=\""},
                 {Field::kName},
                 {Field::kText, "\">\n"},
                 {Field::kArguments},
                 {Field::kText, "</atem:invoke>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = "<atem:parameter name=\"";
  format.marks.middle = "\">";
  format.marks.close = "</atem:parameter>\n";
  return format;
}

}  // namespace gen::calls

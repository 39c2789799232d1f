// SPDX-License-Identifier: Apache-2.0
// gpt-oss: messages on channels; a call is a message to a function.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat harmony_format() {
  CallFormat format;
  format.name = "harmony";
  format.signs = {"<|channel|>", "<|message|>", "to="};
  Messages messages;
  messages.starts = {"<|start|>", "<|channel|>"};
  messages.header_end = "<|message|>";
  messages.ends = {"<|end|>", "<|call|>", "<|return|>"};
  messages.recipient = "to=";
  messages.name_lead = "functions.";
  messages.no_names = {"assistant", "user", "all"};
  messages.reasoning = {"analysis"};
  messages.call_header = "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>";
  messages.call_end = "<|call|>";
  messages.text_header = "<|channel|>final<|message|>";
  messages.reasoning_header = "<|channel|>analysis<|message|>";
  format.messages = messages;
  format.parallel = false;
  return format;
}

}  // namespace gen::calls

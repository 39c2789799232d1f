// SPDX-License-Identifier: Apache-2.0
// Functionary 3.2: messages to a function or to all.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat functionary_32_format() {
  CallFormat format;
  format.name = "functionary-3.2";
  format.signs = {">>>all"};
  Messages messages;
  messages.starts = {">>>"};
  messages.header_end = "\n";
  messages.no_names = {"all"};
  messages.call_header = ">>>NAME\n";
  messages.text_header = ">>>all\n";
  format.messages = messages;
  return format;
}

}  // namespace gen::calls

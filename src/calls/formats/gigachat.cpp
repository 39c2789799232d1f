// SPDX-License-Identifier: Apache-2.0
// GigaChat 3: the call is a turn of its own.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat gigachat_format() {
  CallFormat format;
  format.name = "gigachat3";
  format.signs = {"<|role_sep|>", "function call"};
  format.wrappers = {{"<|message_sep|>", ""}};
  format.section = {"<|message_sep|>\n\nfunction call<|role_sep|>\n", ""};
  format.openings = {"function call<|role_sep|>"};
  format.call = {{Field::kObject}};
  format.parallel = false;
  return format;
}

}  // namespace gen::calls

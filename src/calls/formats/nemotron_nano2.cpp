// SPDX-License-Identifier: Apache-2.0
// Nemotron Nano 2: a list between marks.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat nemotron_nano2_format() {
  CallFormat format;
  format.name = "nemotron-nano2";
  format.signs = {"<TOOLCALL>"};
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.section = {"<TOOLCALL>[", "]</TOOLCALL>"};
  format.between = ", ";
  format.call = {{Field::kObject}};
  return format;
}

}  // namespace gen::calls

// SPDX-License-Identifier: Apache-2.0
// MiniCPM 5.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat minicpm5_format() {
  CallFormat format;
  format.name = "minicpm5";
  format.signs = {"<function name=\"", "<param name=\""};
  format.reasoning = {{"<think>\n", "\n</think>\n\n"}};
  format.after = "\n";
  format.call = {{Field::kText, "<function name=\""},
                 {Field::kName},
                 {Field::kText, "\">"},
                 {Field::kArguments},
                 {Field::kText, "</function>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = "<param name=\"";
  format.marks.middle = "\">";
  format.marks.close = "</param>";
  format.marks.cdata = true;
  return format;
}

}  // namespace gen::calls

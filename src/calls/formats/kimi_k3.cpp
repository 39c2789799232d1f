// SPDX-License-Identifier: Apache-2.0
// Kimi K3: tags of tokens, with the type of each value.
#include "calls/formats/formats.h"

namespace gen::calls {

CallFormat kimi_k3_format() {
  CallFormat format;
  format.name = "kimi-k3";
  format.signs = {"<|open|>", "<|sep|>", "'argument'"};
  format.reasoning = {{"<|open|>think<|sep|>", "<|close|>think<|sep|>"}};
  format.wrappers = {{"<|open|>response<|sep|>", "<|close|>response<|sep|>"},
                     {"", "<|close|>message<|sep|>"}};
  format.section = {"<|open|>tools<|sep|>", "<|close|>tools<|sep|>"};
  format.several = true;
  format.call = {{Field::kText, "<|open|>call tool=\""},
                 {Field::kName},
                 {Field::kText, "\" index=\""},
                 {Field::kId},
                 {Field::kText, "\"<|sep|>"},
                 {Field::kArguments},
                 {Field::kText, "<|close|>call<|sep|>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = "<|open|>argument key=\"";
  format.marks.text_middle = "\" type=\"string\"<|sep|>";
  format.marks.middle = "\" type=\"number\"<|sep|>";
  for (const char* const type : {"boolean", "null", "object", "array"}) {
    format.marks.other_middles.push_back("\" type=\"" + std::string(type) + "\"<|sep|>");
  }
  format.marks.close = "<|close|>argument<|sep|>";
  return format;
}

}  // namespace gen::calls

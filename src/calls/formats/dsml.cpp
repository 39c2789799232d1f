// SPDX-License-Identifier: Apache-2.0
// DeepSeek V3.2 and V4, GigaChat 3.5: tags with a word of the family in each, which say whether a
// value is a string.
#include "calls/formats/formats.h"

namespace gen::calls {
namespace {

CallFormat of_family(const char* name, const std::string& word, const std::string& section) {
  const std::string open = "<｜" + word + "｜";
  const std::string close = "</｜" + word + "｜";
  CallFormat format;
  format.name = name;
  format.signs = {"｜" + word + "｜", section + ">"};
  format.reasoning = {{"<think>", "</think>"}};
  // Without reasoning a template may write its end alone.
  format.wrappers = {{"", "</think>"}};
  format.section = {"\n\n" + open + section + ">\n", "\n" + close + section + ">"};
  format.between = "\n";
  format.call = {{Field::kText, open + "invoke name=\""},
                 {Field::kName},
                 {Field::kText, "\">\n"},
                 {Field::kArguments},
                 {Field::kText, close + "invoke>"}};
  format.syntax = Syntax::kTagged;
  format.marks.open = open + "parameter name=\"";
  format.marks.middle = "\" string=\"false\">";
  format.marks.text_middle = "\" string=\"true\">";
  format.marks.close = close + "parameter>\n";
  return format;
}

}  // namespace

CallFormat deepseek_v32_format() { return of_family("deepseek-v3.2", "DSML", "function_calls"); }
CallFormat deepseek_v4_format() { return of_family("deepseek-v4", "DSML", "tool_calls"); }
CallFormat gigachat35_format() {
  CallFormat format = of_family("gigachat3.5", "GCML", "tool_calls");
  format.wrappers.push_back({"<|message_sep|>", ""});
  return format;
}

}  // namespace gen::calls

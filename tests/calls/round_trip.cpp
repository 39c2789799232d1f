// SPDX-License-Identifier: Apache-2.0
// round_trip TEMPLATE…: which format each template has, and whether the parser reads the calls that
// the template writes. Not a test: published templates are not in the repository.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "calls/derive.h"
#include "calls/format_table.h"
#include "calls/template_answers.h"

namespace gen::calls::test {
namespace {

// "ok", or why not.
std::string trip(const TemplateAnswers& answers, const std::shared_ptr<const CallFormat>& format,
                 size_t calls, const std::string& content, const std::string& reasoning,
                 bool show) {
  chat::ChatMessage message{"assistant", content, reasoning};
  message.tool_calls = some_calls(calls);
  auto turn = answers.turn(message);
  if (!turn.ok()) return std::string("refused: ") + turn.status().message();
  if (show)
    std::printf("--- opening [%s]\n--- text [%s]\n", turn->opening.c_str(), turn->text.c_str());
  const Answer read = read_answer(format, answers.tools(), turn->text, 1, turn->opening);
  std::string wrong = difference(read, message.tool_calls);
  // Templates may drop texts beside calls, and reasoning always.
  if (wrong.empty() && read.text != content && !read.text.empty())
    wrong = "text [" + read.text + "]";
  if (wrong.empty() && read.reasoning != reasoning && !read.reasoning.empty()) {
    wrong = "reasoning [" + read.reasoning + "]";
  }
  if (!wrong.empty()) return wrong;
  return "ok" + std::string(read.text == content ? "" : " -text") +
         (read.reasoning == reasoning ? "" : " -reasoning");
}

int run(int count, char** files) {
  bool show = false;
  bool derive = false;  // formats are derived, not looked up
  for (int i = 1; i < count; ++i) {
    if (std::string_view(files[i]) == "-v") {
      show = true;
      continue;
    }
    if (std::string_view(files[i]) == "-d") {
      derive = true;
      continue;
    }
    std::ifstream in(files[i], std::ios::binary);
    const std::string source((std::istreambuf_iterator<char>(in)),
                             std::istreambuf_iterator<char>());
    const TemplateAnswers answers(source);
    auto format = derive ? derive_format(answers.render()) : format_of_source(source);
    const std::string_view path = files[i];
    std::printf("%-55s %-16s", std::string(path.substr(path.rfind('/') + 1)).c_str(),
                format == nullptr ? "-" : format->name.c_str());
    if (format == nullptr) format = generic_format();
    std::printf(" text: %s", trip(answers, format, 0, "Good day.", "", show).c_str());
    std::printf(" | one: %s", trip(answers, format, 1, "", "", show).c_str());
    std::printf(" | text, two: %s",
                trip(answers, format, format->parallel ? 2 : 1, "Let me look.", "", show).c_str());
    std::printf(" | reasoning, one: %s\n", trip(answers, format, 1, "", "I think.", show).c_str());
  }
  return 0;
}

}  // namespace
}  // namespace gen::calls::test

int main(int count, char** files) { return gen::calls::test::run(count, files); }

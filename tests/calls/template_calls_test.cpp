// SPDX-License-Identifier: Apache-2.0
// What templates of every family write is read as what they were given, with the format that their
// signs name and with the one that is derived from them.
#include <gtest/gtest.h>

#include "calls/family_templates.h"
#include "calls/format_table.h"
#include "calls/template_answers.h"

namespace gen::calls {
namespace {

using test::FamilyTemplate;
using test::TemplateAnswers;

void expect_round_trip(const TemplateAnswers& answers,
                       const std::shared_ptr<const CallFormat>& format, size_t calls,
                       const std::string& text, const std::string& reasoning) {
  chat::ChatMessage message{"assistant", text, reasoning};
  message.tool_calls = test::some_calls(calls);
  auto turn = answers.turn(message);
  ASSERT_TRUE(turn.ok()) << turn.status().message();
  for (const size_t cut : {size_t{1}, SIZE_MAX}) {
    const Answer read = test::read_answer(format, answers.tools(), turn->text, cut, turn->opening);
    EXPECT_EQ(test::difference(read, message.tool_calls), "") << turn->text;
    EXPECT_EQ(read.text, text) << turn->text;
    if (turn->text.find(reasoning) != std::string::npos) {
      EXPECT_EQ(read.reasoning, reasoning) << turn->text;
    }
  }
}

void expect_round_trips(const FamilyTemplate& family,
                        const std::shared_ptr<const CallFormat>& format) {
  const TemplateAnswers answers(family.source);
  expect_round_trip(answers, format, 0, "Good day.", "");
  expect_round_trip(answers, format, 1, "", "");
  expect_round_trip(answers, format, 1, "Let me look.", "I think.");
  if (family.parallel) expect_round_trip(answers, format, 2, "Let me look.", "");
}

TEST(TemplateCalls, FormatsBySigns) {
  for (const FamilyTemplate& family : test::family_templates()) {
    SCOPED_TRACE(family.format);
    const auto format = format_of_source(family.source);
    ASSERT_NE(format, nullptr);
    ASSERT_EQ(format->name, family.format);
    EXPECT_EQ(format->parallel, family.parallel);
    expect_round_trips(family, format);
  }
}

TEST(TemplateCalls, DerivedFormats) {
  for (const FamilyTemplate& family : test::family_templates()) {
    SCOPED_TRACE(family.format);
    const auto format = derive_format(TemplateAnswers(family.source).render());
    EXPECT_EQ(format != nullptr, family.derivable);
    if (format != nullptr) expect_round_trips(family, format);
  }
}

TEST(TemplateCalls, NothingToDerive) {
  const auto derived = [](const char* source) {
    return derive_format(TemplateAnswers(source).render());
  };
  // No calls, calls that are words, arguments that are lost.
  EXPECT_EQ(derived("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"), nullptr);
  EXPECT_EQ(
      derived("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or "
              "[] %}call {{ c.function.name }} with {{ c.function.arguments }}{% endfor %}{% "
              "endfor %}"),
      nullptr);
  EXPECT_EQ(
      derived("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or "
              "[] %}<call>{\"name\": \"{{ c.function.name }}\"}</call>{% endfor %}{% endfor %}"),
      nullptr);
  EXPECT_EQ(derived("{{ raise_exception('no') }}"), nullptr);
}

}  // namespace
}  // namespace gen::calls

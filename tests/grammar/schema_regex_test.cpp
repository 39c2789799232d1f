// SPDX-License-Identifier: Apache-2.0
// The format "regex": random patterns by the verdicts of another engine (make_patterns.mjs, seed
// 2026), in any spelling of a string; what stands beside the format counts or is refused by name.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "grammar/schema/json_value.h"
#include "grammar/schema/pattern_check.h"
#include "grammar/schema_validator.h"

namespace gen::grammar::test {
namespace {

// Each character as an escape, in UTF-16.
std::string escaped(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return "";
    char unit[8];
    std::snprintf(unit, sizeof unit, "\\u%04x", static_cast<unsigned>(c));
    made += unit;
  }
  return made + "\"";
}

TEST(SchemaRegex, PatternsByAnotherEngine) {
  Validator validator(R"({"type":"string","format":"regex"})");
  std::ifstream file(GEN_PATTERNS);
  size_t count = 0;
  size_t valid = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const std::string text = line.substr(1);
    const std::string pattern = read_json(text).value().text;
    EXPECT_EQ(is_pattern(pattern), line[0] != 'n') << text;
    if (line[0] == 'l') continue;
    valid += line[0] == 'v' ? size_t{1} : size_t{0};
    EXPECT_EQ(validator(text), line[0] == 'v') << text;
    if (const std::string other = escaped(pattern); !other.empty() && count % 4 == 0) {
      EXPECT_EQ(validator(other), line[0] == 'v') << other;
    }
  }
  EXPECT_GT(count, 700U);
  EXPECT_GT(valid, 200U);
}

TEST(SchemaRegex, GroupsNestAsDeepAsTheyWill) {
  Validator validator(R"({"format":"regex"})");
  const auto nested = [](const std::string& open, size_t depth, const std::string& close) {
    std::string text = "\"";
    for (size_t i = 0; i < depth; ++i) text += open;
    text += "a";
    for (size_t i = 0; i < depth; ++i) text += close;
    return text + "\"";
  };
  EXPECT_TRUE(validator(nested("(", 60, ")+")));
  EXPECT_TRUE(validator(nested("(?:a|(?!b)(?<=", 30, "))*?")));
  EXPECT_FALSE(validator(nested("(?:(?!", 30, ")*)")));
  EXPECT_FALSE(validator("\"((a)\""));
  // Ranges whose ends are close to each other, the wrong way round.
  for (const char* text : {"[я-ю]", "[三-一]", "[\xF0\x9F\x98\x82-\xF0\x9F\x98\x80]", "[b-a]",
                           "[\\\\w-a]", "[\\\\w-a", "[a-\\\\d]", "[\\\\d-\\\\w]"}) {
    EXPECT_FALSE(validator("\"" + std::string(text) + "\"")) << text;
  }
  EXPECT_TRUE(validator("7"));
}

// By new RegExp(text, "u").
TEST(SchemaRegex, BackReferencesLeadToGroups) {
  Validator validator(R"({"format":"regex"})");
  for (const char* text :
       {"(a)\\\\1", "(['x])b\\\\1{2,}?c", "(?<n>a)\\\\k<n>", "(?<n>a)b+\\\\k<n>*5",
        "(a)((b))\\\\2|\\\\1", "(a)\\\\1?0", "(?<name>a)\\\\1", "(?:(?<q>a))",
        "(1)(2)(3)(4)(5)(6)(7)(8)(9)\\\\9", "(?<a>(b))\\\\1(c)\\\\k<a>"}) {
    EXPECT_TRUE(validator("\"" + std::string(text) + "\"")) << text;
  }
  for (const char* text :
       {"\\\\1", "(a)\\\\2", "(?:a)\\\\1", "(a)\\\\10", "(a)\\\\1\\u0030", "(?<n>a)\\\\k<m>",
        "(?<n>a)(?<n>b)", "\\\\k<n>", "(?<n>a)\\\\k<n", "(?=a)\\\\1", "(?<n>a)\\\\k"}) {
    EXPECT_FALSE(validator("\"" + std::string(text) + "\"")) << text;
  }
}

TEST(SchemaRegex, WhatIsLeftOutIsTold) {
  SchemaReport report;
  const auto made = Grammar::from_json_schema(R"({"items":{"format":"regex"}})", SchemaOptions(),
                                              GrammarLimits(), &report);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(report.relaxed.size(), 1U);
  EXPECT_EQ(report.relaxed[0],
            "/items/format: some back references, names of groups and ranges left out");
}

TEST(SchemaRegex, BesideOtherKeywords) {
  check({R"({"format":"regex","minLength":1})", {"\"a\"", "\"(|)\""}, {"\"\"", "\"(\""}});
  check({R"#({"format":"regex","enum":["(a)\\1","a**","","[b-a]","(?<x>)(?<x>)",3]})#",
         {R"("(a)\\1")", "\"\"", "3"},
         {"\"a**\"", "\"[b-a]\"", R"#("(?<x>)(?<x>)")#", "\"b\""}});
  check({R"({"not":{"format":"regex"},"enum":["a","a**"]})", {"\"a**\""}, {"\"a\""}});
  check({R"#({"format":"regex","pattern":"^(\\(|a)$"})#", {"\"a\""}, {"\"(\"", "\"b\""}});
  check({R"#({"format":"regex","pattern":"^[0-9]+(:[a-z.|^$]+)?$","maxLength":9})#",
         {"\"1:a|^.\"", "\"12\""},
         {"\"1:+\"", "\"1234567890\""}});
  EXPECT_EQ(refusal(R"({"type":"string","not":{"format":"regex"},"pattern":"^a+$"})"),
            "#: no value is valid: no string fits all keywords");
  check({R"({"propertyNames":{"format":"regex"}})",
         {"{}", R"#({"^a$":1,"(b)":{}})#"},
         {R"#({"(":1})#", R"({"a":1,"a":2})"}});
  check({R"({"propertyNames":{"format":"regex"},"properties":{"a":{},"(":{}},
             "additionalProperties":false})",
         {"{}", R"({"a":1})"},
         {R"#({"(":1})#", R"({"b":1})"}});
  EXPECT_EQ(refusal(R"({"type":"string","not":{"format":"regex"}})"),
            "/not/format: the negation of the format regex");
  EXPECT_EQ(refusal(R"({"a":1,"allOf":[{"format":"regex"},{"pattern":"^a"}]})"),
            "/allOf/0/format: the format regex together with other limits of strings");
  EXPECT_EQ(refusal(R"({"format":"regex","maxLength":9})"),
            "/format: the format regex together with other limits of strings");
  EXPECT_EQ(refusal(R"({"propertyNames":{"format":"regex"},"properties":{"a":{}}})"),
            "/propertyNames: the format regex together with other keywords about names");
}

}  // namespace
}  // namespace gen::grammar::test

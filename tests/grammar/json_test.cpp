// SPDX-License-Identifier: Apache-2.0
// "Any JSON" takes what RFC 8259 takes, byte for byte.
#include "grammar/json/json.h"

#include <gtest/gtest.h>

#include <string>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

TEST(Json, Members) {
  const auto grammar = Grammar::any_json({}, {.space = 64}).value();
  Matcher matcher =
      Matcher::create(grammar->over(test::vocabulary(test::all_bytes())).value()).value();
  const auto is_member = [&](const std::string& text) {
    matcher.reset();
    return matcher.accept_bytes(text).value() && matcher.is_complete();
  };
  for (const char* text :
       {"{}", "[]", "{ }", "[ ]", "null", "true", "false", "0", "-0", "12.50e+3", "1E5", "\"\"",
        " [1 , 2]\n", "{\"a\":{\"b\":[{},[],\"\\u00e9\\n\\\\\"]}, \"c\" : -1.5}",
        "\"\xC3\xA9\xF0\x9F\xA6\x99\"", "\"\\/\\b\\f\\r\\t\"", "[[[[[[]]]]]]", "\"\x7F\""}) {
    EXPECT_TRUE(is_member(text)) << text;
  }
  for (const char* text : {"",         " ",
                           "{",        "[1,]",
                           "[,]",      "{\"a\":1,}",
                           "{\"a\"}",  "{a:1}",
                           "01",       "1.",
                           ".5",       "+1",
                           "1e",       "--1",
                           "\"\n\"",   "\"\xFF\"",
                           "\"\xC3\"", "\"\xED\xA0\x80\"",
                           "\"\\x\"",  "\"\\u12g4\"",
                           "nul",      "nulll",
                           "'a'",      "1 2",
                           "[1 2]",    "{\"a\":1 \"b\":2}",
                           "]",        "\"",
                           "NaN"}) {
    EXPECT_FALSE(is_member(text)) << text;
  }
  EXPECT_TRUE(is_member("[" + std::string(64, ' ') + "1]"));
  EXPECT_FALSE(is_member("[" + std::string(65, ' ') + "1]"));
  EXPECT_TRUE(is_member(std::string(20'000, '[') + std::string(20'000, ']')));
}

TEST(Json, ShortestWayOut) {
  const auto grammar = Grammar::any_json().value();
  Matcher matcher =
      Matcher::create(grammar->over(test::vocabulary(test::all_bytes())).value()).value();
  EXPECT_EQ(matcher.min_bytes(), 1U);
  ASSERT_TRUE(matcher.accept_bytes("[[{\"a").value());
  EXPECT_EQ(matcher.min_bytes(), 6U);  // ":0}]]
}

TEST(Json, SpaceAndDigitsHaveLimits) {
  const auto is_member = [](const JsonStyle& style, const std::string& text) {
    Expressions expressions;
    const ExprId root = any_json_expression(expressions, style);
    const auto grammar = Grammar::from_expressions(expressions, root).value();
    Matcher matcher =
        Matcher::create(grammar->over(test::vocabulary(test::all_bytes())).value()).value();
    return matcher.accept_bytes(text).value() && matcher.is_complete();
  };
  const JsonStyle compact = {.space = 0, .digits = 3};
  EXPECT_TRUE(is_member(compact, "{\"a b\":[123,0,-999.123e+456]}"));
  for (const char* text : {" 1", "[1, 2]", "{\"a\" :1}", "1234", "0.1234", "1e1234"}) {
    EXPECT_FALSE(is_member(compact, text)) << text;
    EXPECT_TRUE(is_member({.space = 1, .digits = 4}, text)) << text;
  }
  EXPECT_FALSE(is_member({.space = 64}, std::string(65, ' ') + "1"));
  EXPECT_TRUE(is_member({.digits = 1}, std::string(1000, ' ') + "1"));
}

}  // namespace
}  // namespace gen::grammar

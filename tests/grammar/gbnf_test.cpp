// SPDX-License-Identifier: Apache-2.0
// GBNF means what llama.cpp's description of it says; failures name line and column.
#include "grammar/notation/gbnf.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/member_cases.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

Matcher matcher(const std::string& source) {
  const auto grammar = Grammar::from_gbnf(source);
  EXPECT_TRUE(grammar.ok()) << source << "\n" << grammar.status().message();
  if (!grammar.ok()) return matcher("root ::= \"\"");
  return Matcher::create(grammar.value()->over(test::vocabulary(test::all_bytes(), 2)).value())
      .value();
}

std::string failure(std::string_view source) {
  return test::failure_of(Grammar::from_gbnf(source), source);
}

TEST(Gbnf, Members) {
  const test::MemberCase cases[] = {
      {"root ::= \"a\" | \"b\" \"c\"", {"a", "bc"}, {"", "b", "ac", "abc"}},
      {"root ::= \"ab\"* \"c\"?", {"", "ab", "ababc", "c"}, {"a", "abb", "cc"}},
      {"root ::= \"a\"+ (\"b\" | (\"c\"))", {"ab", "aac"}, {"a", "b"}},
      {"root ::= \"a\"{2}", {"aa"}, {"a", "aaa"}},
      {"root ::= \"a\"{2,}", {"aa", "aaaa"}, {"a"}},
      {"root ::= \"a\"{ 1 , 3 }", {"a", "aaa"}, {"", "aaaa"}},
      {"root ::= \"a\"{0}", {""}, {"a"}},
      {"root ::= [a-c]", {"a", "b", "c"}, {"d", "-"}},
      {"root ::= [a-]", {"a", "-"}, {"b"}},
      {"root ::= [^a-c\\n]", {"d", "\xC3\xA9", "\xF0\x9F\xA6\x99"}, {"a", "\n", "\xC3", "\xFF"}},
      {"root ::= [\\]\\[\\\\^]", {"]", "[", "\\", "^"}, {"a"}},
      {"root ::= .", {"a", "\n", "\xE2\x82\xAC"}, {"", "ab", "\xED\xA0\x80", "\xC0\x80"}},
      {"root ::= \"\\x41\\xE9\\u20AC\\U0001F999\\t\\\"\"",
       {"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x99\t\""},
       {"A"}},
      {"root ::= [\\u00e8-\\u00eA]", {"\xC3\xA9"}, {"\xC3\xAB", "\xC3"}},
      {"# first\nroot ::= x # last\nx ::= \"a\"#\n", {"a"}, {"b"}},
      {"root ::=\n  \"a\"\n", {"a"}, {""}},
      {"root ::= \"a\"\n  | \"b\"\n\n  | \"c\"\r\n", {"a", "b", "c"}, {"ab"}},
      {"root ::= (\n \"a\" |\n \"b\"\n)", {"a", "b"}, {""}},
      {"root ::= \"a\" |", {"a", ""}, {"b"}},
      {"root ::= () \"a\"", {"a"}, {""}},
      {"root ::= \"a\n\"", {"a\n"}, {"a"}},
      {"x-1 ::= \"a\"\nroot ::= x-1 x-1", {"aa"}, {"a"}},
      {"root ::= \"a\"\nroot ::= \"b\"", {"b"}, {"a"}},
      {"root ::= \"a\"{2}{2}", {"aaaa"}, {"aa", "aaa"}},
      {"root ::= [] | \"a\"", {"a"}, {""}},
      // recursion of every kind
      {"root ::= root \"+\" n | n\nn ::= [0-9]", {"1", "1+2", "1+2+3"}, {"", "1+", "+1"}},
      {"root ::= e\ne ::= e \"+\" t | t\nt ::= t \"*\" f | f\nf ::= \"(\" e \")\" | \"n\"",
       {"n", "n+n*n", "(n+n)*n", "((n))"},
       {"n+", "(n", "()", "n)"}},
      {"root ::= a\na ::= b \"x\" | \"a\"\nb ::= a \"y\" | \"b\"",
       {"a", "bx", "ayx", "bxyx"},
       {"b", "ax", "ay", "bxy"}},
      {"root ::= s\ns ::= n s \"x\" | \"a\"\nn ::= \"\" | \"b\"",
       {"a", "ax", "bax", "bbaxx", "axxx"},
       {"x", "ba", "bbax"}},
      {"root ::= \"(\" root \")\" root | \"\"", {"", "()", "(())()"}, {"(", ")("}},
      {"root ::= root root | \"a\" | \"\"", {"", "a", "aaaa"}, {"b"}},
      {"root ::= root", {}, {}},
  };
  for (const test::MemberCase& one : cases) {
    if (one.members.empty()) {
      EXPECT_EQ(failure(one.source), "the grammar matches no text");
      continue;
    }
    test::expect_members(one, matcher(one.source));
  }
}

// A chain of rules, each of which is its letter and the next rule or its end.
// Ranges of a class may come in any order, and over each other.
TEST(Gbnf, LongClasses) {
  constexpr uint32_t kFirst = 0x10000;
  constexpr uint32_t kCount = 20'000;
  std::string descending;
  for (uint32_t i = kCount; i-- > 0;) utf8_append(kFirst + 2 * i, &descending);
  const auto regex = Grammar::from_regex("[" + descending + "b-da-c]", RegexMatch::kWhole);
  ASSERT_TRUE(regex.ok());
  const auto vocabulary = test::vocabulary(test::all_bytes(), 2);
  Matcher of_regex = Matcher::create(regex.value()->over(vocabulary).value()).value();
  Matcher of_gbnf = matcher("root ::= [" + descending + "b-da-c]");
  for (uint32_t i = 0; i < 2 * kCount + 2; i += 97) {
    std::string text;
    utf8_append(kFirst + i, &text);
    const bool member = i % 2 == 0 && i < 2 * kCount;
    EXPECT_EQ(test::is_member(of_gbnf, text), member) << i;
    EXPECT_EQ(test::is_member(of_regex, text), member) << i;
  }
  for (const char* text : {"a", "b", "c", "d"}) EXPECT_TRUE(test::is_member(of_gbnf, text)) << text;
  EXPECT_FALSE(test::is_member(of_gbnf, "e"));
}

TEST(Gbnf, MoreRulesThanFitIntoSixteenBits) {
  constexpr int kRules = 40000;
  std::string source = "root ::= r0 | r39990 \"!\"\n";
  for (int i = 0; i < kRules; ++i) {
    source += "r" + std::to_string(i) + " ::= \"a\"";
    source += i + 1 < kRules ? " r" + std::to_string(i + 1) + "|\"b\"\n" : "\n";
  }
  test::expect_members({source.c_str(), {"b", "aab", "aaab!", "aaaaaaaaaa!"}, {"a", "aaa!", "b!!"}},
                       matcher(source));
}

TEST(Gbnf, TokenTerminals) {
  Matcher one = matcher("root ::= <[256]> \"a\" <1> !<[256]> !<1>");
  EXPECT_FALSE(one.accept_token('a').value());
  EXPECT_FALSE(one.accept_token(257).value());
  EXPECT_TRUE(one.accept_token(256).value());
  EXPECT_TRUE(one.accept_token('a').value());
  EXPECT_TRUE(one.accept_token(257).value());
  EXPECT_FALSE(one.accept_token(256).value());
  EXPECT_TRUE(one.accept_token('z').value());
  EXPECT_FALSE(one.accept_token(258).value());  // the end token is no other token
  EXPECT_FALSE(one.accept_token(257).value());
  EXPECT_TRUE(one.accept_token(256).value());
  EXPECT_TRUE(one.is_finished());

  const auto vocabulary = test::vocabulary({"a"}, 1);
  for (const char* source : {"root ::= <x>", "root ::= <[3]>"}) {
    EXPECT_EQ(Grammar::from_gbnf(source).value()->over(vocabulary).status().code(), Code::kGrammar);
  }
}

TEST(Gbnf, FailuresNameThePlace) {
  EXPECT_EQ(failure("root ::= \"a\"\nx ::= y"), "line 2, column 7: no rule \"y\"");
  EXPECT_EQ(failure("x ::= \"a\"\n"), "line 2, column 1: no rule \"root\"");
  EXPECT_EQ(failure("root = \"a\""), "line 1, column 6: expected ::= behind \"root\"");
  EXPECT_EQ(failure("root ::= \"\xC3\xA9\" )"), "line 1, column 14: ) without (");
  EXPECT_EQ(failure("root ::= (\n\"a\""), "line 1, column 10: ( without )");
  EXPECT_EQ(failure("root ::= \"a"), "line 1, column 10: text without its end quote");
  EXPECT_EQ(failure("root ::= [a"), "line 1, column 10: [ without ]");
  EXPECT_EQ(failure("root ::= [c-a]"), "line 1, column 11: range ends before it begins");
  EXPECT_EQ(failure("root ::= *"), "line 1, column 10: nothing to repeat");
  EXPECT_EQ(failure("root ::= \"a\" | +"), "line 1, column 16: nothing to repeat");
  EXPECT_EQ(failure("root ::= \"a\"{3,2}"), "line 1, column 13: most repetitions below the fewest");
  EXPECT_EQ(failure("root ::= \"a\"{,2}"), "line 1, column 14: expected a number");
  EXPECT_EQ(failure("root ::= \"a\"{9999999999}"), "line 1, column 14: number above 1073741824");
  EXPECT_EQ(failure("root ::= \"\\q\""), "line 1, column 11: unknown escape \\q");
  EXPECT_EQ(failure("root ::= \"\\u12\""), "line 1, column 15: expected 4 hexadecimal digits");
  EXPECT_EQ(failure("root ::= \"\\uD800\""), "line 1, column 11: no Unicode character");
  EXPECT_EQ(failure("root ::= \xFF"), "line 1, column 10: not UTF-8");
  EXPECT_EQ(failure("root ::= <a"), "line 1, column 10: token without its >");
  EXPECT_EQ(failure("root ::= &"), "line 1, column 10: unexpected \"&\"");
  EXPECT_EQ(failure("| root"), "line 1, column 1: expected the name of a rule");
  EXPECT_EQ(failure(""), "line 1, column 1: no rule \"root\"");
  EXPECT_EQ(failure("root ::= \"\\"), "line 1, column 11: unknown escape");
}

}  // namespace
}  // namespace gen::grammar

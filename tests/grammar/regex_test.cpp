// SPDX-License-Identifier: Apache-2.0
// Regular expressions match what ECMA-262 says: by hand, and, for random patterns, as the standard
// library's does, which follows it.
#include "grammar/regex/regex.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/member_cases.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

Matcher matcher(const Grammar& grammar) {
  return Matcher::create(grammar.over(test::vocabulary(test::all_bytes())).value()).value();
}

void expect(const test::MemberCase& one, RegexMatch match) {
  const auto grammar = Grammar::from_regex(one.source, match);
  ASSERT_TRUE(grammar.ok()) << one.source << " : " << grammar.status().message();
  test::expect_members(one, matcher(*grammar.value()));
}

std::string failure(std::string_view pattern) {
  return test::failure_of(Grammar::from_regex(pattern), pattern);
}

TEST(Regex, Members) {
  const test::MemberCase cases[] = {
      {"", {""}, {"a"}},
      {"a|b|", {"a", "b", ""}, {"ab"}},
      {"^ab+?c*?$", {"ab", "abbc"}, {"a", "xab"}},
      {"(a)(?:b)(?<name1>c)", {"abc"}, {"ab"}},
      {"(?:ab){2,3}", {"abab", "ababab"}, {"ab", "abababab"}},
      {"a{2}b{1,}", {"aab", "aabb"}, {"ab", "aa"}},
      {"a{,2}", {"a{,2}"}, {"a", "aa"}},
      {"a{x}]}", {"a{x}]}"}, {"a"}},
      {"[^a-c]", {"d", "\n", "\xE2\x82\xAC"}, {"a", ""}},
      {"[^]", {"a", "\n"}, {""}},
      {"[a\\]\\-b-]", {"a", "]", "-", "b"}, {"\\"}},
      {"[\\d_-]+", {"1_-", "9"}, {"a"}},
      {".", {"a", "\xF0\x9F\xA6\x99", "\t"}, {"\n", "\r", "\xE2\x80\xA8", "\xFF"}},
      {"\\d\\D\\w\\W\\s\\S",
       {"1a_- x",
        "0\xC3\xA9"
        "Z\xC3\xA9\xC2\xA0."},
       {"aaaaaa"}},
      {"\\t\\n\\v\\f\\r\\0\\cA\\x41\\u0042", {std::string("\t\n\v\f\r\0\1AB", 9)}, {"t"}},
      {"\\u{1F999}\\uD83E\\uDD99", {"\xF0\x9F\xA6\x99\xF0\x9F\xA6\x99"}, {""}},
      {"[\\b]\\.\\/\\$\\(", {"\b./$("}, {"b./$("}},
      {"\xC3\xA9+", {"\xC3\xA9\xC3\xA9"}, {"\xC3\xC3\xA9"}},
      {"(|a)*", {"", "aaa"}, {"b"}},
      {"((a*)*)*b", {"b", "aab"}, {"a"}},
      // Annex B
      {"\\y\\_\\p\\u12\\xg\\u{g}\\k", {"y_pu12xgu{g}k"}, {"y"}},
      {"\\101\\8\\1", {"A8\1"}, {"A"}},
      {"(a)\\2\\08",
       {std::string("a\2\0"
                    "8",
                    4)},
       {"a"}},
      {"[a-\\d]", {"a", "-", "5"}, {"b"}},
      {"[\\c1\\c\\B]", {"\x11", "\\", "c", "B"}, {"1"}},
      {"\\c", {"\\c"}, {"c"}},
      {"[\\uD800-\\uDFFFa]", {"a"}, {"b"}},
      {"\\p{Lu}\\P{Script=Greek}[\\p{Nd}\\p{L}_]+",
       {"\xC3\x89"
        "a\xD9\xA1_\xCE\xB1"},
       {"\xC3\xA9"
        "aa",
        "A\xCE\xB1"
        "a"}},
  };
  for (const test::MemberCase& one : cases) expect(one, RegexMatch::kWhole);
  EXPECT_EQ(failure("[]a]"), "the grammar matches no text");  // [] matches no character
}

TEST(Regex, Searches) {
  const test::MemberCase cases[] = {
      {"b",
       {"b", "abc",
        "\n\xC3\xA9"
        "b"},
       {"", "ac", "b\xFF"}},
      {"^b", {"b", "bc"}, {"ab"}},
      {"b$", {"b", "ab"}, {"ba"}},
      {"^b$|^c", {"b", "cd"}, {"bb", "ac"}},
      {"", {"", "x"}, {"\xFF"}},
  };
  for (const test::MemberCase& one : cases) expect(one, RegexMatch::kSearch);
}

TEST(Regex, FailuresNameThePlace) {
  EXPECT_EQ(failure("(a)\\1"), "line 1, column 4: backreferences are not supported");
  EXPECT_EQ(failure("\\k<a>"), "line 1, column 1: backreferences are not supported");
  EXPECT_EQ(failure("(?i:a)"), "line 1, column 1: flags of a group are not supported");
  EXPECT_EQ(failure("a\\p{Lx}"), "line 1, column 2: no Unicode property \"Lx\"");
  EXPECT_EQ(failure("\\p{Script=Lu}"), "line 1, column 1: no Unicode property \"Script=Lu\"");
  EXPECT_EQ(failure("\\p{L"), "line 1, column 1: \\p without its }");
  EXPECT_EQ(failure("\\b*"), "line 1, column 3: nothing to repeat");
  EXPECT_EQ(failure("(?<=a)+"), "line 1, column 7: nothing to repeat");
  EXPECT_EQ(failure("(?<a"), "line 1, column 4: expected the name of a group and >");
  EXPECT_EQ(failure("(?=a"), "line 1, column 1: ( without )");
  EXPECT_EQ(failure("a^"), "the grammar matches no text");
  EXPECT_EQ(failure("(a"), "line 1, column 1: ( without )");
  EXPECT_EQ(failure("a)"), "line 1, column 2: ) without (");
  EXPECT_EQ(failure("[a"), "line 1, column 1: [ without ]");
  EXPECT_EQ(failure("[b-a]"), "line 1, column 2: range ends before it begins");
  EXPECT_EQ(failure("*a"), "line 1, column 1: nothing to repeat");
  EXPECT_EQ(failure("a**"), "line 1, column 3: nothing to repeat");
  EXPECT_EQ(failure("({2})"), "line 1, column 2: nothing to repeat");
  EXPECT_EQ(failure("a{3,2}"), "line 1, column 2: most repetitions below the fewest");
  EXPECT_EQ(failure("\\uD800"), "line 1, column 1: no Unicode character");
  EXPECT_EQ(failure("a\\"), "line 1, column 2: nothing behind the \\");
  EXPECT_EQ(failure("\xFF"), "line 1, column 1: not UTF-8");
}

// What only the flag u reads (\\p{...}, \\u{...}) is read as with it: a set ends no range, as V8
// says of each of these with the flag. What has none of it may be without the flag, where it stands
// for itself.
TEST(Regex, SetsEndNoRangeBesideWhatNeedsTheFlag) {
  const char* const wrong[][2] = {
      {"[\\p{L}-z]", "2"},         {"[a-\\p{L}]", "2"},       {"[\\p{L}-\\d]", "2"},
      {"[\\P{L}-a]", "2"},         {"[\\d-z]\\p{L}", "2"},    {"\\p{L}|[a-\\w]", "8"},
      {"[\\d-z]\\u{61}", "2"},     {"[\\d-\\u{61}]", "2"},    {"[^\\s-x]\\u{41}", "3"},
      {"x[\\b-\\d](\\p{L})", "3"}, {"[ab\\w-.]\\p{Lu}", "4"},
  };
  for (const auto& [pattern, column] : wrong) {
    EXPECT_EQ(failure(pattern),
              std::string("line 1, column ") + column + ": a set is no end of a range")
        << pattern;
  }
  for (const char* pattern : {"[\\w-]\\p{L}", "[-\\w]\\p{L}", "[a\\-\\w]\\p{L}", "[\\d-z]",
                              "[a-\\w]", "[\\w-.]+@[\\w-.]+", "[\\d-\\x61]\\u0061"}) {
    EXPECT_TRUE(Grammar::from_regex(pattern).ok()) << pattern;
  }
}

std::string random_pattern(std::mt19937& random, int depth) {
  const auto below = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  static const char* const kAtoms[] = {"a", "b", ".", "[ab]", "[^a]", "\\w", "\\W", "c"};
  if (depth == 0 || below(4) == 0) return kAtoms[below(8)];
  static const char* const kQuantifiers[] = {"*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "{1,3}?"};
  switch (below(3)) {
    case 0:
      return "(" + random_pattern(random, depth - 1) + ")" + kQuantifiers[below(8)];
    case 1:
      return "(?:" + random_pattern(random, depth - 1) + "|" + random_pattern(random, depth - 1) +
             ")";
    default:
      return random_pattern(random, depth - 1) + random_pattern(random, depth - 1);
  }
}

TEST(Regex, AsTheStandardLibrary) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < (gen::test::kSanitized ? 30 : 300); ++i) {
    for (const char c : {'a', 'b', 'c', '-'}) texts.push_back(texts[i] + c);
  }
  std::mt19937 random(3);
  size_t members = 0;
  for (int round = 0; round < (gen::test::kSanitized ? 20 : 300); ++round) {
    const std::string pattern = random_pattern(random, 4);
    SCOPED_TRACE(pattern);
    const bool search = round % 2 == 1;
    const auto grammar =
        Grammar::from_regex(pattern, search ? RegexMatch::kSearch : RegexMatch::kWhole);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    Matcher ours = matcher(*grammar.value());
    const std::regex theirs(pattern, std::regex::ECMAScript);
    for (const std::string& text : texts) {
      const bool expected =
          search ? std::regex_search(text, theirs) : std::regex_match(text, theirs);
      ASSERT_EQ(test::is_member(ours, text), expected) << text;
      members += expected ? 1 : 0;
    }
  }
  EXPECT_GT(members, gen::test::kSanitized ? 100U : 5000U);
}

}  // namespace
}  // namespace gen::grammar

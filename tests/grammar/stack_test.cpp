// SPDX-License-Identifier: Apache-2.0
// Hostile grammars and texts on a thread with a stack of 64 kB: nothing recurses without a bound.
#include <gtest/gtest.h>
#include <pthread.h>

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

bool walk(const Result<std::shared_ptr<const Grammar>>& grammar, const std::string& text,
          bool ends = true) {
  if (!grammar.ok()) return false;
  auto matcher =
      Matcher::create(grammar.value()->over(test::vocabulary(test::all_bytes(), 1)).value());
  if (!matcher.ok()) return false;
  std::vector<uint64_t> mask(matcher->grammar().vocabulary().words());
  const auto taken = matcher->accept_bytes(text);
  return taken.ok() && taken.value() && matcher->mask(mask).ok() &&
         matcher->mask_within(1, mask).ok() && (matcher->min_tokens(1000).tokens != kNoWay) == ends;
}

std::string repeated(const std::string& text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

void* hostile(void* result) {
  auto& failures = *static_cast<std::vector<std::string>*>(result);
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) failures.emplace_back(what);
  };
  constexpr size_t kDeep = 50'000;
  const std::string open = repeated("(", kDeep);
  const std::string close = repeated(")", kDeep);
  expect(walk(Grammar::from_gbnf("root ::= " + open + "\"a\"" + close), ""), "gbnf groups");
  expect(walk(Grammar::from_gbnf("root ::= " + open + "\"a\"" + repeated(")*", kDeep)), "aaa"),
         "gbnf stars");
  expect(walk(Grammar::from_regex(open + "a" + close), ""), "regex groups");
  expect(walk(Grammar::from_regex(open + "a\\b" + close), ""), "regex groups around a border");
  expect(walk(Grammar::any_json(), repeated("[", 50'000)), "brackets");
  // Their end is further away than min_tokens() looks.
  expect(walk(Grammar::any_json(), repeated("[", 1'000'000), false), "a million brackets");
  expect(walk(Grammar::from_gbnf("root ::= a\na ::= b \"x\" | \"\"\nb ::= c? a\nc ::= b | a \"y\""),
              "xxyx"),
         "mutual recursion");
  expect(walk(Grammar::from_gbnf("root ::= (\"a\" | \"b\" | x)*\nx ::= y? x?\ny ::= \"\" | x"),
              "abab"),
         "nullable items");
  expect(walk(Grammar::from_lark("start: " + open + "\"a\"" + close), ""), "lark groups");
  expect(walk(Grammar::from_lark("start: A\nA: " + open + "\"a\"" + repeated(")*", kDeep)), "aa"),
         "lark terminals");
  expect(walk(Grammar::from_lark("start: /" + open + "a" + close + "/"), ""), "lark patterns");
  GrammarLimits long_texts;
  long_texts.text_bytes = size_t{4} << 20;
  for (const char* bracket :
       {"(", "[", "{", "~", "~(", "<", "%lark{start:", "%json{\"a\":", "%json["}) {
    const std::string million = repeated(bracket, 1'000'000 / std::string(bracket).size());
    (void)walk(Grammar::from_lark("start: " + million, long_texts), "");
    (void)walk(Grammar::from_lark("start: A\nA: " + million + "\"a\"", long_texts), "");
  }
  std::string chain;
  for (int i = 0; i < 20'000; ++i) {
    chain += "A" + std::to_string(i) + ": A" + std::to_string(i + 1) + "\n";
  }
  expect(walk(Grammar::from_lark(chain + "A20000: \"a\"\nstart: A0"), "a"), "a chain of terminals");
  std::string within = "start: \"a\"";
  for (int i = 0; i < 7; ++i) within = "start: %lark {" + within + "}";
  expect(walk(Grammar::from_lark(within), "a"), "lark in lark");
  const auto schema = [](const std::string& text) {
    return Grammar::from_json_schema(text, SchemaOptions());
  };
  const auto nested_in = [](const std::string& begin, const std::string& end) {
    const size_t count = begin.back() == ':' ? 250 : 125;  // of 256 levels that there may be
    return repeated(begin, count) + "{\"type\":\"string\"}" + repeated(end, count);
  };
  expect(walk(schema(nested_in("{\"items\":", "}")), "["), "schemas of items");
  expect(walk(schema(nested_in("{\"anyOf\":[{\"type\":\"null\"},", "]}")), "n"), "choices");
  expect(walk(schema("{\"const\":" + repeated("[", 250) + repeated("]", 250) + "}"), "[["),
         "a value");
  const std::string brackets = repeated("[", 250);
  const std::string ends = repeated("]", 250);
  expect(walk(schema("{\"uniqueItems\":true,\"items\":{\"enum\":[" + brackets + "1" + ends + "," +
                     brackets + "2" + ends + "]}}"),
              "[["),
         "values beside each other");
  (void)walk(schema(nested_in("{\"if\":", "}")), "[");
  expect(!schema(nested_in("{\"unevaluatedProperties\":false,\"allOf\":[", "]}")).ok(),
         "what is not evaluated");
  expect(!schema(repeated("[", 500'000)).ok(), "a schema of brackets");
  expect(!schema(R"({"type":"object","not":{"anyOf":[)" +
                 repeated(R"({"propertyNames":false},)", 5'000) + "false]}}")
              .ok(),
         "conditions for some member");
  std::string references;
  for (int i = 0; i < 1000; ++i) {
    references += "\"" + std::to_string(i) +
                  "\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/" +
                  std::to_string(i + 1) + "\"}]},";
  }
  expect(walk(schema("{\"$ref\":\"#/$defs/0\",\"$defs\":{" + references +
                     "\"1000\":{\"type\":\"string\"}}}"),
              "n"),
         "references");
  // Assertions in each other: refused or not, but not by a crash.
  std::string nested = "a";
  for (int i = 0; i < 40; ++i) nested = (i % 2 == 0 ? "(?=" : "(?<!") + nested + "b?)a?";
  GrammarLimits limits;
  limits.automata.work = 1'000'000;
  (void)walk(Grammar::from_regex(nested, RegexMatch::kSearch, limits), "a");
  (void)walk(Grammar::from_regex(repeated("(?=a|b*)", 2000) + "a", RegexMatch::kSearch, limits),
             "a");
  return nullptr;
}

TEST(Stack, SixtyFourKilobytesAreEnough) {
  if (gen::test::kSanitized) GTEST_SKIP() << "sanitizers take more stack";
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  pthread_t thread{};
  std::vector<std::string> failures;
  ASSERT_EQ(pthread_create(&thread, &attributes, hostile, &failures), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  for (const std::string& failure : failures) ADD_FAILURE() << failure;
}

}  // namespace
}  // namespace gen::grammar

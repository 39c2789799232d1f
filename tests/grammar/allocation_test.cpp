// SPDX-License-Identifier: Apache-2.0
// A matcher that has been where it goes allocates nothing: masks, tokens, ways back and draft
// trees. This program counts through its own operator new.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"
#include "support/counting_new.h"

namespace gen::grammar {
namespace {

TEST(Allocation, NoneInSteadyState) {
  auto texts = test::all_bytes();
  for (const char* text : {"{\"", "\":", ", ", "\": [", "],", "}}", "abc"})
    texts.emplace_back(text);
  const auto vocabulary = test::vocabulary(texts);
  const auto tool = Grammar::from_gbnf(
      "root ::= \"{\" pair (\", \" pair){0,90} \"}\"\n"
      "pair ::= \"\\\"\" [a-z]{1,9} \"\\\": \" value\n"
      "value ::= [0-9]{1,200} | \"[\" (value (\", \" value)*)? \"]\" | root");
  const std::string document = "{\"abc\": [1, 2, [{\"x\": 12345}]], \"yy\": {\"a\": [], \"b\": 7}}";
  for (const auto& grammar : {Grammar::any_json(), tool}) {
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    std::vector<uint64_t> mask(vocabulary->words());
    const std::vector<int32_t> parents = {-1, 0, 0, -1};
    const std::vector<int32_t> drafts = {'1', ',', '2', '{'};
    std::vector<uint64_t> rows(4 * vocabulary->words());
    const auto round = [&] {
      for (const char c : document) {
        if (!matcher.mask(mask).ok() || !matcher.masks_of_tree(parents, drafts, rows).ok() ||
            !matcher.accept_token(static_cast<unsigned char>(c)).value()) {
          return false;
        }
      }
      if (!matcher.is_complete() || !matcher.rollback(20).ok()) return false;
      matcher.reset();
      return true;
    };
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(round());
    }
    const size_t before = gen::test::news;
    const bool done = round();
    EXPECT_EQ(gen::test::news - before, 0U);
    EXPECT_TRUE(done);
  }
}

// A pattern that comes to more edges than it may have is not written out to its end first.
TEST(Allocation, PatternsAboveTheLimitStayCheap) {
  const auto bytes_of = [](size_t letters) {
    std::string pattern;
    for (size_t i = 0; i < letters; ++i) pattern += "\\p{L}";
    GrammarLimits limits;
    limits.edges = 2000;
    const size_t before = gen::test::new_bytes;
    EXPECT_EQ(Grammar::from_regex(pattern, {}, limits).status().code(), Code::kGrammar);
    return gen::test::new_bytes - before;
  };
  static_cast<void>(bytes_of(100));
  const size_t few = bytes_of(100);
  const size_t many = bytes_of(2100);
  EXPECT_LT((many - few) / 2000, 250'000U);  // 123,738 to read a letter, 564,140 with its edges
}

}  // namespace
}  // namespace gen::grammar

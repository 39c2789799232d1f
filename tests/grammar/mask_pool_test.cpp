// SPDX-License-Identifier: Apache-2.0
// Grammars over one vocabulary share masks of states that do the same. Those that are nearly alike,
// which differ in what they call, where that returns to, or how often, must not. Against accepting
// each token.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

std::shared_ptr<const Vocabulary> words_of(const std::string& letters, size_t longest) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts[i].size() < longest; ++i) {
    for (const char c : letters) texts.push_back(texts[i] + c);
  }
  texts.erase(texts.begin());
  return test::vocabulary(texts);
}

void compare(const std::shared_ptr<const TokenGrammar>& grammar, const std::string& text) {
  const Vocabulary& vocabulary = grammar->vocabulary();
  Matcher matcher = Matcher::create(grammar).value();
  if (!matcher.accept_bytes(text).value()) return;
  std::vector<uint64_t> mask(vocabulary.words());
  ASSERT_TRUE(matcher.mask(mask).ok());
  for (int32_t token = 0; token < vocabulary.size(); ++token) {
    const bool taken = matcher.accept_token(token).value();
    ASSERT_EQ(taken, test::has(mask, token)) << text << " then " << vocabulary.bytes(token);
    if (taken) {
      ASSERT_TRUE(matcher.rollback(1).ok());
    }
  }
}

TEST(MaskPool, GrammarsThatAreNearlyAlikeAreToldApart) {
  const char* const sources[] = {
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" y \"e\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" y \"a\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" y",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" y \"e\"?",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" y y \"e\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" z \"e\"\nz ::= \"a\" | \"d\" z \"e\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" z \"e\"\nz ::= \"c\" | \"d\" z \"a\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" z \"e\"\nz ::= \"c\" | \"d\" z z \"e\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" z{1,40} \"e\"\nz ::= \"a\" | \"d\" z \"e\"",
      "root ::= \"!\" y \"!\"\ny ::= \"c\" | \"d\" z{2,40} \"e\"\nz ::= \"a\" | \"d\" z \"e\"",
  };
  const auto vocabulary = words_of("acde!", 4);
  for (const char* source : sources) {
    const auto grammar = Grammar::from_gbnf(source).value()->over(vocabulary).value();
    for (const char* text : {"", "!", "!d", "!dd", "!dc", "!da", "!dac", "!ddc", "!ddce"}) {
      compare(grammar, text);
      if (testing::Test::HasFatalFailure()) FAIL() << source;
    }
  }
}

// Names that no keyword speaks of are most of what schemas allow, and call their escapes: still
// they are found once.
TEST(MaskPool, NamesAreSharedBySchemas) {
  const auto vocabulary = test::vocabulary(test::all_bytes());
  const auto masks_of_names = [&](const char* schema) {
    const auto grammar = Grammar::from_json_schema(schema, SchemaOptions()).value();
    Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
    EXPECT_TRUE(matcher.accept_bytes("{\"z").value());
    std::vector<uint64_t> mask(vocabulary->words());
    EXPECT_TRUE(matcher.mask(mask).ok());
    return vocabulary->pool().size();
  };
  const size_t first =
      masks_of_names(R"({"properties":{"name":{"type":"string"}},"required":["name"]})");
  EXPECT_GT(first, 0U);
  EXPECT_EQ(masks_of_names(R"({"properties":{"name":{"type":"string"},"other":{"minimum":3}}})"),
            first);
}

}  // namespace
}  // namespace gen::grammar

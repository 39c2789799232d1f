// SPDX-License-Identifier: Apache-2.0
// Words of limited length: what is below a place of the trie is allowed as a whole where all of it
// can be read. Masks, and masks within a budget, against accepting each token.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

// Words, by themselves and behind marks and digits, and some with a mark or digit behind them. z is
// of the kind of n.
std::shared_ptr<const Vocabulary> words() {
  std::vector<std::string> words = {""};
  for (size_t i = 0; words[i].size() < 5; ++i) {
    for (const char c : {'n', 'z'}) words.push_back(words[i] + c);
  }
  std::vector<std::string> texts;
  for (const char* before : {"", "!", "9", "9n9", "!!"}) {
    for (const std::string& word : words) {
      texts.push_back(before + word);
      if (word.rfind("zz", 0) == 0 && word.size() < 4) {
        for (const char* behind : {"!", "9", "!!", "9!"}) texts.push_back(before + word + behind);
      }
    }
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
  std::vector<std::vector<uint64_t>> within(14, mask);
  std::vector<bool> is_within(within.size());
  for (size_t n = 1; n < within.size(); ++n) {
    const auto made = matcher.mask_within(n, within[n]);
    ASSERT_TRUE(made.ok());
    is_within[n] = made.value();
  }
  for (int32_t token = 0; token < vocabulary.size(); ++token) {
    const bool taken = matcher.accept_token(token).value();
    ASSERT_EQ(taken, test::has(mask, token)) << text << " then " << vocabulary.bytes(token);
    if (!taken) continue;
    const uint64_t left = matcher.min_bytes();
    ASSERT_TRUE(matcher.rollback(1).ok());
    if (vocabulary.is_end(token)) continue;
    for (size_t n = matcher.min_bytes() + 1; n < within.size(); ++n) {
      if (!is_within[n]) continue;
      ASSERT_EQ(left + 1 <= n, test::has(within[n], token))
          << text << " then " << vocabulary.bytes(token) << " in " << n;
    }
  }
}

TEST(MaskWords, AreAllowedAsAWholeWhereAllCanBeRead) {
  const char* const sources[] = {
      "root ::= (\"!\" [a-z]{0,2} \"!\")+",
      "root ::= (\"!\" [a-z]{0,3} \"!\")+",
      "root ::= (\"!\" [a-z0-9]{0,4} \"!\")+",
      "root ::= (\"!\" [a-z]{2,3} [0-9]{0,2} \"!\")+",
      "root ::= (\"!\" [a-z] [a-z0-9]{0,3} \"!\")+",
      "root ::= (\"!\" [a-y]{0,4} \"!\")+",
      // What is called ends within a word, and the word goes on behind it.
      "root ::= (\"!\" word \"!\")+\nword ::= [a-z]{1,2} | [0-9] word",
      "root ::= (\"!\" word \"!\")+\nword ::= [a-z]{3,4} | [0-9] word",
      "root ::= (\"!\" word [a-z]{1,2} \"!\")+\nword ::= [a-z]{1,2} | [0-9] word",
      // The longer the text, the farther the end.
      "root ::= \"!\" x\nx ::= [a-z] x \"!\" | \"9\"",
      "root ::= \"!\" x\nx ::= [a-z] x \"!!\" | \"9\"",
      "root ::= \"!\" (\"n\" | \"z\" x) x\nx ::= [a-z] x \"!\" | \"9\"",
  };
  const auto vocabulary = words();
  for (const char* source : sources) {
    const auto grammar = Grammar::from_gbnf(source).value()->over(vocabulary).value();
    for (const char* text : {"", "!", "!n", "!nz", "!9", "!9n", "!n9", "!n!", "!z!!", "!nzn"}) {
      compare(grammar, text);
      if (testing::Test::HasFatalFailure()) FAIL() << source;
    }
  }
}

}  // namespace
}  // namespace gen::grammar

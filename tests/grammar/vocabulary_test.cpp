// SPDX-License-Identifier: Apache-2.0
// The trie holds every token's bytes once, in order; names and ends are found.
#include "grammar/mask/vocabulary.h"

#include <gtest/gtest.h>

#include <string>

#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

TEST(Vocabulary, TrieSpellsEveryToken) {
  const std::vector<std::string> texts = {"b", "ab", "a", "", "abc", "ab", "\xFF\xFE", "ba", "ab"};
  const auto made = test::vocabulary(texts, 1);
  ASSERT_EQ(made->size(), 11);
  EXPECT_EQ(made->words(), 1U);
  EXPECT_EQ(made->longest(), 3U);
  std::vector<int> seen(texts.size(), 0);
  std::string path;
  const auto trie = made->trie();
  for (uint32_t i = 1; i < trie.size(); ++i) {
    path.resize(trie[i].depth - 1U);
    path.push_back(static_cast<char>(trie[i].byte));
    EXPECT_GT(trie[i].skip, i);
    for (uint32_t k = i + 1; k < trie[i].skip; ++k) EXPECT_GT(trie[k].depth, trie[i].depth);
    if (trie[i].skip < trie.size()) {
      EXPECT_LE(trie[trie[i].skip].depth, trie[i].depth);
    }
    for (int32_t token = trie[i].token; token >= 0; token = made->twin(token)) {
      EXPECT_EQ(texts[static_cast<size_t>(token)], path);
      ++seen[static_cast<size_t>(token)];
    }
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 1, 1, 0, 1, 1, 1, 1, 1}));
}

TEST(Vocabulary, FindsNamesAndTexts) {
  const auto made = test::vocabulary({"a", "<a>", "<0>x"}, 2);
  EXPECT_EQ(made->find("<1>"), 4);
  EXPECT_EQ(made->find("</s>"), 5);
  EXPECT_EQ(made->find("<a>"), 1);
  EXPECT_EQ(made->find("<2>"), -1);
  EXPECT_EQ(made->find("<0>x"), 2);
  EXPECT_EQ(made->find("<0"), -1);
  EXPECT_TRUE(made->is_end(5));
  EXPECT_FALSE(made->is_end(4));
  EXPECT_TRUE(made->bytes(5).empty());
}

TEST(Vocabulary, RefusesEndsOutsideAndGiants) {
  const int32_t outside = 1;
  EXPECT_EQ(Vocabulary::create({{"a", ""}}, {&outside, 1}).status().code(), Code::kOutOfRange);
  const std::string giant(40'000, 'x');
  EXPECT_EQ(Vocabulary::create({{giant, ""}}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Vocabulary::create({}, {}).value()->words(), 0U);
}

}  // namespace
}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// WordCache copies the ids of a word that came before and takes no other word for it.
#include "tokenizer/word_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace gen::tokenizer {
namespace {

TEST(WordCache, ShortTextsHaveNone) {
  WordCache cache(100);
  EXPECT_EQ(cache.slot_of("word"), nullptr);
  std::vector<int32_t> out;
  EXPECT_FALSE(WordCache::copy(nullptr, "word", &out));
  WordCache::store(nullptr, "word", 0, out);
}

TEST(WordCache, CopiesOnlyTheSameWord) {
  std::mt19937 random(3);
  std::map<std::string, std::vector<int32_t>> ids_of;  // owns the words
  WordCache cache(1024);
  std::vector<int32_t> out;
  int copied = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text(1 + random() % 20, 'x');
    text.back() = static_cast<char>('a' + random() % 12);
    const auto [entry, fresh] = ids_of.try_emplace(text);
    if (fresh) entry->second.assign(1 + random() % 3, static_cast<int32_t>(ids_of.size()));
    WordCache::Slot* slot = cache.slot_of(entry->first);
    const size_t first = out.size();
    if (WordCache::copy(slot, text, &out)) {
      ++copied;
    } else {
      out.insert(out.end(), entry->second.begin(), entry->second.end());
      WordCache::store(slot, entry->first, first, out);
    }
    const std::vector<int32_t> got(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
    ASSERT_EQ(got, entry->second);
  }
  EXPECT_GT(copied, 100);
}

}  // namespace
}  // namespace gen::tokenizer

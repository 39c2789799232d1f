// SPDX-License-Identifier: Apache-2.0
// MergeTable and WordMerger against the definition of byte-pair encoding, written down as slowly as
// it reads, on words short and long enough for both ways of merging.
#include "tokenizer/bpe_merges.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

namespace gen::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

Ids merge_word(const MergeTable& table, const Ids& word) {
  WordMerger merger(table);
  Ids out;
  merger.begin();
  for (const int32_t id : word) merger.push(id);
  merger.finish(&out);
  return out;
}

Ids merge_slowly(const std::map<std::pair<int32_t, int32_t>, Merge>& merges, Ids word) {
  for (;;) {
    uint32_t best_rank = MergeTable::kNoRank;
    size_t best = 0;
    int32_t token = 0;
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = merges.find({word[i], word[i + 1]});
      if (found == merges.end() || found->second.rank >= best_rank) continue;
      best_rank = found->second.rank;
      best = i;
      token = found->second.token;
    }
    if (best_rank == MergeTable::kNoRank) return word;
    word[best] = token;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(MergeTable, FindsWhatWasAddedFirst) {
  MergeTable table(3);
  table.add(1, 2, {0, 10});
  table.add(2, 1, {1, 11});
  table.add(1, 2, {2, 12});
  EXPECT_EQ(table.find(1, 2).token, 10);
  EXPECT_EQ(table.find(2, 1).token, 11);
  EXPECT_EQ(table.find(1, 1).rank, MergeTable::kNoRank);
  EXPECT_EQ(MergeTable().find(0, 0).rank, MergeTable::kNoRank);
}

TEST(WordMerger, LowestRankFirstThenLeftmost) {
  MergeTable table(3);
  table.add(1, 1, {1, 2});  // aa
  table.add(1, 3, {0, 4});  // ab
  table.add(2, 4, {2, 5});  // aaab
  EXPECT_EQ(merge_word(table, {1, 1, 1, 3}), (Ids{5}));
  EXPECT_EQ(merge_word(table, {1, 1, 1}), (Ids{2, 1}));
  EXPECT_EQ(merge_word(table, {1, 1, 3}), (Ids{1, 4}));
  EXPECT_EQ(merge_word(table, {}), Ids{});
  EXPECT_EQ(merge_word(table, {3}), Ids{3});
}

TEST(WordMerger, EqualsTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    std::map<std::pair<int32_t, int32_t>, Merge> merges;
    const auto count = static_cast<uint32_t>(1 + random() % 20);
    MergeTable table(count);
    for (uint32_t rank = 0; rank < count; ++rank) {
      const auto known = static_cast<uint32_t>(3 + rank);
      const auto left = static_cast<int32_t>(random() % known);
      const auto right = static_cast<int32_t>(random() % known);
      const Merge merge{rank, static_cast<int32_t>(3 + rank)};
      merges.emplace(std::pair{left, right}, merge);
      table.add(left, right, merge);
    }
    Ids word;
    for (uint32_t i = 0; i < random() % 100; ++i)
      word.push_back(static_cast<int32_t>(random() % 3));
    EXPECT_EQ(merge_word(table, word), merge_slowly(merges, word));
  }
}

TEST(WordMerger, LongWordsTakeAboutLinearTime) {
  MergeTable table(12);
  for (int32_t i = 0; i < 12; ++i) table.add(i, i, {static_cast<uint32_t>(i), i + 1});
  const Ids word(1 << 20, 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(merge_word(table, word), Ids(256, 12));
  // Half a second at most on any machine; a quadratic method takes an hour.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace gen::tokenizer

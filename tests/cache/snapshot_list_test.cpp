// SPDX-License-Identifier: Apache-2.0
// Which snapshots stay when their memory is limited: never more than the budget, the newest and the
// newest borders in any case, and of the older ones fewer.
#include "cache/state/snapshot_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace gen::cache {
namespace {

struct Point final : StateSnapshot {
  Point(int32_t at, size_t size, const void* of) : length_(at), bytes_(size), memory_(of) {}
  [[nodiscard]] int32_t length() const noexcept override { return length_; }
  [[nodiscard]] size_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] const void* memory() const noexcept override {
    return memory_ != nullptr ? memory_ : this;
  }

 private:
  int32_t length_;
  size_t bytes_;
  const void* memory_;
};

constexpr auto kPlain = SnapshotPlace::kPlain;
constexpr auto kBorder = SnapshotPlace::kBorder;

void add(SnapshotList* list, int32_t at, SnapshotPlace place = kPlain, size_t bytes = 1,
         const void* memory = nullptr) {
  list->reserve(1);
  list->add(std::make_shared<Point>(at, bytes, memory), place);
}

std::vector<int32_t> lengths(const SnapshotList& list) {
  std::vector<int32_t> all;
  for (const auto& entry : list.entries()) all.push_back(entry.snapshot->length());
  return all;
}

using Lengths = std::vector<int32_t>;

TEST(SnapshotList, FindsTheNearest) {
  SnapshotList list;
  EXPECT_EQ(list.at_most(9), nullptr);
  for (const int32_t at : {3, 5, 8}) add(&list, at);
  EXPECT_EQ(list.at_most(2), nullptr);
  EXPECT_EQ(list.at_most(7)->length(), 5);
  EXPECT_EQ(list.at_most(8)->length(), 8);
  EXPECT_EQ(list.at(5)->length(), 5);
  EXPECT_EQ(list.at(6), nullptr);
  add(&list, 8, kBorder);  // the one that is there, which is a border now
  EXPECT_EQ(list.entries().back().place, kBorder);
  list.cut(7);
  EXPECT_EQ(lengths(list), (Lengths{3, 5}));
  EXPECT_EQ(list.bytes(), 2U);

  SnapshotList later;
  add(&later, 4);
  later.insert(list);
  EXPECT_EQ(lengths(later), (Lengths{3, 4}));
}

TEST(SnapshotList, SharedMemoryCountsOnceAndGoesAtOnce) {
  SnapshotList list;
  const int pieces[2] = {};
  list.set_budget(50);
  for (const int32_t at : {10, 11, 12}) add(&list, at, kPlain, 20, &pieces[0]);
  EXPECT_EQ(list.bytes(), 20U);
  for (const int32_t at : {20, 22}) add(&list, at, kBorder, 20, &pieces[1]);
  EXPECT_EQ(list.bytes(), 40U);
  add(&list, 30, kPlain, 20);
  EXPECT_EQ(lengths(list), (Lengths{20, 22, 30}));
  EXPECT_EQ(list.bytes(), 40U);
  list.set_budget(39);
  EXPECT_EQ(lengths(list), (Lengths{20, 22}));
  list.set_budget(19);
  EXPECT_TRUE(list.entries().empty());
}

TEST(SnapshotList, TheNewestAndTheNewestBordersGoLast) {
  SnapshotList list;
  list.set_budget(3);
  add(&list, 100, kBorder);
  add(&list, 140, kBorder);
  for (int32_t at = 200; at <= 2000; at += 100) {
    add(&list, at);
    if (at > 200) {
      EXPECT_EQ(lengths(list), (Lengths{100, 140, at}));
    }
  }
  add(&list, 2010, kBorder);
  EXPECT_EQ(lengths(list)[2], 2010);
  EXPECT_EQ(list.entries().size(), 3U);
  list.set_budget(1);
  EXPECT_EQ(lengths(list), (Lengths{2010}));
}

// What a cut costs, in rows to run again, grows in proportion to how far it goes back: where the
// same number at equal distances would cost more and more near the end.
TEST(SnapshotList, OldOnesThinOutExponentially) {
  constexpr int32_t kEnd = 100000;
  constexpr int32_t kEvery = 500;
  for (const size_t budget : {6U, 8U, 10U, 20U}) {
    SnapshotList list;
    list.set_budget(budget);
    for (int32_t at = kEvery; at <= kEnd; at += kEvery) {
      add(&list, at);
      ASSERT_LE(list.bytes(), budget);
    }
    EXPECT_EQ(list.entries().size(), budget);
    for (int32_t cut = 1; cut <= kEnd; ++cut) {
      const auto nearest = list.at_most(cut);
      const int32_t rows = cut - (nearest != nullptr ? nearest->length() : 0);
      ASSERT_LE(rows, 4 * (kEnd - cut + kEvery)) << budget << " " << cut;
    }
  }
}

// Of a border and another place that are about as old the other goes.
TEST(SnapshotList, BordersOutliveOthers) {
  SnapshotList list;
  list.set_budget(8);
  for (int32_t at = 100; at <= 4000; at += 100) add(&list, at, at % 500 == 0 ? kBorder : kPlain);
  size_t borders = 0;
  for (const auto& entry : list.entries()) borders += entry.place == kBorder ? 1 : 0;
  EXPECT_GE(borders, 6U);
  EXPECT_EQ(list.entries()[7].snapshot->length(), 4000);
}

TEST(SnapshotList, NeverMoreThanTheBudget) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    SnapshotList list;
    const size_t budget = random() % 40;
    list.set_budget(budget);
    const int pieces[8] = {};
    int32_t at = 0;
    for (int i = 0; i < 60; ++i) {
      if (random() % 10 == 0) {
        at = static_cast<int32_t>(random() % static_cast<uint32_t>(at + 1));
        list.cut(at);
      }
      at += static_cast<int32_t>(1 + random() % 9);
      const void* const memory = random() % 2 == 0 ? &pieces[i / 8] : nullptr;
      add(&list, at, random() % 3 == 0 ? kBorder : kPlain, 3, memory);
      std::set<const void*> held;
      for (const auto& entry : list.entries()) held.insert(entry.snapshot->memory());
      ASSERT_LE(3 * held.size(), budget);
      ASSERT_GE(list.bytes(), 3 * held.size());
      const Lengths kept = lengths(list);
      ASSERT_TRUE(std::is_sorted(kept.begin(), kept.end()));
      if (budget >= 9) {
        ASSERT_EQ(kept.back(), at);
      }
    }
  }
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Proves the bookkeeping of cells against sets and lists that are searched from end to end: which
// cells are free, who holds them, what a plan takes, and the rules of causal_cells.h that lanes use
// beyond those of stores (sequence_conformance_test.cpp).
#include "cache/batch/cell_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "cache/batch/causal_cells.h"

namespace gen::cache {
namespace {

TEST(CellSet, FindsItsMembers) {
  std::mt19937 random(1);
  for (const int32_t size : {1, 2, 63, 64, 65, 4095, 4096, 4097, 300000}) {
    CellSet cells(size);
    std::set<int32_t> want;
    for (int32_t i = 0; i < size; ++i) want.insert(want.end(), i);
    EXPECT_EQ(cells.next(0), 0);
    EXPECT_EQ(cells.next(size), -1);
    EXPECT_EQ(cells.last_missing(size), -1);
    const auto draw = [&] { return static_cast<int32_t>(random() % static_cast<uint32_t>(size)); };
    // Down to a few members, and up again.
    for (int32_t i = 0; i < 2000; ++i) {
      const int32_t cell = draw();
      if (i % 3 == 2) {
        cells.add(cell);
        want.insert(cell);
      } else {
        const int32_t end = i % 100 == 0 ? std::min(size, cell + size / 2) : cell + 1;
        for (int32_t c = cell; c < end; ++c) cells.remove(c);
        want.erase(want.lower_bound(cell), want.lower_bound(end));
      }
      ASSERT_EQ(cells.count(), static_cast<int32_t>(want.size()));
      const int32_t from = draw();
      const auto next = want.lower_bound(from);
      ASSERT_EQ(cells.next(from), next == want.end() ? -1 : *next);
      ASSERT_EQ(cells.has(from), want.count(from) != 0);
      int32_t missing = from - 1;
      while (missing >= 0 && want.count(missing) != 0) --missing;
      ASSERT_EQ(cells.last_missing(from), missing);
    }
  }
}

/// Lists as plain as can be.
struct Lists {
  std::map<int32_t, std::multimap<int32_t, int32_t>> of;  // position to cell, by sequence

  [[nodiscard]] int32_t references(int32_t cell) const {
    int32_t n = 0;
    for (const auto& list : of) {
      n += static_cast<int32_t>(std::count_if(list.second.begin(), list.second.end(),
                                              [&](const auto& e) { return e.second == cell; }));
    }
    return n;
  }
};

TEST(CellMap, AgreesWithLists) {
  constexpr int32_t kCells = 150;
  constexpr int32_t kSlots = 5;
  std::mt19937 random(2);
  const auto below = [&](size_t n) { return static_cast<int32_t>(random() % n); };
  CellMap map(kCells, kSlots);
  Lists want;
  for (int32_t step = 0; step < 20000; ++step) {
    SCOPED_TRACE(step);
    const int32_t id = below(9) * 5;
    int32_t slot = map.find(id);
    ASSERT_EQ(slot >= 0, want.of.count(id) != 0);
    if (slot < 0) {
      if (map.next_slot(0) < 0) continue;
      const int32_t next = map.next_slot(0);
      slot = map.open(id);
      ASSERT_EQ(slot, next);
      want.of[id] = {};
    }
    auto& list = want.of[id];
    const int32_t pick = below(12);
    if (pick < 6) {
      const int32_t cell = pick == 0 ? below(kCells) : map.free_cells().next(below(kCells));
      if (cell < 0 ||
          std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.second == cell; })) {
        continue;
      }
      const int32_t position = pick < 4 && !list.empty() ? list.rbegin()->first + 1 : below(60);
      map.reserve(slot, 1);
      map.insert(slot, position, cell);
      list.emplace(position, cell);
    } else if (pick < 8) {
      const int32_t from = pick == 6 ? 0 : below(list.size() + 1);
      const int32_t to = std::min(from + below(6), static_cast<int32_t>(list.size()));
      map.erase(slot, from, to);
      list.erase(std::next(list.begin(), from), std::next(list.begin(), to));
    } else if (pick == 8) {
      map.close(slot);
      want.of.erase(id);
    } else if (pick == 9 && !list.empty()) {
      const int32_t from = below(list.size());
      map.shift(slot, from, 3);
      std::multimap<int32_t, int32_t> moved;
      int32_t i = 0;
      for (const auto& [position, cell] : list)
        moved.emplace(position + (i++ < from ? 0 : 3), cell);
      list = moved;
    } else if (pick == 10 && !list.empty() && map.free_cells().count() > 0) {
      const int32_t index = below(list.size());
      const int32_t cell = map.free_cells().next(0);
      map.replace(slot, index, cell);
      std::next(list.begin(), index)->second = cell;
    } else if (pick == 11) {
      const int32_t to = map.free_cells().next(0);
      const int32_t from = map.free_cells().last_missing(kCells);
      if (to < 0 || from <= to) continue;
      const CellMove moves[] = {{from, to}};
      map.move(moves);
      for (auto& one : want.of) {
        for (auto& entry : one.second) {
          if (entry.second == from) entry.second = to;
        }
      }
    }
    for (const auto& [number, entries] : want.of) {
      const int32_t own = map.find(number);
      ASSERT_EQ(map.size(own), static_cast<int32_t>(entries.size()));
      int32_t i = 0;
      for (const auto& [position, cell] : entries) {
        ASSERT_EQ(map.positions(own)[static_cast<size_t>(i)], position);
        ASSERT_EQ(map.cells(own)[static_cast<size_t>(i)], cell);
        ++i;
      }
    }
    for (int32_t cell = step % 10; cell < kCells; cell += 10) {
      ASSERT_EQ(map.references(cell), want.references(cell));
      ASSERT_EQ(map.free_cells().has(cell), map.references(cell) == 0);
    }
  }
}

TEST(CausalCells, PlansThatAreDroppedLeaveNothing) {
  auto cells = CausalCells::create({3, 3, 0}, {2, 20, 4, 1}).value();
  EXPECT_EQ(cells.n_cells(), 2 * 4 + 4);  // the memory holds one more than the window
  const int32_t a = cells.open(0);
  const int32_t b = cells.open(1);
  ASSERT_TRUE(cells.plan_more(a, 0, 4).ok());
  EXPECT_EQ(cells.map().free_cells().count(), 8);
  ASSERT_TRUE(cells.plan_more(b, 0, 3).ok());
  cells.drop_planned(a);
  EXPECT_EQ(cells.map().free_cells().count(), 9);
  EXPECT_EQ(cells.map().size(a), 0);
  EXPECT_EQ(cells.plan_more(a, 0, 5).code(), Code::kInvalidArgument);
  EXPECT_EQ(cells.plan_more(a, 0, -1).code(), Code::kInvalidArgument);
  cells.commit_planned(b, 0);
  EXPECT_EQ(cells.plan_more(b, 2, 1).code(), Code::kInvalidArgument);  // positions rise
  ASSERT_TRUE(cells.plan_more(b, 3, 1).ok());
  EXPECT_EQ(cells.map().cells(b)[3], cells.map().cells(b)[2] + 1);  // in one run
}

TEST(CausalCells, LanesBeginTheirRunsWithTiles) {
  auto cells = CausalCells::create({}, {3, 64, 40, 1}).value();
  const int32_t a = cells.open(0);
  const int32_t b = cells.open(1);
  for (int32_t p = 0; p < 40; ++p) {  // by turns
    for (const int32_t slot : {a, b}) {
      ASSERT_TRUE(cells.plan_more(slot, p, 1).ok());
      cells.commit_planned(slot, p);
    }
  }
  for (const int32_t slot : {a, b}) {
    for (size_t p = 0; p < 40; ++p) {
      EXPECT_EQ(cells.map().cells(slot)[p] % 16, static_cast<int32_t>(p % 16)) << p;
    }
  }
  // When no tile is empty, what is left is taken.
  const int32_t c = cells.open(2);
  ASSERT_TRUE(cells.plan_more(c, 0, 40).ok());
  cells.commit_planned(c, 0);
  ASSERT_TRUE(cells.plan_more(c, 40, 40).ok());
  cells.commit_planned(c, 40);
  EXPECT_EQ(cells.map().free_cells().count(), 3 * 64 - 160);
  const Status full = cells.plan_more(a, 40, 33);
  EXPECT_EQ(full.code(), Code::kCacheFull);
  EXPECT_EQ(cells.map().free_cells().count(), 32);
  cells.set_quota(50);
  EXPECT_EQ(cells.plan_more(a, 40, 11).code(), Code::kCacheFull);
  EXPECT_TRUE(cells.plan_more(a, 40, 10).ok());
}

TEST(CausalCells, WindowsAreTrimmedWhenCellsAreShort) {
  auto cells = CausalCells::create({4, 4, 0}, {1, 100, 6, 1}).value();
  ASSERT_EQ(cells.n_cells(), 10);
  const int32_t a = cells.open(0);
  for (int32_t p = 0; p < 60; p += 6) {
    ASSERT_TRUE(cells.plan_more(a, p, 6).ok()) << p;
    // The first row of the plan still sees its window.
    EXPECT_LE(cells.map().positions(a).empty() ? 0 : cells.map().positions(a)[0],
              std::max(0, p - 4));
    cells.commit_planned(a, p);
  }
  EXPECT_TRUE(cells.holds_past_of(a, 60));
  EXPECT_TRUE(cells.holds_past_of(a, 54));
  EXPECT_FALSE(cells.holds_past_of(a, 53));
  EXPECT_TRUE(cells.holds_past_of(a, 0));
  cells.cut(a, 54);
  ASSERT_TRUE(cells.plan_more(a, 54, 6).ok());
}

TEST(CausalCells, LimitsAreChecked) {
  EXPECT_EQ(CausalCells::create({-1, 0, 0}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(CausalCells::create({0, 0, -1}, {}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(CausalCells::create({5, 3, 0}, {1, 10, 1, 1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(CausalCells::create({}, {1, 1, 1, 0}).status().code(), Code::kInvalidArgument);
  // The table of section 17.1 of the specification: cells, then memory.
  const auto sizes = [](CausalRules rules, CellLimits limits) {
    auto cells = CausalCells::create(rules, limits).value();
    return std::pair(cells.n_cells(), cells.rules().memory);
  };
  EXPECT_EQ(sizes({}, {3, 10, 4, 1}), std::pair(30, kNoLimit));
  EXPECT_EQ(sizes({4, 0, 0}, {1, 10, 3, 1}), std::pair(7, 4));
  EXPECT_EQ(sizes({4, 0, 0}, {2, 10, 3, 1}), std::pair(13, 5));
  EXPECT_EQ(sizes({4, 9, 0}, {2, 10, 3, 8}), std::pair(24, 9));
  EXPECT_EQ(sizes({4, 10, 0}, {2, 10, 3, 8}), std::pair(24, kNoLimit));
  EXPECT_EQ(sizes({9, 9, 0}, {2, 10, 3, 1}), std::pair(20, kNoLimit));
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// What lanes of one store promise beyond the bits of attention (model/lanes_test.cpp): what is
// refused and leaves nothing behind, how far back they can go, that moves keep every row, and that
// lanes may be driven by different threads.
#include "support/host_view.h"
#include "cache/sequence/lane_store.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "engine/kv/codec.h"
#include "support/counting_allocator.h"
#include "support/counting_new.h"

namespace gen::cache {
namespace {

// Two groups: one that sees four positions, one that sees all.
const std::vector<LayerShape> kShapes = {
    {2, 16, 8, 4, engine::RopeKind::kNone, 0},
    {1, 8, 8, 0, engine::RopeKind::kNone, 0},
    {2, 16, 8, 4, engine::RopeKind::kNone, 0},
};

/// What a sequence has at a position: a number of its own for each layer, head and element.
std::vector<float> row_of(int32_t key, int32_t position, int32_t layer, int32_t n) {
  std::vector<float> row;
  for (int32_t i = 0; i < n; ++i) {
    row.push_back(static_cast<float>((key * 31 + position * 7 + layer * 3 + i) % 257) - 128);
  }
  return row;
}

void append(KvCache& lane, int32_t key, int32_t n) {
  auto plan = lane.plan(n);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  for (int32_t layer = 0; layer < 3; ++layer) {
    const engine::KvView view = host_view(lane, layer, *plan).value();
    for (int32_t p = plan->start; p < plan->start + n; ++p) {
      engine::kv_put(view.k, p, view.kv_heads,
                     row_of(key, p, layer, view.kv_heads * view.k.head_dim).data());
      engine::kv_put(view.v, p, view.kv_heads,
                     row_of(key, p, layer, view.kv_heads * view.v.head_dim).data());
    }
  }
  lane.commit(*plan);
}

/// That at least those rows are held that the next position sees; and the others that are held,
/// which other lanes may take at any time.
void expect_rows(KvCache& lane, int32_t key, bool others = true) {
  const CachePlan plan = {lane.length(), 0};
  for (int32_t layer = 0; layer < 3; ++layer) {
    const engine::KvView view = host_view(lane, layer, plan).value();
    ASSERT_EQ(view.entries, lane.length());
    const int32_t needed = layer == 1 ? 0 : std::max(0, lane.length() - 3);
    ASSERT_LE(view.k.first_cell, needed);
    for (int32_t p = others ? view.k.first_cell : needed; p < view.entries; ++p) {
      for (const engine::KvSide* side : {&view.k, &view.v}) {
        const std::vector<float> want = row_of(key, p, layer, view.kv_heads * side->head_dim);
        std::vector<float> got(static_cast<size_t>(side->head_dim));
        for (int32_t head = 0; head < view.kv_heads; ++head) {
          engine::kv_get(*side, p, head, got.data());
          ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin() + head * side->head_dim))
              << "position " << p << " of layer " << layer;
        }
      }
    }
  }
}

class LaneStoreTest : public ::testing::Test {
 protected:
  void make(const LaneLimits& limits) {
    auto made = LaneStore::create("fp32", kShapes, limits, allocator_);
    ASSERT_TRUE(made.ok()) << made.status().message();
    store_ = std::move(made).value();
  }
  std::unique_ptr<KvCache> lane(int32_t sequence) {
    auto made = store_->lane(sequence);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }

  test::CountingAllocator allocator_;
  std::shared_ptr<LaneStore> store_;
};

TEST_F(LaneStoreTest, WrongArgumentsAreRefused) {
  const auto code = [&](std::string_view format, const LaneLimits& limits) {
    return LaneStore::create(format, kShapes, limits, allocator_).status().code();
  };
  EXPECT_EQ(code("fp33", {2, 10, 4, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", {0, 10, 4, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", {2, 0, 4, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", {2, 10, 0, 0, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", {2, 10, 4, -1, 0}), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", {2, 10, 4, 0, -1}), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", {2, INT32_MAX, 4, 0, 0}), Code::kInvalidArgument);
  for (size_t fail = 0; fail < 2; ++fail) {  // a buffer for each group
    allocator_.fail_at = allocator_.calls + fail;
    EXPECT_EQ(code("fp32", {2, 10, 4, 0, 0}), Code::kOutOfMemory);
  }
  EXPECT_EQ(allocator_.live_bytes, 0u);

  make({2, 10, 4, 0, 0});
  EXPECT_EQ(store_->memory().resident, allocator_.live_bytes);
  EXPECT_EQ(store_->lane(-1).status().code(), Code::kInvalidArgument);
  auto a = lane(5);
  EXPECT_EQ(store_->lane(5).status().code(), Code::kState);
  auto b = lane(7);
  EXPECT_EQ(store_->lane(8).status().code(), Code::kCacheFull);
  EXPECT_EQ(a->fork().status().code(), Code::kCacheFull);
  b.reset();
  b = lane(8);
  EXPECT_EQ(store_->copy_prefix(5, 7, 0).code(), Code::kState);
  EXPECT_EQ(store_->copy_prefix(5, 8, 1).code(), Code::kOutOfRange);
  EXPECT_EQ(store_->copy_prefix(5, 8, -1).code(), Code::kOutOfRange);
  EXPECT_EQ(store_->compact(-1).status().code(), Code::kInvalidArgument);
  // A lane keeps its store.
  store_.reset();
  append(*a, 1, 4);
  expect_rows(*a, 1);
}

TEST_F(LaneStoreTest, PlansThatFailOrAreDroppedLeaveNothing) {
  make({2, 8, 6, 0, 0});
  auto a = lane(0);
  auto b = lane(1);
  append(*a, 1, 6);
  EXPECT_EQ(a->plan(3).status().code(), Code::kCacheFull);  // its capacity
  EXPECT_EQ(a->plan(-1).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(a->plan(2).ok());
  EXPECT_TRUE(a->plan(1).ok());  // instead of the other
  EXPECT_EQ(store_->free_cells(0), 2 * 4 + 6 - 7);
  EXPECT_EQ(store_->free_cells(1), 16 - 7);
  EXPECT_TRUE(a->plan(0).ok());
  EXPECT_EQ(store_->free_cells(1), 16 - 6);
  append(*b, 2, 6);
  // The group with a window is full, and trims what nobody sees; the other has room.
  append(*b, 2, 2);
  append(*a, 1, 2);
  EXPECT_EQ(store_->free_cells(1), 0);
  expect_rows(*a, 1);
  expect_rows(*b, 2);
  EXPECT_EQ(store_->memory().payload,
            static_cast<size_t>(store_->cells(0) - store_->free_cells(0)) * 2 * 4 * (32 + 16) +
                size_t{16} * 4 * 16);
}

TEST_F(LaneStoreTest, EveryAllocationMayFail) {
  make({3, 64, 16, 0, 0});
  auto a = lane(0);
  const auto survives = [&](auto call) {
    for (size_t fail = 0;; ++fail) {
      const int32_t free[] = {store_->free_cells(0), store_->free_cells(1)};
      const int32_t length = a->length();
      test::fail_new_at = test::news + fail;
      bool done = true;
      try {
        call();
      } catch (const std::bad_alloc&) {
        done = false;
      }
      test::fail_new_at = ~size_t{0};
      if (done) return fail;
      EXPECT_EQ(store_->free_cells(0), free[0]);
      EXPECT_EQ(store_->free_cells(1), free[1]);
      EXPECT_EQ(a->length(), length);
    }
  };
  EXPECT_GE(survives([&] { ASSERT_TRUE(a->plan(5).ok()); }), 2u);  // lists of two groups
  append(*a, 1, 5);
  std::unique_ptr<KvCache> fork;
  EXPECT_GE(survives([&] { fork = a->fork().value(); }), 3u);
  expect_rows(*fork, 1);
  fork.reset();
  EXPECT_GE(survives([&] { ASSERT_TRUE(store_->compact(9).ok()); }), 0u);
  expect_rows(*a, 1);
}

TEST_F(LaneStoreTest, LanesGoBackAsFarAsTheirWindowsAllow) {
  make({1, 100, 4, 5, 0});
  auto a = lane(0);
  for (int i = 0; i < 10; ++i) append(*a, 1, 4);
  // Window 4 sees 3 before; 5 more are kept for certain.
  EXPECT_TRUE(a->truncate(36).ok());
  EXPECT_TRUE(a->truncate(35).ok());
  expect_rows(*a, 1);
  const Status gone = a->truncate(20);
  EXPECT_EQ(gone.code(), Code::kUnsupported);
  EXPECT_EQ(a->length(), 35);
  EXPECT_TRUE(a->truncate(40).ok());
  EXPECT_EQ(a->length(), 35);
  append(*a, 1, 3);
  expect_rows(*a, 1);
  EXPECT_TRUE(a->truncate(0).ok());
  EXPECT_EQ(store_->free_cells(1), store_->cells(1));
  append(*a, 2, 4);
  expect_rows(*a, 2);
  EXPECT_TRUE(a->truncate(1).ok());  // of the new past nothing is gone
}

TEST_F(LaneStoreTest, ForksShareAndMovesKeepEveryRow) {
  make({4, 40, 16, 0, 0});
  auto a = lane(0);
  auto b = lane(1);
  for (int i = 0; i < 3; ++i) {
    append(*a, 1, 7);
    append(*b, 2, 5);
  }
  const int32_t before = store_->free_cells(1);
  auto fork = a->fork();
  ASSERT_TRUE(fork.ok()) << fork.status().message();
  EXPECT_EQ(store_->free_cells(1), before);
  expect_rows(**fork, 1);
  auto c = lane(9);
  ASSERT_TRUE(store_->copy_prefix(1, 9, 15).ok());
  ASSERT_TRUE(store_->copy_prefix(9, 9, 13).ok() ||
              store_->copy_prefix(9, 9, 15).ok());  // the window may have gone
  a.reset();
  append(**fork, 1, 3);
  append(*b, 2, 1);
  int32_t moved = 0;
  for (int32_t now = 1; now > 0; moved += now) now = store_->compact(5).value();
  EXPECT_GT(moved, 0);
  expect_rows(**fork, 1);
  expect_rows(*b, 2);
  expect_rows(*c, 2);
  append(**fork, 1, 2);
  expect_rows(**fork, 1);
  EXPECT_EQ(store_->memory().resident, allocator_.live_bytes);
}

TEST_F(LaneStoreTest, QuotasHoldALaneBack) {
  make({2, 20, 8, 0, 10});
  auto a = lane(0);
  append(*a, 1, 8);
  EXPECT_EQ(a->plan(3).status().code(), Code::kCacheFull);
  append(*a, 1, 2);
  EXPECT_EQ(a->plan(1).status().code(), Code::kCacheFull);
  auto b = lane(1);
  append(*b, 2, 8);
}

TEST_F(LaneStoreTest, LanesMayBeDrivenByThreads) {
  make({4, 60, 16, 0, 0});
  std::vector<std::thread> threads;
  for (int32_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int32_t round = 0; round < 10; ++round) {
        auto own = lane(10 * t);
        for (int32_t i = 0; i < 12; ++i) append(*own, t, 1 + i % 4);
        EXPECT_TRUE(own->truncate(own->length()).ok());
        expect_rows(*own, t, false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->free_cells(0), store_->cells(0));
  EXPECT_EQ(store_->free_cells(1), store_->cells(1));
}

}  // namespace
}  // namespace gen::cache

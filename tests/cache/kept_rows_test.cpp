// SPDX-License-Identifier: Apache-2.0
// Proves that commit keeps what it is told of a plan: its first rows with every kind of cache, and
// with those that keep paths any of them, as if nothing else had come; over random programs of
// plans, commits, dropped plans, cuts and forks. What is still to move is in no block that others
// may share. Whatever operation of the memory is refused, the cache is as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/prefix/block_pool.h"
#include "cache/sequence/compressed_cache.h"
#include "engine/memory/host_memory.h"
#include "support/host_view.h"
#include "support/refusing_memory.h"
#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/split_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/kv/codec.h"
#include "support/kv_side.h"

namespace gen::cache {
namespace {

constexpr int32_t kCapacity = 200;
const std::vector<LayerShape> kShapes = {
    {2, 32, 16, 0, engine::RopeKind::kNone, 0},
    {1, 16, 32, 0, engine::RopeKind::kNone, 0},
};

/// What row number `row` brings to a layer's side.
std::vector<float> content(int32_t row, int32_t layer, bool keys, size_t n) {
  std::minstd_rand random(static_cast<uint32_t>(row * 8 + layer * 2 + (keys ? 1 : 0) + 1));
  std::vector<float> made(n);
  for (float& x : made) x = static_cast<float>(random() % 4096) / 2048.0F - 1.0F;
  return made;
}

void write(KvCache& cache, const CachePlan& plan, const std::vector<int32_t>& rows) {
  for (int32_t layer = 0; layer < static_cast<int32_t>(kShapes.size()); ++layer) {
    const engine::KvView view = host_view(cache, layer, plan).value();
    for (int32_t i = 0; i < plan.count; ++i) {
      for (const engine::KvSide* side : {&view.k, &view.v}) {
        const auto n = static_cast<size_t>(view.kv_heads * side->head_dim);
        const auto row = content(rows[static_cast<size_t>(i)], layer, side == &view.k, n);
        engine::kv_put(*side, plan.start + i, view.kv_heads, row.data());
      }
    }
  }
}

void expect_entry(const engine::KvSide& side, int32_t heads, int32_t entry,
                  const std::vector<float>& row) {
  test::KvMemory alone(side.format, side.order, heads, side.head_dim, 1);
  engine::kv_put(alone.side, 0, heads, row.data());
  std::vector<float> want(static_cast<size_t>(side.head_dim));
  std::vector<float> got(want.size());
  for (int32_t head = 0; head < heads; ++head) {
    engine::kv_get(alone.side, 0, head, want.data());
    engine::kv_get(side, entry, head, got.data());
    ASSERT_EQ(got, want) << "entry " << entry << " head " << head;
  }
}

/// Entries of a cache that keeps one for each position are these rows.
void expect_rows(KvCache& cache, const std::vector<int32_t>& rows, size_t first = 0) {
  ASSERT_EQ(cache.length(), static_cast<int32_t>(rows.size()));
  const CachePlan plan = cache.plan(0).value();
  for (int32_t layer = 0; layer < static_cast<int32_t>(kShapes.size()); ++layer) {
    const engine::KvView view = host_view(cache, layer, plan).value();
    for (size_t e = first; e < rows.size(); ++e) {
      for (const engine::KvSide* side : {&view.k, &view.v}) {
        const auto n = static_cast<size_t>(view.kv_heads * side->head_dim);
        expect_entry(*side, view.kv_heads, static_cast<int32_t>(e),
                     content(rows[e], layer, side == &view.k, n));
      }
    }
  }
}

struct Kind {
  std::string name;
  std::unique_ptr<KvCache> cache;
  bool forks = false;
  std::shared_ptr<CachePool> pool = nullptr;
};

std::vector<Kind> all_kinds(engine::EngineMemory& memory = engine::system_memory()) {
  std::vector<Kind> kinds;
  for (const char* format : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    kinds.push_back({format, make_cache(format, kShapes, kCapacity, memory).value()});
    for (const int32_t block : {5, 16}) {
      auto pool = CachePool::create(format, kShapes, block, 4, memory).value();
      kinds.push_back(
          {std::string("paged ") + format, make_paged_cache(pool, kCapacity).value(), true, pool});
    }
    // Blocks in two memories, of which the one or the other may refuse.
    static engine::HostMemory other;
    for (const bool first : {true, false}) {
      engine::EngineMemory* const lie[] = {first ? &memory : &other, first ? &other : &memory};
      auto pool = CachePool::create(format, kShapes, 5, 4, lie).value();
      kinds.push_back({std::string("paged in two ") + format,
                       make_paged_cache(pool, kCapacity).value(), true, pool});
    }
    TieredCacheOptions tiers;
    tiers.format = format;
    tiers.block_size = 12;
    tiers.hot_blocks = 1;
    kinds.push_back({std::string("tiered ") + format,
                     make_tiered_cache(tiers, kShapes, kCapacity, memory).value(), true});
    std::vector<std::unique_ptr<KvCache>> halves;
    for (size_t i = 0; i < 2; ++i) {
      halves.push_back(make_cache(format, {&kShapes[i], 1}, kCapacity, memory).value());
    }
    constexpr int32_t kHalves[] = {0, 1};
    kinds.push_back({std::string("split ") + format,
                     make_split_cache(std::exchange(halves, {}), kHalves).value(), true});
    for (size_t i = 0; i < 2; ++i) {
      auto pool = CachePool::create(format, {&kShapes[i], 1}, 5, 4, memory).value();
      halves.push_back(make_paged_cache(std::move(pool), kCapacity).value());
    }
    kinds.push_back({std::string("split paged ") + format,
                     make_split_cache(std::move(halves), kHalves).value(), true});
    LaneLimits limits;
    limits.max_sequences = 4;
    limits.capacity = kCapacity;
    limits.max_batch = 32;
    auto lanes = LaneStore::create(format, kShapes, limits, memory).value();
    kinds.push_back({std::string("lane ") + format, lanes->lane(0).value()});
  }
  return kinds;
}

class Program {
 public:
  Program(Kind* kind, uint32_t seed, test::RefusingMemory* refusing = nullptr)
      : kind_(*kind), refusing_(refusing), random_(seed) {}

  void run(int32_t steps) {
    for (int32_t step = 0; step < steps; ++step) {
      switch (below(8)) {
        case 0:
          cut();
          break;
        case 1:
          if (kind_.forks) fork();
          break;
        case 2:
          expect_rows(*kind_.cache, rows_);
          break;
        default:
          append();
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    expect_rows(*kind_.cache, rows_);
  }

 private:
  int32_t below(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }

  /// The call, again and again with each of its operations refused once; sometimes it is given up
  /// meanwhile.
  template <typename Call>
  auto tried(Call call) {
    if (refusing_ == nullptr) return call();
    for (size_t at = 0;; ++at) {
      const size_t free = kind_.pool != nullptr ? kind_.pool->blocks().available() : 0;
      refusing_->refused = refusing_->operations + at;
      try {
        auto made = call();
        refusing_->refused = test::RefusingMemory::kNone;
        return made;
      } catch (const std::bad_alloc&) {
        refusing_->refused = test::RefusingMemory::kNone;
        EXPECT_EQ(kind_.cache->length(), static_cast<int32_t>(rows_.size()));
        if (kind_.pool != nullptr) {
          EXPECT_GE(kind_.pool->blocks().available(), free);
        }
        if (below(4) == 0) expect_rows(*kind_.cache, rows_);
      }
    }
  }

  void append() {
    KvCache& cache = *kind_.cache;
    const int32_t most =
        std::min({20, cache.plan_limit(), cache.capacity() - static_cast<int32_t>(rows_.size())});
    if (most == 0) return;
    const int32_t n = 1 + below(most);
    std::vector<int32_t> brought(static_cast<size_t>(n));
    for (int32_t& row : brought) row = next_row_++;
    auto plan = tried([&] { return cache.plan(n); });
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    write(cache, *plan, brought);
    if (below(8) == 0) return;  // dropped
    std::vector<int32_t> kept;
    if (cache.traits().keeps_paths && below(2) == 0) {
      for (int32_t i = 0; i < n; ++i) {
        if (below(3) > 0) kept.push_back(i);
      }
      cache.commit(*plan, {static_cast<int32_t>(kept.size()), kept.data()});
    } else {
      kept.resize(static_cast<size_t>(below(n + 1)));
      std::iota(kept.begin(), kept.end(), 0);
      cache.commit(*plan, {static_cast<int32_t>(kept.size())});
    }
    for (const int32_t i : kept) rows_.push_back(brought[static_cast<size_t>(i)]);
    ASSERT_EQ(cache.length(), static_cast<int32_t>(rows_.size()));
    expect_shareable();
  }

  // Whole blocks, and the last one where nothing is to move, are as they stay.
  void expect_shareable() {
    KvCache& cache = *kind_.cache;
    SharesBlocks* const sharing = cache.sharing();
    if (sharing == nullptr) return;
    const auto before = sharing->blocks();
    const auto shared = std::vector<Block*>(before.begin(), before.end());
    const auto at_once = tried([&] { return cache.fork(); }).value();  // settles
    (void)at_once;
    const auto after = sharing->blocks();
    ASSERT_LE(shared.size(), after.size());
    ASSERT_TRUE(std::equal(shared.begin(), shared.end(), after.begin()));
  }

  void cut() {
    const int32_t n = below(static_cast<int32_t>(rows_.size()) + 1);
    const int32_t to = below(3) == 0 ? n : std::max(static_cast<int32_t>(rows_.size()) - 3, 0);
    ASSERT_TRUE(tried([&] { return kind_.cache->truncate(to); }).ok());
    rows_.resize(static_cast<size_t>(to));
  }

  // Goes on with the copy; the other one is changed, and nothing of that must show.
  void fork() {
    auto copy = tried([&] { return kind_.cache->fork(); }).value();
    if (kind_.cache->length() < kCapacity) {
      const CachePlan plan = kind_.cache->plan(1).value();
      write(*kind_.cache, plan, {1000000});
      kind_.cache->commit(plan);
    }
    kind_.cache = std::move(copy);
  }

  Kind& kind_;
  test::RefusingMemory* refusing_;
  std::minstd_rand random_;
  std::vector<int32_t> rows_;  // that are held
  int32_t next_row_ = 0;
};

TEST(KeptRows, RandomPrograms) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    for (Kind& kind : all_kinds()) {
      SCOPED_TRACE(kind.name + ", seed " + std::to_string(seed));
      Program(&kind, seed).run(40);
      if (HasFatalFailure()) return;
    }
  }
}

// A refused operation leaves a cache as it was, and a pool its blocks.
TEST(KeptRows, WhenOperationsAreRefused) {
  test::RefusingMemory memory;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    for (Kind& kind : all_kinds(memory)) {
      SCOPED_TRACE(kind.name + ", seed " + std::to_string(seed));
      const size_t free = kind.pool != nullptr ? kind.pool->blocks().available() : 0;
      Program(&kind, seed, &memory).run(40);
      if (HasFailure()) return;
      kind.cache = nullptr;
      if (kind.pool != nullptr) {
        EXPECT_EQ(kind.pool->blocks().available(), free);
      }
    }
  }
}

// A path whose end was cut before it moved, and the whole of it.
TEST(KeptRows, CutBeforeTheyMove) {
  for (const int32_t to : {0, 2, 3, 4, 5}) {
    auto pool = CachePool::create("fp32", kShapes, 2, 4, engine::system_memory()).value();
    auto cache = make_paged_cache(pool, kCapacity).value();
    const CachePlan plan = cache->plan(9).value();
    write(*cache, plan, {0, 1, 2, 3, 4, 5, 6, 7, 8});
    const int32_t path[] = {0, 2, 3, 6, 8};
    cache->commit(plan, {5, path});
    EXPECT_EQ(cache->sharing()->blocks().size(), 0U);  // only the first entry is where it belongs
    ASSERT_TRUE(cache->truncate(to).ok());
    const std::vector<int32_t> rows{0, 2, 3, 6, 8};
    expect_rows(*cache, {rows.begin(), rows.begin() + to});
  }
}

// A row that is left out keeps nothing: what comes next stands where it stood.
TEST(KeptRows, OfNothing) {
  for (Kind& kind : all_kinds()) {
    SCOPED_TRACE(kind.name);
    KvCache& cache = *kind.cache;
    CachePlan plan = cache.plan(3).value();
    write(cache, plan, {0, 1, 2});
    cache.commit(plan, {0});
    EXPECT_EQ(cache.length(), 0);
    plan = cache.plan(2).value();
    write(cache, plan, {3, 4});
    cache.commit(plan);
    expect_rows(cache, {3, 4});
  }
}

// Blocks that no kept row needs go back to their pool at once.
TEST(KeptRows, GiveBlocksBack) {
  auto pool = CachePool::create("fp32", kShapes, 4, 1, engine::system_memory()).value();
  auto cache = make_paged_cache(pool, kCapacity).value();
  const size_t free = pool->blocks().available();
  const CachePlan plan = cache->plan(20).value();
  EXPECT_EQ(pool->blocks().available(), free - 5);
  cache->commit(plan, {5});
  EXPECT_EQ(pool->blocks().available(), free - 2);
}

// A chunk is pooled when its rows are kept, not when they came.
TEST(KeptRows, OfChunks) {
  const auto made = [] {
    return make_compressed_cache(kShapes, kCapacity, 8, engine::system_memory()).value();
  };
  const auto chunks = made();
  const auto alone = made();
  std::minstd_rand random(3);
  int32_t next = 0;
  for (int32_t step = 0; step < 60; ++step) {
    const auto most = static_cast<uint32_t>(chunks->plan_limit());
    std::vector<int32_t> rows(1 + random() % most);
    for (int32_t& row : rows) row = next++;
    const CachePlan plan = chunks->plan(static_cast<int32_t>(rows.size())).value();
    write(*chunks, plan, rows);
    const auto kept = static_cast<int32_t>(random() % (rows.size() + 1));
    chunks->commit(plan, {kept});
    for (int32_t i = 0; i < kept; ++i) {
      const CachePlan one = alone->plan(1).value();
      write(*alone, one, {rows[static_cast<size_t>(i)]});
      alone->commit(one);
    }
    ASSERT_EQ(chunks->length(), alone->length());
    ASSERT_EQ(chunks->entries(), alone->entries());
    for (int32_t layer = 0; layer < 2; ++layer) {
      const engine::KvView a = host_view(*chunks, layer, chunks->plan(0).value()).value();
      const engine::KvView b = host_view(*alone, layer, alone->plan(0).value()).value();
      std::vector<float> got(static_cast<size_t>(a.k.head_dim));
      std::vector<float> want(got.size());
      for (int32_t e = 0; e < chunks->entries(); ++e) {
        engine::kv_get(a.k, e, 0, got.data());
        engine::kv_get(b.k, e, 0, want.data());
        ASSERT_EQ(got, want) << "entry " << e;
      }
    }
    if (chunks->length() > kCapacity - 10) break;
  }
}

}  // namespace
}  // namespace gen::cache

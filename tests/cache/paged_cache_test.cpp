// SPDX-License-Identifier: Apache-2.0
// Proves that sequences in blocks of a pool keep what each of them wrote, whatever others that
// share their blocks do; that a plan takes all or nothing; and that no block is lost. The model is
// a plain list of rows for each sequence.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/host_memory.h"
#include "support/host_view.h"
#include "cache/sequence/paged_cache.h"
#include "engine/cpu_fixture.h"
#include "engine/kv/codec.h"
#include "support/counting_allocator.h"

namespace gen::cache {
namespace {

using engine::cpu::random_floats;
using engine::cpu::same_bits;

const std::vector<LayerShape> kLayers = {
    {2, 16, 8, 0, engine::RopeKind::kNone, 0},
    {1, 5, 7, 4, engine::RopeKind::kNone, 0},
};

/// The row of a layer and side that a seed stands for.
std::vector<float> row_of(size_t layer, bool keys, uint32_t seed) {
  const LayerShape& shape = kLayers[layer];
  const int32_t dim = keys ? shape.k_dim : shape.v_dim;
  return random_floats(static_cast<size_t>(shape.kv_heads * dim),
                       seed * 4 + static_cast<uint32_t>(layer) * 2 + (keys ? 1 : 0));
}

std::shared_ptr<CachePool> make_pool(const char* kind, int32_t block_size,
                                     engine::EngineMemory& allocator = engine::system_memory()) {
  auto pool = CachePool::create(kind, kLayers, block_size, 1, allocator);
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

std::unique_ptr<KvCache> make(const std::shared_ptr<CachePool>& pool, int32_t capacity = 1000) {
  return std::move(make_paged_cache(pool, capacity)).value();
}

void write(KvCache& cache, const CachePlan& plan, const std::vector<uint32_t>& seeds) {
  for (size_t layer = 0; layer < kLayers.size(); ++layer) {
    const engine::KvView view = host_view(cache, static_cast<int32_t>(layer), plan).value();
    for (int32_t i = 0; i < plan.count; ++i) {
      const uint32_t seed = seeds[static_cast<size_t>(i)];
      kv_put(view.k, plan.start + i, view.kv_heads, row_of(layer, true, seed).data());
      kv_put(view.v, plan.start + i, view.kv_heads, row_of(layer, false, seed).data());
    }
  }
}

Status append(KvCache& cache, const std::vector<uint32_t>& seeds) {
  GEN_ASSIGN(const CachePlan plan, cache.plan(static_cast<int32_t>(seeds.size())));
  write(cache, plan, seeds);
  cache.commit(plan);
  return {};
}

/// float32 caches only.
void expect_rows(KvCache& cache, const std::vector<uint32_t>& seeds) {
  ASSERT_EQ(cache.length(), static_cast<int32_t>(seeds.size()));
  for (size_t layer = 0; layer < kLayers.size(); ++layer) {
    const engine::KvView view =
        host_view(cache, static_cast<int32_t>(layer), {cache.length(), 0}).value();
    EXPECT_EQ(view.window, kLayers[layer].window);
    for (bool keys : {true, false}) {
      const engine::KvSide& side = keys ? view.k : view.v;
      for (size_t e = 0; e < seeds.size(); ++e) {
        std::vector<float> got(static_cast<size_t>(view.kv_heads * side.head_dim));
        for (int32_t h = 0; h < view.kv_heads; ++h) {
          kv_get(side, static_cast<int64_t>(e), h,
                 got.data() + static_cast<size_t>(h * side.head_dim));
        }
        ASSERT_TRUE(same_bits(got, row_of(layer, keys, seeds[e]))) << "entry " << e;
      }
    }
  }
}

TEST(PagedCache, GrowsBlockByBlock) {
  auto pool = make_pool("fp32", 16);
  const size_t all = pool->blocks().capacity();
  // 2 heads of 16 and 8, 1 of 5 and 7, four bytes each, to lines of 64.
  EXPECT_EQ(pool->layout().block_bytes(), size_t{16 * 4 * (2 * 16 + 2 * 8 + 5 + 7)});
  EXPECT_EQ(all, (size_t{1} << 20) / pool->layout().block_bytes());
  auto cache = make(pool);
  EXPECT_NE(cache->sharing(), nullptr);
  EXPECT_EQ(cache->memory().resident, 0U);
  ASSERT_TRUE(append(*cache, std::vector<uint32_t>(16, 1)).ok());
  EXPECT_EQ(pool->blocks().available(), all - 1);
  EXPECT_EQ(pool->blocks().fragmentation(), 0.0);
  ASSERT_TRUE(append(*cache, {2}).ok());
  EXPECT_EQ(pool->blocks().available(), all - 2);
  EXPECT_EQ(pool->blocks().fragmentation(), 1.0 - 17.0 / 32.0);
  EXPECT_EQ(cache->memory().resident, 2 * pool->layout().block_bytes());
  ASSERT_TRUE(cache->truncate(3).ok());
  EXPECT_EQ(pool->blocks().available(), all - 1);
  EXPECT_EQ(pool->blocks().fragmentation(), 1.0 - 3.0 / 16.0);
  expect_rows(*cache, {1, 1, 1});
  cache.reset();
  EXPECT_EQ(pool->blocks().available(), all);
}

TEST(PagedCache, ADroppedPlanIsUsedOrGivenBack) {
  auto pool = make_pool("fp32", 16);
  const size_t all = pool->blocks().capacity();
  auto cache = make(pool);
  ASSERT_TRUE(cache->plan(40).ok());
  EXPECT_EQ(cache->length(), 0);
  ASSERT_TRUE(append(*cache, {5}).ok());
  EXPECT_EQ(pool->blocks().available(), all - 1);
  expect_rows(*cache, {5});
}

TEST(PagedCache, WhatDoesNotFitChangesNothing) {
  auto pool = make_pool("fp32", 16);
  const auto all = static_cast<int32_t>(pool->blocks().capacity());
  auto first = make(pool, 100000);
  auto second = make(pool, 40);
  ASSERT_TRUE(append(*first, std::vector<uint32_t>(static_cast<size_t>(all - 1) * 16, 3)).ok());
  ASSERT_TRUE(append(*second, {1, 2}).ok());
  EXPECT_TRUE(second->has_free(14));
  EXPECT_FALSE(second->has_free(17));
  const auto full = second->plan(17);
  EXPECT_EQ(full.status().code(), Code::kPoolExhausted);
  EXPECT_EQ(second->room(), 14);
  EXPECT_EQ(second->most_room(), 38);  // without the other
  EXPECT_EQ(first->room(), 0);
  EXPECT_EQ(first->most_room(), 16);
  expect_rows(*second, {1, 2});
  ASSERT_TRUE(append(*second, {3}).ok());  // there is room in its block
  EXPECT_EQ(second->plan(38).status().code(), Code::kCacheFull);
  // Others' end makes room.
  ASSERT_TRUE(first->truncate(16).ok());
  ASSERT_TRUE(append(*second, std::vector<uint32_t>(37, 9)).ok());
  EXPECT_EQ(second->length(), 40);
}

// It cannot write into the shared block, and the other's end lets it.
TEST(PagedCache, WhoSharesItsLastBlockHasNotAllRoom) {
  auto pool = make_pool("fp32", 16);
  const auto all = static_cast<int32_t>(pool->blocks().capacity());
  auto cache = make(pool, 100000);
  ASSERT_TRUE(append(*cache, std::vector<uint32_t>(static_cast<size_t>(all) * 16 - 1, 3)).ok());
  EXPECT_TRUE(cache->has_all_room());
  auto fork = std::move(cache->fork()).value();
  EXPECT_FALSE(cache->has_all_room());
  EXPECT_EQ(append(*cache, {4}).code(), Code::kPoolExhausted);
  fork.reset();
  EXPECT_TRUE(cache->has_all_room());
  ASSERT_TRUE(append(*cache, {4}).ok());
}

TEST(PagedCache, ForksShareUntilOneWrites) {
  auto pool = make_pool("fp32", 16);
  const size_t all = pool->blocks().capacity();
  auto cache = make(pool);
  std::vector<uint32_t> rows(20, 7);
  ASSERT_TRUE(append(*cache, rows).ok());
  auto fork = std::move(cache->fork()).value();
  EXPECT_EQ(pool->blocks().available(), all - 2);  // nothing was copied
  ASSERT_TRUE(append(*fork, {8}).ok());
  EXPECT_EQ(pool->blocks().available(), all - 3);  // but now the block that both were to write
  std::vector<uint32_t> forked = rows;
  forked.push_back(8);
  ASSERT_TRUE(append(*cache, {9}).ok());
  EXPECT_EQ(pool->blocks().available(), all - 3);
  rows.push_back(9);
  expect_rows(*fork, forked);
  expect_rows(*cache, rows);
  cache.reset();
  expect_rows(*fork, forked);
  EXPECT_EQ(pool->blocks().available(), all - 2);
  fork.reset();
  EXPECT_EQ(pool->blocks().available(), all);
}

// As a prefix cache does it: references first, then the blocks.
Status adopt(BlockPool& pool, KvCache& cache, KvCache& from, int32_t n) {
  const size_t count =
      static_cast<size_t>(n + pool.block_size() - 1) / static_cast<size_t>(pool.block_size());
  const auto blocks = from.sharing()->blocks().first(count);
  GEN_TRY(pool.retain(blocks));
  Status status = cache.sharing()->adopt(blocks, n);
  if (status.ok()) return status;
  for (Block* block : blocks) EXPECT_TRUE(pool.release(block).ok());
  return status;
}

TEST(PagedCache, GoesOnFromOthersBlocks) {
  auto pool = make_pool("fp32", 16);
  const size_t all = pool->blocks().capacity();
  auto first = make(pool);
  std::vector<uint32_t> rows(40);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i + 1);
  ASSERT_TRUE(append(*first, rows).ok());
  EXPECT_EQ(first->sharing()->blocks().size(), 3U);
  auto second = make(pool, 37);
  ASSERT_TRUE(append(*second, {1, 2}).ok());
  EXPECT_EQ(adopt(pool->blocks(), *second, *first, 40).code(), Code::kInvalidArgument);
  EXPECT_EQ(adopt(pool->blocks(), *second, *first, 2).code(), Code::kInvalidArgument);
  EXPECT_EQ(second->sharing()->adopt(first->sharing()->blocks().first(2), 36).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(second->sharing()->adopt(first->sharing()->blocks(), 20).code(),
            Code::kInvalidArgument);
  auto stranger = make(make_pool("fp32", 16));
  EXPECT_EQ(stranger->sharing()->adopt(first->sharing()->blocks(), 36).code(), Code::kState);
  EXPECT_EQ(pool->blocks().available(), all - 4);
  expect_rows(*second, {1, 2});

  ASSERT_TRUE(adopt(pool->blocks(), *second, *first, 35).ok());
  EXPECT_EQ(pool->blocks().available(), all - 3);  // its own block went
  expect_rows(*second, std::vector<uint32_t>(rows.begin(), rows.begin() + 35));
  ASSERT_TRUE(append(*second, {99}).ok());
  EXPECT_EQ(pool->blocks().available(), all - 4);  // a copy of the last one
  EXPECT_EQ(second->sharing()->blocks()[1], first->sharing()->blocks()[1]);
  expect_rows(*first, rows);
  std::vector<uint32_t> own(rows.begin(), rows.begin() + 35);
  own.push_back(99);
  expect_rows(*second, own);
  first.reset();
  second.reset();
  EXPECT_EQ(pool->blocks().available(), all);
  auto plain = std::move(make_cache("fp32", kLayers, 8, engine::system_memory())).value();
  EXPECT_EQ(plain->sharing(), nullptr);
}

TEST(PagedCache, RandomOperationsOnForksAgreeWithLists) {
  for (const int32_t block_size : {1, 7, 16, 48}) {
    auto pool = make_pool("fp32", block_size);
    const size_t all = pool->blocks().capacity();
    struct Sequence {
      std::unique_ptr<KvCache> cache;
      std::vector<uint32_t> rows;
    };
    std::vector<Sequence> sequences;
    sequences.push_back({make(pool), {}});
    std::mt19937 random(static_cast<uint32_t>(block_size));
    uint32_t next = 1;
    for (int step = 0; step < 600; ++step) {
      const size_t at = random() % sequences.size();
      Sequence& sequence = sequences[at];
      switch (random() % 7) {
        case 3: {  // go on from another's blocks, where it begins alike
          const Sequence& other = sequences[random() % sequences.size()];
          const auto n = static_cast<int32_t>(random() % (other.rows.size() + 1));
          if (static_cast<size_t>(n) <= sequence.rows.size() ||
              !std::equal(sequence.rows.begin(), sequence.rows.end(), other.rows.begin())) {
            break;
          }
          ASSERT_TRUE(adopt(pool->blocks(), *sequence.cache, *other.cache, n).ok());
          sequence.rows.assign(other.rows.begin(), other.rows.begin() + n);
          break;
        }
        case 0: {
          const size_t n = random() % (sequence.rows.size() + 2);
          ASSERT_TRUE(sequence.cache->truncate(static_cast<int32_t>(n)).ok());
          if (n < sequence.rows.size()) sequence.rows.resize(n);
          break;
        }
        case 1:
          if (sequences.size() < 6) {
            sequences.push_back({std::move(sequence.cache->fork()).value(), sequence.rows});
          }
          break;
        case 2:
          if (sequences.size() > 1) sequences.erase(sequences.begin() + static_cast<ptrdiff_t>(at));
          break;
        default: {
          std::vector<uint32_t> rows(random() % 30);
          for (uint32_t& row : rows) row = next++;
          if (append(*sequence.cache, rows).ok()) {
            sequence.rows.insert(sequence.rows.end(), rows.begin(), rows.end());
          }
        }
      }
      if (step % 40 == 0) {
        for (Sequence& other : sequences) expect_rows(*other.cache, other.rows);
      }
    }
    for (Sequence& other : sequences) expect_rows(*other.cache, other.rows);
    sequences.clear();
    EXPECT_EQ(pool->blocks().available(), all);
  }
}

TEST(PagedCache, EveryFailedAllocationLeavesTheSequence) {
  test::CountingAllocator allocator;
  auto pool = make_pool("q4", 16, allocator);
  auto cache = make(pool, 100000);
  allocator.fail_at = allocator.calls;
  EXPECT_EQ(cache->plan(5).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(cache->length(), 0);
  allocator.fail_at = ~size_t{0};
  ASSERT_TRUE(append(*cache, {1, 2, 3}).ok());
  EXPECT_EQ(cache->length(), 3);
}

TEST(CachePool, ChecksItsArguments) {
  const auto code = [](const char* kind, int32_t block, int32_t mib) {
    return CachePool::create(kind, kLayers, block, mib, engine::system_memory()).status();
  };
  EXPECT_EQ(code("fp7", 16, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", 0, 1).code(), Code::kInvalidArgument);
  EXPECT_EQ(code("fp32", 16, 0).code(), Code::kInvalidArgument);
  // 2 heads of 16 + 8 and one of 5 + 7 in 100000 positions
  const Status small = code("fp32", 100000, 1);
  EXPECT_EQ(small.code(), Code::kInvalidArgument);
  EXPECT_EQ(
      std::string(small.message()),
      "a pool of 1 MiB: one block takes 22.8882 MiB, and the pool must be at least that large");
  EXPECT_EQ(make_paged_cache(make_pool("fp32", 16), 0).status().code(), Code::kInvalidArgument);
}

// A model without keys and values: blocks say which tokens there are, and are shared like others.
TEST(CachePool, WithoutLayers) {
  const auto pool = CachePool::create("fp32", {}, 16, 1, engine::system_memory()).value();
  EXPECT_EQ(pool->blocks().block_bytes(), 64U);
  EXPECT_EQ(pool->blocks().capacity(), (size_t{1} << 20) / 64);
  EXPECT_EQ(pool->bytes_per_entry(), 0U);
  EXPECT_TRUE(pool->layers().empty());
  const size_t all = pool->blocks().available();
  {
    const auto cache = make(pool);
    const CachePlan plan = cache->plan(40).value();
    cache->commit(plan, {40});
    EXPECT_EQ(cache->length(), 40);
    EXPECT_TRUE(cache->kv_layers().empty());
    EXPECT_EQ(cache->sharing()->blocks().size(), 3U);
    const auto fork = cache->fork().value();
    EXPECT_EQ(pool->blocks().available(), all - 3);
    fork->commit(fork->plan(1).value(), {1});  // copies the last block
    EXPECT_EQ(pool->blocks().available(), all - 4);
    ASSERT_TRUE(cache->truncate(16).ok());
    EXPECT_EQ(pool->blocks().available(), all - 3);
    const auto other = make(pool);
    const auto blocks = fork->sharing()->blocks();
    ASSERT_TRUE(pool->blocks().retain(blocks.first(2)).ok());
    ASSERT_TRUE(other->sharing()->adopt(blocks.first(2), 32).ok());
    EXPECT_EQ(other->length(), 32);
  }
  EXPECT_EQ(pool->blocks().available(), all);
}

}  // namespace
}  // namespace gen::cache

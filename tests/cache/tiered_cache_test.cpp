// SPDX-License-Identifier: Apache-2.0
// Proves what a tiered cache promises beyond conformance_test: that memory stays within its budget,
// that forks, cuts and growth across cold blocks keep every row, that no failing call loses
// anything and the step can be made again, that bytes which come back changed are never used, and
// that no file is left. The model is a plain list of rows for each sequence.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/memory/host_memory.h"
#include "support/host_view.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/cpu_fixture.h"
#include "engine/kv/codec.h"
#include "support/counting_allocator.h"
#include "support/failing_file_ops.h"
#include "support/sanitized.h"

namespace gen::cache {
namespace {

using engine::cpu::random_floats;
using engine::cpu::same_bits;
using test::CountingAllocator;
using test::FailingFiles;
using test::TestFolder;

const std::vector<LayerShape> kLayers = {
    {2, 16, 8, 0, engine::RopeKind::kNone, 0}, {1, 5, 7, 6, engine::RopeKind::kNone, 0},
    {2, 16, 8, 0, engine::RopeKind::kNone, 0}, {1, 8, 8, 0, engine::RopeKind::kNone, 0},
    {2, 16, 8, 0, engine::RopeKind::kNone, 0},
};
// Sixteen positions in float32, keys and values each to lines of 64.
constexpr size_t kLargest = 16 * 4 * 2 * (16 + 8);
constexpr size_t kBlock = 3 * kLargest + 16 * 4 * (5 + 7) + 16 * 4 * (8 + 8);

TieredCacheOptions options_for(FailingFiles& files, int32_t hot_blocks) {
  TieredCacheOptions options;
  options.block_size = 16;
  options.hot_blocks = hot_blocks;
  options.prefetch_layers = 2;
  options.files = &files;
  return options;
}

std::unique_ptr<KvCache> make(const TieredCacheOptions& options, int32_t capacity,
                              engine::EngineMemory& allocator = engine::system_memory()) {
  auto made = make_tiered_cache(options, kLayers, capacity, allocator);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

/// The row of a layer and side that a seed stands for.
std::vector<float> row_of(size_t layer, bool keys, uint32_t seed) {
  const LayerShape& shape = kLayers[layer];
  const int32_t dim = keys ? shape.k_dim : shape.v_dim;
  return random_floats(static_cast<size_t>(shape.kv_heads * dim),
                       seed * 16 + static_cast<uint32_t>(layer) * 2 + (keys ? 1 : 0));
}

/// A step as the engine makes it: each layer is written and what it sees of the rest is read.
Status append(KvCache& cache, const std::vector<uint32_t>& held,
              const std::vector<uint32_t>& seeds) {
  GEN_ASSIGN(const CachePlan plan, cache.plan(static_cast<int32_t>(seeds.size())));
  for (size_t layer = 0; layer < kLayers.size(); ++layer) {
    GEN_ASSIGN(const engine::KvView view, host_view(cache, static_cast<int32_t>(layer), plan));
    for (int32_t i = 0; i < plan.count; ++i) {
      const uint32_t seed = seeds[static_cast<size_t>(i)];
      kv_put(view.k, plan.start + i, view.kv_heads, row_of(layer, true, seed).data());
      kv_put(view.v, plan.start + i, view.kv_heads, row_of(layer, false, seed).data());
    }
    const auto at = static_cast<int64_t>(held.size()) / 2;
    if (view.window == 0 && !held.empty()) {
      std::vector<float> got(static_cast<size_t>(view.v.head_dim));
      kv_get(view.v, at, 0, got.data());
      std::vector<float> want = row_of(layer, false, held[static_cast<size_t>(at)]);
      want.resize(got.size());
      EXPECT_TRUE(same_bits(got, want)) << "entry " << at;
    }
  }
  cache.commit(plan);
  return {};
}

/// In as many steps as it takes; `held` tells how far it came.
Status grow(KvCache& cache, std::vector<uint32_t>& held, const std::vector<uint32_t>& seeds) {
  for (auto from = seeds.begin(); from != seeds.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(seeds.end() - from, cache.plan_limit());
    GEN_TRY(append(cache, held, {from, to}));
    held.insert(held.end(), from, to);
    from = to;
  }
  return {};
}

void expect_rows(KvCache& cache, const std::vector<uint32_t>& seeds) {
  ASSERT_EQ(cache.length(), static_cast<int32_t>(seeds.size()));
  if (seeds.empty()) return;
  for (size_t layer = 0; layer < kLayers.size(); ++layer) {
    auto view = host_view(cache, static_cast<int32_t>(layer), {cache.length(), 0});
    if (!view.ok()) view = host_view(cache, static_cast<int32_t>(layer), {cache.length(), 0});
    ASSERT_TRUE(view.ok()) << view.status().message();
    for (const bool keys : {true, false}) {
      const engine::KvSide& side = keys ? view->k : view->v;
      for (size_t e = 0; e < seeds.size(); ++e) {
        std::vector<float> got(static_cast<size_t>(view->kv_heads * side.head_dim));
        for (int32_t h = 0; h < view->kv_heads; ++h) {
          kv_get(side, static_cast<int64_t>(e), h,
                 got.data() + static_cast<size_t>(h * side.head_dim));
        }
        ASSERT_TRUE(same_bits(got, row_of(layer, keys, seeds[e])))
            << "layer " << layer << " entry " << e;
      }
    }
  }
}

std::vector<uint32_t> seeds_from(uint32_t first, size_t n) {
  std::vector<uint32_t> seeds(n);
  for (size_t i = 0; i < n; ++i) seeds[i] = first + static_cast<uint32_t>(i);
  return seeds;
}

TEST(TieredCache, ChecksItsOptions) {
  FailingFiles files;
  const auto refused = [&](auto&& change, Code code, const char* part) {
    TieredCacheOptions options = options_for(files, 1);
    change(options);
    const Status status =
        make_tiered_cache(options, kLayers, 100, engine::system_memory()).status();
    EXPECT_EQ(status.code(), code);
    EXPECT_NE(std::string(status.message()).find(part), std::string::npos) << status.message();
  };
  const Code bad = Code::kInvalidArgument;
  refused([](auto& o) { o.format = "fp7"; }, bad, "fp7");
  refused([](auto& o) { o.block_size = 0; }, bad, "blocks of 0");
  refused([](auto& o) { o.hot_blocks = -1; }, bad, "-1 of them hot");
  refused([](auto& o) { o.prefetch_layers = -2; }, bad, "-2 layers ahead");
  refused([](auto& o) { o.hot_blocks = 0; }, bad, "a context of 100 takes at least 1 MiB");
  refused([](auto& o) { o.cold_dir = "/nowhere/at/all"; }, Code::kIo, "/nowhere/at/all");
  EXPECT_EQ(
      make_tiered_cache(options_for(files, 1), kLayers, 0, engine::system_memory()).status().code(),
      bad);
  EXPECT_EQ(files.open_files, 0);
}

TEST(TieredCache, StaysWithinItsBudget) {
  FailingFiles files;
  CountingAllocator allocator;
  TieredCacheOptions options = options_for(files, 0);
  options.prefetch_layers = 1;
  constexpr size_t kStaged = 2 * kLargest;
  constexpr size_t kBlocks = 20;
  // Two hot blocks and what is read of the others is the least.
  options.hot_bytes = 2 * kBlock + (kBlocks - 2) * kStaged;
  auto cache = make(options, kBlocks * 16, allocator);
  EXPECT_EQ(cache->plan_limit(), 16);
  EXPECT_EQ(cache->plan(17).status().code(), Code::kInvalidArgument);
  options.hot_bytes -= 1;
  EXPECT_EQ(make_tiered_cache(options, kLayers, kBlocks * 16, allocator).status().code(),
            Code::kInvalidArgument);
  options.hot_bytes += 1;
  std::vector<uint32_t> held;
  bool spilled = false;
  for (uint32_t i = 0; held.size() < kBlocks * 16; ++i) {
    const size_t n = std::min<size_t>(1 + i % 16, kBlocks * 16 - held.size());
    ASSERT_TRUE(grow(*cache, held, seeds_from(100 * i, n)).ok());
    ASSERT_LE(allocator.peak_bytes, options.hot_bytes);
    ASSERT_EQ(cache->memory().resident, allocator.live_bytes);
    const size_t blocks = (held.size() + 15) / 16;
    spilled = spilled || cache->memory().resident < blocks * kBlock;
    if (blocks * kBlock <= options.hot_bytes) {
      ASSERT_EQ(cache->memory().resident, blocks * kBlock);
    }
  }
  EXPECT_TRUE(spilled);
  expect_rows(*cache, held);
  ASSERT_TRUE(cache->truncate(0).ok());
  EXPECT_EQ(allocator.live_bytes, 0U);
}

TEST(TieredCache, RandomStepsAgreeWithLists) {
  for (const int32_t hot : {1, 2, 3}) {
    FailingFiles files;
    std::mt19937 random(static_cast<uint32_t>(hot));
    struct One {
      std::unique_ptr<KvCache> cache;
      std::vector<uint32_t> held;
    };
    std::vector<One> all(1);
    TieredCacheOptions options = options_for(files, hot);
    options.prefetch_layers = hot - 1;
    options.block_size = hot == 2 ? 7 : 16;  // no whole number of tiles
    all[0].cache = make(options, 150);
    uint32_t seed = 0;
    for (int step = 0; step < (test::kSanitized ? 150 : 700); ++step) {
      One& one = all[random() % all.size()];
      const auto n = static_cast<int32_t>(random() % 24);
      switch (random() % 8) {
        case 0:
          ASSERT_TRUE(one.cache->truncate(n * 7).ok());
          one.held.resize(std::min(one.held.size(), static_cast<size_t>(n * 7)));
          break;
        case 1:
          if (all.size() < 4) {
            auto fork = one.cache->fork();
            ASSERT_TRUE(fork.ok());
            One other{std::move(fork).value(), one.held};
            all.push_back(std::move(other));
          } else {
            all.erase(all.begin() + static_cast<std::ptrdiff_t>(random() % all.size()));
          }
          break;
        case 2: {
          auto dropped = one.cache->plan(n);
          ASSERT_EQ(dropped.ok(), static_cast<int32_t>(one.held.size()) + n <= 150 &&
                                      n <= one.cache->plan_limit());
          break;
        }
        case 3:
          expect_rows(*one.cache, one.held);
          break;
        default:
          if (static_cast<int32_t>(one.held.size()) + n > 150) break;
          ASSERT_TRUE(grow(*one.cache, one.held, seeds_from(seed, static_cast<size_t>(n))).ok());
          seed += 24;
      }
    }
    for (One& one : all) expect_rows(*one.cache, one.held);
    all.clear();
    EXPECT_EQ(files.open_files, 0);
  }
}

TEST(TieredCache, TellsWhatItWillReadOrReadsIt) {
  FailingFiles files;
  for (const int32_t ahead : {0, 2}) {
    TieredCacheOptions options = options_for(files, 1);
    options.prefetch_layers = ahead;
    auto cache = make(options, 100);
    std::vector<uint32_t> held;
    ASSERT_TRUE(grow(*cache, held, seeds_from(0, 60)).ok());
    files.announced = 0;
    ASSERT_TRUE(grow(*cache, held, {1}).ok());
    // Three cold blocks of the layer that comes next each time, but none of the one with a window.
    EXPECT_EQ(files.announced, ahead == 0 ? 4U * 3 : 0U);
  }
}

TEST(TieredCache, LeavesNoFile) {
  FailingFiles files;
  const TestFolder folder;
  TieredCacheOptions options = options_for(files, 1);
  options.cold_dir = folder.path();
  auto cache = make(options, 100);
  std::vector<uint32_t> held;
  ASSERT_TRUE(grow(*cache, held, seeds_from(0, 100)).ok());
  EXPECT_TRUE(folder.all().empty());  // not even while it lives
  expect_rows(*cache, held);
  EXPECT_EQ(files.open_files, 1);
}

/// A life of a cache; calls that fail must leave what was there, and succeed when made again.
template <typename Failed>
void live(KvCache& cache, Failed&& failed) {
  std::vector<uint32_t> held;
  const auto must = [&](KvCache& of, std::vector<uint32_t>& rows,
                        const std::vector<uint32_t>& seeds) {
    std::vector<uint32_t> left = seeds;
    for (int tries = 0;; ++tries) {
      const size_t before = rows.size();
      const bool again = failed(grow(of, rows, left));
      if (!again) break;
      expect_rows(of, rows);
      left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(rows.size() - before));
      ASSERT_LT(tries, 3);
    }
  };
  for (uint32_t i = 0; i < 5; ++i) must(cache, held, seeds_from(100 * i, 15));
  std::unique_ptr<KvCache> fork;
  for (int tries = 0; fork == nullptr; ++tries) {
    ASSERT_LT(tries, 3);
    auto made = cache.fork();
    if (!failed(made.status())) fork = std::move(made).value();
  }
  std::vector<uint32_t> forked = held;
  ASSERT_TRUE(cache.truncate(20).ok());  // into a cold block
  held.resize(20);
  must(cache, held, seeds_from(1000, 30));
  must(*fork, forked, seeds_from(2000, 20));
  expect_rows(cache, held);
  expect_rows(*fork, forked);
}

TEST(TieredCache, EveryFileCallMayFail) {
  for (const bool given : {false, true}) {
    for (size_t fail = 0;; ++fail) {
      FailingFiles files;
      const TestFolder folder;
      files.fail_at = fail;
      TieredCacheOptions options = options_for(files, 1);
      if (given) options.cold_dir = folder.path();
      auto made = make_tiered_cache(options, kLayers, 100, engine::system_memory());
      if (!made.ok()) {
        ASSERT_EQ(made.status().code(), Code::kIo);
        made = make_tiered_cache(options, kLayers, 100, engine::system_memory());
      }
      ASSERT_TRUE(made.ok());
      live(**made, [&](const Status& status) {
        if (status.ok()) return false;
        EXPECT_EQ(status.code(), Code::kIo) << status.message();
        return true;
      });
      made = Status(Code::kInternal, "");
      ASSERT_EQ(files.open_files, 0);
      ASSERT_TRUE(folder.all().empty()) << "call " << fail;
      if (fail > files.calls) break;
      ASSERT_LT(fail, 5000U);
      if (fail > 40) fail += test::kSanitized ? 12 : 2;  // later ones are like those before
    }
  }
}

TEST(TieredCache, EveryAllocationMayFail) {
  for (size_t fail = 0;; ++fail) {
    FailingFiles files;
    CountingAllocator allocator;
    allocator.fail_at = fail;
    live(*make(options_for(files, 1), 100, allocator), [&](const Status& status) {
      if (status.ok()) return false;
      EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
      return true;
    });
    ASSERT_EQ(allocator.live_blocks, 0U);
    if (fail > allocator.calls) break;
    ASSERT_LT(fail, 1000U);
  }
}

TEST(TieredCache, AFullDiskLosesNothing) {
  FailingFiles files;
  auto cache = make(options_for(files, 1), 100);
  std::vector<uint32_t> held;
  ASSERT_TRUE(grow(*cache, held, seeds_from(0, 16)).ok());
  files.fail_for = 1000000;
  files.fail_at = files.calls.load();
  EXPECT_EQ(grow(*cache, held, {7}).code(), Code::kIo);
  EXPECT_EQ(grow(*cache, held, {7}).code(), Code::kIo);
  expect_rows(*cache, held);
  ASSERT_TRUE(cache->truncate(10).ok());  // it can be used within what memory holds
  held.resize(10);
  ASSERT_TRUE(grow(*cache, held, {8, 9}).ok());
  files.fail_at = FailingFiles::kNever;
  ASSERT_TRUE(grow(*cache, held, seeds_from(50, 60)).ok());
  expect_rows(*cache, held);
}

TEST(TieredCache, ChangedBytesAreFound) {
  FailingFiles files;
  auto cache = make(options_for(files, 1), 100);
  std::vector<uint32_t> held;
  ASSERT_TRUE(grow(*cache, held, seeds_from(0, 70)).ok());
  ASSERT_TRUE(grow(*cache, held, {1}).ok());  // the first four blocks go
  // A fork has read nothing yet; with the cache ends its thread, which must not meet the hook.
  std::unique_ptr<KvCache> fork = std::move(cache->fork()).value();
  cache.reset();
  std::atomic<size_t> at = 0;
  files.on_read = [&](uint64_t, std::span<std::byte> bytes) {
    bytes[at % bytes.size()] ^= static_cast<std::byte>(1 << (at % 8));
  };
  for (; at < 200; at += 7) {
    const Status status = host_view(*fork, static_cast<int32_t>(at % 5), {71, 0}).status();
    ASSERT_EQ(status.code(), Code::kFormat);
    ASSERT_NE(std::string(status.message()).find("is damaged"), std::string::npos);
    ASSERT_EQ(append(*fork, held, {1}).code(), Code::kFormat);
  }
  // A read that comes right later is enough.
  cache = std::move(fork->fork()).value();
  fork.reset();
  files.on_read = nullptr;
  expect_rows(*cache, held);
  ASSERT_TRUE(grow(*cache, held, {1}).ok());
}

TEST(TieredCache, ForksRunInDifferentThreads) {
  FailingFiles files;
  auto cache = make(options_for(files, 1), 150);
  std::vector<uint32_t> held;
  ASSERT_TRUE(grow(*cache, held, seeds_from(0, 70)).ok());
  std::vector<std::unique_ptr<KvCache>> forks;
  for (int i = 0; i < 3; ++i) {
    forks.push_back(std::move(cache->fork()).value());
  }
  cache.reset();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      std::vector<uint32_t> own = held;
      for (uint32_t step = 0; step < 6; ++step) {
        EXPECT_TRUE(grow(*forks[i], own, seeds_from(1000 * (i + 1) + 100 * step, 9)).ok());
        const size_t keep = own.size() - (step % 3) * 20;
        EXPECT_TRUE(forks[i]->truncate(static_cast<int32_t>(keep)).ok());
        own.resize(keep);
      }
      expect_rows(*forks[i], own);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gen::cache

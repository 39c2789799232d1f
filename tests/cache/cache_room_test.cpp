// SPDX-License-Identifier: Apache-2.0
// Proves of every layout of caches that room() is what really still fits, plan by plan, after any
// steps of a cache and of those that share its memory; that plan() keeps to plan_limit(); and that
// all of them together never take more than they were given, by what an allocator counted at every
// moment. Refusals name the layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>

#include "engine/memory/host_memory.h"
#include "support/host_view.h"
#include "cache/sequence/compressed_cache.h"
#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/prefix/prefix_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "support/counting_allocator.h"
#include "support/failing_file_ops.h"

namespace gen::cache {
namespace {

constexpr int32_t kCapacity = 100;
constexpr int32_t kBlockSize = 16;
const std::vector<LayerShape> kLayers = {
    {2, 256, 256, 4, engine::RopeKind::kNone, 0},
    {1, 64, 64, 0, engine::RopeKind::kNone, 0},
};
constexpr size_t kLarge = kBlockSize * sizeof(float) * 2 * (256 + 256);  // a layer's block
constexpr size_t kSmall = kBlockSize * sizeof(float) * (64 + 64);
constexpr size_t kMebibyte = size_t{1} << 20;

class CacheRoom : public testing::TestWithParam<const char*> {
 protected:
  using Made = std::unique_ptr<KvCache>;

  void SetUp() override {
    layout_ = GetParam();
    if (layout_ == "contiguous") {
      make_ = [this] { return make_cache("fp32", kLayers, kCapacity, memory_); };
      most_ = 4 * make_cache("fp32", kLayers, kCapacity, engine::system_memory())
                      .value()
                      ->memory()
                      .resident;
    } else if (layout_ == "compressed") {
      shapes_ = {kLayers[1], kLayers[1]};
      make_ = [this] { return make_compressed_cache(shapes_, kCapacity, 7, memory_); };
      most_ = 4 * make_()->get()->memory().resident;
    } else if (layout_ == "tiered") {
      // Two of seven blocks, and room to read the larger layer's share of the others.
      tiers_.block_size = kBlockSize;
      tiers_.hot_bytes = 2 * (kLarge + kSmall) + 5 * kLarge;
      tiers_.files = &files_;
      make_ = [this] { return make_tiered_cache(tiers_, kLayers, kCapacity, memory_); };
      most_ = tiers_.hot_bytes;
    } else if (layout_ == "paged") {
      auto pool = CachePool::create("fp32", kLayers, kBlockSize, 1, memory_).value();
      EXPECT_EQ(pool->blocks().capacity(), kMebibyte / (kLarge + kSmall));
      prefixes_ = PrefixCache::create({pool, &pool->blocks()}, 5).value();
      make_ = [pool] { return make_paged_cache(pool, kCapacity); };
      most_ = kMebibyte;
    } else {
      LaneLimits limits;
      limits.max_sequences = 4;
      limits.capacity = kCapacity;
      limits.max_batch = 9;
      limits.quota = 61;
      store_ = LaneStore::create("fp32", kLayers, limits, memory_).value();
      most_ = memory_.live_bytes;
      make_ = [this, next = 0]() mutable { return store_->lane(1000 + next++); };
    }
    memory_.peak_bytes = memory_.live_bytes.load();
  }

  /// Reads what a step reads.
  static void touch(KvCache& cache, const CachePlan& plan) {
    for (size_t layer = 0; layer < cache.layers().size(); ++layer) {
      ASSERT_TRUE(host_view(cache, static_cast<int32_t>(layer), plan).ok());
    }
  }
  static Status grow(KvCache& cache, int32_t n) {
    GEN_ASSIGN(const CachePlan plan, cache.plan(n));
    touch(cache, plan);
    cache.commit(plan);
    return {};
  }
  /// Fills the cache, and cuts it back where that is exact.
  static void expect_room(KvCache& cache) {
    const int32_t before = cache.length();
    const int32_t room = cache.room();
    for (int32_t left = room; left > 0;) {
      const int32_t n = std::min(left, cache.plan_limit());
      ASSERT_TRUE(grow(cache, n).ok()) << left << " of " << room << " were left";
      left -= n;
      ASSERT_EQ(cache.room(), left);
    }
    ASSERT_EQ(cache.length(), before + room);
    const Code full = cache.plan(1).status().code();
    ASSERT_TRUE(full == Code::kCacheFull || full == Code::kPoolExhausted);
    ASSERT_TRUE(full == Code::kCacheFull || cache.traits().pooled);
    const Status cut = cache.truncate(before);
    if (cache.traits().cuts_exactly && cut.ok()) {
      ASSERT_EQ(cache.length(), before);
    }
  }

  std::string layout_;
  test::CountingAllocator memory_;
  test::FailingFiles files_;
  TieredCacheOptions tiers_;
  std::vector<LayerShape> shapes_;
  std::shared_ptr<LaneStore> store_;
  std::shared_ptr<PrefixCache> prefixes_;
  std::function<Result<Made>()> make_;
  size_t most_ = 0;  // bytes of all caches together, or of a tiered one
};

INSTANTIATE_TEST_SUITE_P(Layouts, CacheRoom,
                         testing::Values("contiguous", "compressed", "tiered", "paged", "lane"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(CacheRoom, NeitherMoreNorLessThanFits) {
  for (const bool forks : {false, true}) {
    std::mt19937 random(7);
    std::vector<Made> all;
    const size_t max_caches = layout_ == "tiered" && !forks ? 1 : 4;
    for (int step = 0; step < 300; ++step) {
      const auto n = static_cast<int32_t>(random() % 40);
      if (all.empty() || (random() % 8 == 0 && all.size() < max_caches)) {
        auto made = forks && !all.empty() ? all[random() % all.size()]->fork() : make_();
        if (made.ok()) all.push_back(std::move(made).value());
        continue;
      }
      Made& one = all[random() % all.size()];
      switch (random() % 6) {
        case 0:
          static_cast<void>(one->truncate(one->length() - n));
          break;
        case 1:
          one = std::move(all.back());
          all.pop_back();
          break;
        case 2:
          expect_room(*one);
          break;
        case 3:
          if (prefixes_ != nullptr && one->length() >= kBlockSize) {
            const auto blocks = one->sharing()->blocks().first(1);
            const std::vector<int32_t> text(kBlockSize, step);
            ASSERT_TRUE(prefixes_->insert(0, text, blocks).ok());
          }
          break;
        default: {
          // As much as it takes, or more; some of it is planned and dropped.
          const int32_t room = one->room();
          auto plan = one->plan(n);
          ASSERT_EQ(plan.ok(), n <= room && n <= one->plan_limit())
              << n << " " << room << " " << plan.status().message();
          if (plan.ok()) touch(*one, *plan);
          if (plan.ok() && n % 4 > 0) one->commit(*plan);
        }
      }
      ASSERT_LE(memory_.peak_bytes, most_ * (layout_ == "tiered" ? max_caches : 1)) << step;
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(memory_.peak_bytes, most_ / 2);
  }
}

TEST_P(CacheRoom, TraitsTellWhatALayoutCan) {
  const Made cache = make_().value();
  const CacheTraits& traits = cache->traits();
  EXPECT_EQ(traits.layout, layout_);
  EXPECT_EQ(traits.pooled, layout_ == "paged");
  EXPECT_EQ(cache->sharing() != nullptr, layout_ == "paged");
  EXPECT_EQ(traits.cuts_exactly, layout_ != "compressed");
}

}  // namespace
}  // namespace gen::cache

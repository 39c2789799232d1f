// SPDX-License-Identifier: Apache-2.0
// Conversations that share a memory do not show in each other: eight of them, each with a secret of
// its own behind a common prompt, grow by turns in blocks of one pool, in tiers with a single block
// in memory, and in lanes, after others have filled and left the memory. Each row's logits must be,
// bit for bit, those of a cache that has never held anything else.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/memory/host_memory.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

constexpr int32_t kConversations = 8;
constexpr int32_t kTurns = 6;

class Neighbours : public testing::TestWithParam<const char*> {
 protected:
  using Make = std::function<std::unique_ptr<cache::KvCache>()>;

  static test::TinyModelSpec spec() {
    test::TinyModelSpec spec;
    spec.window = 9;
    spec.local = {0, 1};
    return spec;
  }
  /// A turn of a conversation: in the first the prompt and the secret.
  static std::vector<int32_t> turn(int32_t conversation, int32_t number) {
    if (number == 0) return {3, 14, 15, 9, 26, 5, 35, 40 + conversation};
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 1 + (conversation + number) % 8; ++i) {
      tokens.push_back((7 * number + 3 * i) % 40);  // the same for all, no secret
    }
    return tokens;
  }
  void expect_apart(const Make& make) {
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    std::vector<std::unique_ptr<cache::KvCache>> alone;
    for (int32_t i = 0; i < kConversations; ++i) {
      caches.push_back(make());
      alone.push_back(model_.cache(GetParam()));
    }
    for (int32_t number = 0; number < kTurns; ++number) {
      for (int32_t i = 0; i < kConversations; ++i) {
        const auto tokens = turn(i, number);
        const auto at = static_cast<size_t>(i);
        EXPECT_EQ(model_.feed(*caches[at], tokens), model_.feed(*alone[at], tokens))
            << "conversation " << i << " turn " << number;
      }
      // One ends, and another begins in what it leaves.
      const auto gone = static_cast<size_t>(number);
      caches[gone].reset();
      caches[gone] = make();
      alone[gone] = model_.cache(GetParam());
      for (int32_t again = 0; again <= number; ++again) {
        const auto tokens = turn(kConversations + number % 2, again);
        EXPECT_EQ(model_.feed(*caches[gone], tokens), model_.feed(*alone[gone], tokens));
      }
    }
  }

  test::LoadedTiny model_{test::TinyModel(spec())};
};

INSTANTIATE_TEST_SUITE_P(Formats, Neighbours, testing::Values("fp32", "fp16", "fp8", "q4", "q3"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(Neighbours, InBlocksOfOnePool) {
  for (const int32_t block_size : {3, 16}) {
    auto pool = cache::CachePool::create(GetParam(), model_.model().layer_shapes(), block_size, 1,
                                         engine::system_memory())
                    .value();
    {  // every block has held the secret of somebody
      std::vector<std::unique_ptr<cache::KvCache>> all;
      while (pool->blocks().available() > 0) {
        all.push_back(cache::make_paged_cache(pool, 128).value());
        const auto free = static_cast<int32_t>(pool->blocks().available());
        model_.feed(*all.back(), std::vector<int32_t>(
                                     static_cast<size_t>(std::min(100, free * block_size)), 49));
      }
    }
    expect_apart([&] { return cache::make_paged_cache(pool, 128).value(); });
  }
}

TEST_P(Neighbours, InTiers) {
  const std::string kind = GetParam();
  if (kind != "fp32" && kind != "q3") GTEST_SKIP() << "tiers move bytes, whatever they mean";
  cache::TieredCacheOptions options;
  options.format = GetParam();
  options.block_size = 8;  // the most that a turn has
  options.hot_blocks = 1;
  expect_apart([&] {
    return cache::make_tiered_cache(options, model_.model().layer_shapes(), 128,
                                    engine::system_memory())
        .value();
  });
}

TEST_P(Neighbours, InLanes) {
  const cache::LaneLimits limits = {kConversations, 60, 16, 0, 0};
  auto store = cache::LaneStore::create(GetParam(), model_.model().layer_shapes(), limits,
                                        engine::system_memory())
                   .value();
  {
    std::vector<std::unique_ptr<cache::KvCache>> all;
    for (int32_t i = 0; i < kConversations; ++i) {
      all.push_back(store->lane(1000 + i).value());
      for (int32_t n = 0; n < 48; n += 16) model_.feed(*all.back(), std::vector<int32_t>(16, 49));
    }
  }
  int32_t number = 0;
  expect_apart([&] { return store->lane(number++).value(); });
}

}  // namespace
}  // namespace gen::model

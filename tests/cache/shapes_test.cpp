// SPDX-License-Identifier: Apache-2.0
// The numbers of heads and their sizes that models have, through a state, a cache with tiers and
// blocks of a pool: what was written comes back, in every kind, with sizes of blocks that divide
// neither each other nor a tile. And heads and sizes that make up rows of the same length are not
// taken for each other.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/host_view.h"
#include "cache/sequence/cache_state.h"
#include "cache/guard_allocator.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/state/state_file.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/cpu_fixture.h"
#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

using engine::cpu::random_floats;
using engine::cpu::same_bits;

constexpr int32_t kEntries = 19;

class Shapes : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<LayerShape> layers(int32_t heads, int32_t dim) {
    return {{heads, dim, dim, 0, engine::RopeKind::kNone, 0},
            {heads, dim, dim, 9, engine::RopeKind::kNone, 0}};
  }
  std::unique_ptr<KvCache> plain(std::span<const LayerShape> shapes) {
    return make_cache(GetParam(), shapes, 50, allocator_).value();
  }
  std::unique_ptr<KvCache> tiered(std::span<const LayerShape> shapes, int32_t block_size) {
    TieredCacheOptions options;
    options.format = GetParam();
    options.block_size = block_size;
    options.hot_blocks = 1;
    auto made = make_tiered_cache(options, shapes, 50, allocator_);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }
  std::unique_ptr<KvCache> paged(std::span<const LayerShape> shapes, int32_t block_size) {
    auto pool = CachePool::create(GetParam(), shapes, block_size, 16, allocator_);
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    return make_paged_cache(std::move(pool).value(), 50).value();
  }
  static std::vector<std::byte> save(KvCache& cache) {
    const auto contents = [&cache](StateWriter& to) { return cache.save(to); };
    std::vector<std::byte> state(state_size(contents).value());
    EXPECT_TRUE(save_state(StateKind::kModelCache, contents, state).ok());
    return state;
  }
  static Status restore(KvCache& cache, const std::vector<std::byte>& state) {
    GEN_ASSIGN(StateReader reader, StateReader::open(state));
    return cache.restore(reader);
  }
  static void fill(KvCache& cache) {
    const CachePlan plan = cache.plan(kEntries).value();
    for (int32_t layer = 0; layer < 2; ++layer) {
      const engine::KvView view = host_view(cache, layer, plan).value();
      const auto row = static_cast<size_t>(view.kv_heads * view.k.head_dim);
      for (int32_t e = 0; e < kEntries; ++e) {
        const auto seed = static_cast<uint32_t>(1000 * layer + 2 * e);
        kv_put(view.k, e, view.kv_heads, random_floats(row, seed).data());
        kv_put(view.v, e, view.kv_heads, random_floats(row, seed + 1).data());
      }
    }
    cache.commit(plan);
  }
  /// Every element, read head by head: [layer][entry][side][head][element].
  static std::vector<float> content(KvCache& cache) {
    std::vector<float> all;
    for (int32_t layer = 0; layer < 2; ++layer) {
      const engine::KvView view = host_view(cache, layer, {cache.length(), 0}).value();
      std::vector<float> head(static_cast<size_t>(view.k.head_dim));
      for (int32_t e = 0; e < cache.length(); ++e) {
        for (const engine::KvSide* side : {&view.k, &view.v}) {
          for (int32_t h = 0; h < view.kv_heads; ++h) {
            kv_get(*side, e, h, head.data());
            all.insert(all.end(), head.begin(), head.end());
          }
        }
      }
    }
    return all;
  }

  GuardAllocator allocator_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Shapes, ::testing::Values("fp32", "fp16", "fp8", "q4", "q3"),
                         [](const auto& row) { return std::string(row.param); });

TEST_P(Shapes, ComeBackFromStatesAndTiers) {
  for (const int32_t heads : {1, 2, 8}) {
    for (const int32_t dim : {64, 96, 128, 256}) {
      SCOPED_TRACE(std::to_string(heads) + " heads of " + std::to_string(dim));
      const std::vector<LayerShape> shapes = layers(heads, dim);
      const auto source = plain(shapes);
      fill(*source);
      const std::vector<float> want = content(*source);
      if (std::string(GetParam()) == "fp32") {
        std::vector<float> first = random_floats(static_cast<size_t>(heads * dim), 0);
        EXPECT_TRUE(same_bits({want.begin(), want.begin() + heads * dim}, first));
      }
      const std::vector<std::byte> state = save(*source);
      // From blocks in memory to colder ones and back, in sizes without a common divisor.
      const auto blocks = paged(shapes, 5);
      ASSERT_TRUE(restore(*blocks, state).ok());
      const auto cold = tiered(shapes, 7);
      ASSERT_TRUE(restore(*cold, save(*blocks)).ok());
      EXPECT_TRUE(same_bits(content(*cold), want));
      const auto others = paged(shapes, 9);
      ASSERT_TRUE(restore(*others, save(*cold)).ok());
      EXPECT_TRUE(same_bits(content(*others), want));
      EXPECT_EQ(save(*others), state);
    }
  }
}

TEST_P(Shapes, OfTheSameRowAreNotTakenForEachOther) {
  const auto source = plain(layers(2, 128));
  fill(*source);
  const std::vector<std::byte> state = save(*source);
  for (const auto& [heads, dim] : {std::pair{1, 256}, std::pair{4, 64}, std::pair{128, 2}}) {
    const std::vector<LayerShape> shapes = layers(heads, dim);
    for (const auto& other : {plain(shapes), tiered(shapes, 7), paged(shapes, 5)}) {
      EXPECT_EQ(restore(*other, state).code(), Code::kInvalidArgument);
      EXPECT_EQ(other->length(), 0);
    }
  }
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// The contract that every cache kind keeps, over the whole table of formats, and tiered with most
// of it in a file: a plan changes nothing, commit makes rows real, truncate forgets, capacity is
// exact, memory figures are true, allocation failures leave nothing behind, and no kernel leaves
// the cache's memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "support/host_view.h"
#include "cache/sequence/cache_state.h"
#include "cache/guard_allocator.h"
#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/split_cache.h"
#include "cache/sequence/tiered_cache.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/cpu_fixture.h"
#include "engine/kv/codec.h"
#include "support/kv_side.h"

namespace gen::cache {
namespace {

using engine::cpu::CpuBench;
using engine::cpu::random_floats;

const std::vector<LayerShape> kLayers = {
    {2, 8, 8, 0, engine::RopeKind::kNone, 0},
    {3, 5, 7, 4, engine::RopeKind::kNone, 0},
    {1, 33, 16, 0, engine::RopeKind::kNone, 0},
};

class CacheConformance : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<KvCache> make(int32_t capacity) {
    auto made = make(kLayers, capacity, memory());
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }
  Result<std::unique_ptr<KvCache>> make(std::span<const LayerShape> layers, int32_t capacity,
                                        engine::EngineMemory& memory) {
    if (!split()) return make_whole(layers, capacity, memory);
    // Every other layer in the other memory.
    std::vector<LayerShape> parts[2];
    std::vector<int32_t> which;
    for (const LayerShape& layer : layers) {
      which.push_back(static_cast<int32_t>(which.size() % 2));
      parts[which.back()].push_back(layer);
    }
    std::vector<std::unique_ptr<KvCache>> caches;
    for (size_t i = 0; i < 2; ++i) {
      GEN_ASSIGN(auto made, make_whole(parts[i], capacity, i == 0 ? memory : far_));
      caches.push_back(std::move(made));
    }
    return make_split_cache(std::move(caches), which);
  }
  static Result<std::unique_ptr<KvCache>> make_whole(std::span<const LayerShape> layers,
                                                     int32_t capacity,
                                                     engine::EngineMemory& memory) {
    if (!tiered()) return make_cache(format(), layers, capacity, memory);
    TieredCacheOptions options;
    options.format = format();
    options.block_size = 5;
    options.hot_blocks = 1;
    return make_tiered_cache(options, layers, capacity, memory);
  }
  /// "tiered fp32" and the like take memory as they grow, and give up what they can.
  static bool tiered() { return name().starts_with("tiered "); }
  /// "far …": in memory that only operations may touch.
  static bool far() { return std::string_view(GetParam()).starts_with("far "); }
  static std::string format() { return std::string(name().substr(tiered() ? 7 : 0)); }
  /// "split …": layers in two memories, one of them far.
  static bool split() { return std::string_view(GetParam()).starts_with("split "); }
  static std::string_view name() { return GetParam() + (far() ? 4 : split() ? 6 : 0); }
  size_t live_bytes() { return far_.live_bytes() + allocator_.live_bytes(); }
  engine::EngineMemory& memory() {
    if (far()) return far_;
    return allocator_;
  }

  /// Rows as a model would bring them: entry e of layer l, always the same.
  static std::vector<float> keys(int32_t layer, int32_t entry) {
    const LayerShape& shape = kLayers[static_cast<size_t>(layer)];
    return random_floats(static_cast<size_t>(shape.kv_heads * shape.k_dim),
                         static_cast<uint32_t>(1000 * layer + entry));
  }
  static std::vector<float> values(int32_t layer, int32_t entry) {
    const LayerShape& shape = kLayers[static_cast<size_t>(layer)];
    return random_floats(static_cast<size_t>(shape.kv_heads * shape.v_dim),
                         static_cast<uint32_t>(5000000 + 1000 * layer + entry));
  }

  /// Writes the planned rows of every layer as the engine does.
  void write(KvCache& cache, const CachePlan& plan) {
    for (int32_t layer = 0; layer < static_cast<int32_t>(kLayers.size()); ++layer) {
      const LayerShape& shape = kLayers[static_cast<size_t>(layer)];
      engine::SequenceRows rows;
      rows.n_rows = plan.count;
      rows.first_entry = plan.start;
      rows.view = host_view(cache, layer, plan).value();
      std::vector<float> k;
      std::vector<float> v;
      for (int32_t e = plan.start; e < plan.start + plan.count; ++e) {
        for (float x : keys(layer, e)) k.push_back(x);
        for (float x : values(layer, e)) v.push_back(x);
      }
      std::vector<float> q(static_cast<size_t>(plan.count * shape.kv_heads * shape.k_dim));
      engine::cpu::AppendArgs args;
      const int64_t k_cols = shape.kv_heads * shape.k_dim;
      const int64_t v_cols = shape.kv_heads * shape.v_dim;
      args.q = {q.data(), plan.count, k_cols, k_cols};
      args.k = {k.data(), plan.count, k_cols, k_cols};
      args.v = {v.data(), plan.count, v_cols, v_cols};
      args.n_heads = args.n_kv_heads = shape.kv_heads;
      args.k_dim = shape.k_dim;
      args.v_dim = shape.v_dim;
      args.sequences = {&rows, 1};
      ASSERT_TRUE(engine::cpu::append(*bench_, args).ok());
    }
  }

  void append(KvCache& cache, int32_t n) {
    for (; n > 0; n -= std::min(n, cache.plan_limit())) {
      auto plan = cache.plan(std::min(n, cache.plan_limit()));
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      write(cache, *plan);
      cache.commit(*plan);
    }
  }

  /// In blocks of a pool of its own.
  std::unique_ptr<KvCache> make_paged(int32_t block_size) {
    auto pool = CachePool::create(format(), kLayers, block_size, 4, memory());
    EXPECT_TRUE(pool.ok()) << pool.status().message();
    return make_paged_cache(std::move(pool).value(), 64).value();
  }

  static std::vector<std::byte> save(KvCache& cache) {
    const auto contents = [&cache](StateWriter& to) { return cache.save(to); };
    const auto size = state_size(contents);
    EXPECT_TRUE(size.ok()) << size.status().message();
    std::vector<std::byte> state(size.value());
    EXPECT_TRUE(save_state(StateKind::kModelCache, contents, state).ok());
    return state;
  }
  static Status restore(KvCache& cache, std::span<const std::byte> state) {
    GEN_ASSIGN(StateReader reader, StateReader::open(state));
    return cache.restore(reader);
  }

  /// The first n entries of every layer are those that were written, as the format keeps them alone
  /// (engine/kv_codec_test proves that this is what was written).
  static void expect_content(KvCache& cache, int32_t n) {
    const CachePlan now = {cache.length(), 0};
    for (int32_t layer = 0; layer < static_cast<int32_t>(kLayers.size()); ++layer) {
      const engine::KvView view = host_view(cache, layer, now).value();
      for (int32_t e = 0; e < n; ++e) {
        expect_row(view.k, view.kv_heads, e, keys(layer, e));
        expect_row(view.v, view.kv_heads, e, values(layer, e));
      }
    }
  }
  static void expect_row(const engine::KvSide& side, int32_t heads, int32_t entry,
                         const std::vector<float>& row) {
    test::KvMemory alone(side.format, side.order, heads, side.head_dim, 1);
    engine::kv_put(alone.side, 0, heads, row.data());
    std::vector<float> want(static_cast<size_t>(side.head_dim));
    std::vector<float> got(want.size());
    for (int32_t head = 0; head < heads; ++head) {
      engine::kv_get(alone.side, 0, head, want.data());
      engine::kv_get(side, entry, head, got.data());
      ASSERT_TRUE(engine::cpu::same_bits(got, want)) << "entry " << entry << " head " << head;
    }
  }

  GuardAllocator allocator_;
  test::FarMemory far_{size_t{64} << 20};
  CpuBench bench_;
};

INSTANTIATE_TEST_SUITE_P(
    Formats, CacheConformance, ::testing::ValuesIn([] {
      std::vector<const char*> formats;
      for (const CacheKind& kind : cache_kinds()) formats.push_back(kind.name);
      formats.insert(formats.end(), {"fp32/q3", "q4/fp16", "q3:rotated"});
      formats.insert(formats.end(), {"tiered fp32", "tiered q3", "tiered fp8/q4"});
      formats.insert(formats.end(), {"far fp32", "far q3", "far fp8/q4", "far tiered q4"});
      formats.insert(formats.end(), {"split fp32", "split q4/fp16", "split tiered fp8"});
      return formats;
    }()),
    [](const auto& row) {
      std::string name = row.param;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '/' || c == ':' || c == ' '; }, '_');
      return name;
    });

TEST_P(CacheConformance, StartsEmptyAndTellsWhatItIs) {
  auto cache = make(10);
  EXPECT_EQ(cache->length(), 0);
  EXPECT_EQ(cache->capacity(), 10);
  EXPECT_EQ(cache->traits().kind, format());
  EXPECT_EQ(cache->traits().lossy, format() != "fp32");
  ASSERT_EQ(cache->layers().size(), kLayers.size());
  EXPECT_EQ(cache->layers()[1].v_dim, 7);
  EXPECT_EQ(cache->layers()[1].window, 4);
  size_t bytes = 0;
  const CacheFormat format = parse_cache_format(CacheConformance::format()).value();
  for (const LayerShape& shape : kLayers) {
    const auto heads = static_cast<size_t>(shape.kv_heads);
    const auto side = [&](engine::KvOrder order, int32_t dim) {
      const auto n = static_cast<size_t>(dim);
      const engine::KvCodec& codec =
          engine::kv_codec(order == engine::KvOrder::kKeys ? format.keys : format.values);
      const size_t shared = codec.shared_bytes != nullptr ? codec.shared_bytes(heads, n) : 0;
      return heads * codec.tile_bytes(order, n) + shared;
    };
    bytes +=
        side(engine::KvOrder::kKeys, shape.k_dim) + side(engine::KvOrder::kValues, shape.v_dim);
  }
  EXPECT_EQ(cache->traits().bytes_per_entry, bytes / 16);
}

TEST_P(CacheConformance, APlanChangesNothing) {
  auto cache = make(10);
  append(*cache, 3);
  const MemoryUse before = cache->memory();
  auto plan = cache->plan(5);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->start, 3);
  EXPECT_EQ(plan->count, 5);
  write(*cache, *plan);  // a step that fails after writing
  EXPECT_EQ(cache->length(), 3);
  EXPECT_EQ(cache->memory().payload, before.payload);
  if (!tiered()) {
    EXPECT_EQ(cache->memory().resident, before.resident);
  }
  expect_content(*cache, 3);
  append(*cache, 2);  // and one that comes after it
  EXPECT_EQ(cache->length(), 5);
  expect_content(*cache, 5);
}

TEST_P(CacheConformance, ViewsShowCommittedAndPlannedEntries) {
  auto cache = make(10);
  append(*cache, 4);
  auto plan = cache->plan(2);
  ASSERT_TRUE(plan.ok());
  const engine::KvView view = host_view(*cache, 1, *plan).value();
  EXPECT_EQ(view.entries, 6);
  EXPECT_EQ(view.kv_heads, 3);
  EXPECT_EQ(view.k.head_dim, 5);
  EXPECT_EQ(view.v.head_dim, 7);
  EXPECT_EQ(view.window, 4);
  EXPECT_EQ(view.key_form, engine::KeyForm::kRotated);
  EXPECT_EQ(host_view(*cache, 0, CachePlan{4, 0}).value().entries, 4);
}

TEST_P(CacheConformance, CapacityIsExact) {
  auto cache = make(7);
  append(*cache, 6);
  const Status full = cache->plan(2).status();
  EXPECT_EQ(full.code(), Code::kCacheFull);
  EXPECT_STREQ(full.message(), "the cache holds 6 of 7 entries, no room for 2 more");
  EXPECT_EQ(cache->length(), 6);
  append(*cache, 1);
  EXPECT_EQ(cache->length(), 7);
  EXPECT_TRUE(cache->plan(0).ok());
  EXPECT_EQ(cache->plan(1).status().code(), Code::kCacheFull);
  EXPECT_EQ(cache->plan(INT32_MAX).status().code(), Code::kCacheFull);
  EXPECT_EQ(cache->plan(-1).status().code(), Code::kInvalidArgument);
  expect_content(*cache, 7);
  auto one = make(1);
  append(*one, 1);
  EXPECT_EQ(one->plan(1).status().code(), Code::kCacheFull);
}

TEST_P(CacheConformance, TruncateKeepsTheFirst) {
  auto cache = make(10);
  append(*cache, 8);
  EXPECT_TRUE(cache->truncate(20).ok());
  EXPECT_TRUE(cache->truncate(8).ok());
  EXPECT_EQ(cache->length(), 8);
  EXPECT_TRUE(cache->truncate(5).ok());
  EXPECT_EQ(cache->length(), 5);
  expect_content(*cache, 5);
  append(*cache, 5);
  EXPECT_EQ(cache->length(), 10);
  expect_content(*cache, 10);
  EXPECT_TRUE(cache->truncate(-3).ok());
  EXPECT_EQ(cache->length(), 0);
  append(*cache, 10);
  expect_content(*cache, 10);
}

TEST_P(CacheConformance, MemoryFiguresAreTrue) {
  auto cache = make(100);
  EXPECT_EQ(cache->memory().resident, live_bytes());
  EXPECT_EQ(cache->memory().payload, 0u);
  EXPECT_GT(cache->memory().metadata, 0u);
  append(*cache, 10);
  EXPECT_EQ(cache->memory().payload, 10 * cache->traits().bytes_per_entry);
  EXPECT_EQ(cache->memory().resident, live_bytes());
  if (!tiered()) {
    EXPECT_GE(cache->memory().resident, cache->memory().payload);
  }
  ASSERT_TRUE(cache->truncate(4).ok());
  EXPECT_EQ(cache->memory().payload, 4 * cache->traits().bytes_per_entry);
  cache.reset();
  EXPECT_EQ(live_bytes(), 0u);
  EXPECT_FALSE(allocator_.bad_release());
}

TEST_P(CacheConformance, AFailingAllocatorLeavesNothingBehind) {
  if (tiered()) GTEST_SKIP() << "takes its memory later; see tiered_cache_test";
  for (int succeed = 0;; ++succeed) {
    GuardAllocator failing;
    failing.fail_after(succeed);
    auto made = make(kLayers, 50, failing);
    if (made.ok()) {
      EXPECT_GT(succeed, 0);
      break;
    }
    EXPECT_EQ(made.status().code(), Code::kOutOfMemory);
    EXPECT_EQ(failing.live_blocks(), 0u);
    ASSERT_LT(succeed, 100);
  }
}

TEST_P(CacheConformance, GrowingNeverAllocates) {
  if (tiered()) GTEST_SKIP() << "grows block by block";
  auto cache = make(64);
  append(*cache, 1);
  const int before = allocator_.total();
  for (int i = 0; i < 30; ++i) append(*cache, 2);
  EXPECT_EQ(allocator_.total(), before);
}

TEST_P(CacheConformance, RandomStepsAgreeWithAList) {
  std::mt19937 random(3);
  auto cache = make(40);
  int32_t length = 0;
  for (int step = 0; step < 400; ++step) {
    const auto n = static_cast<int32_t>(random() % 12);
    switch (random() % 4) {
      case 0:
        ASSERT_TRUE(cache->truncate(n * 3).ok());
        length = std::min(length, n * 3);
        break;
      case 1: {
        auto dropped = cache->plan(n);
        ASSERT_EQ(dropped.ok(), length + n <= 40 && n <= cache->plan_limit());
        if (dropped.ok()) write(*cache, *dropped);
        break;
      }
      case 2: {
        auto other = step % 2 == 0 ? make(40) : make_paged(7);
        ASSERT_TRUE(restore(*other, save(*cache)).ok());
        expect_content(*other, length);
        if (step % 4 == 0) cache = std::move(other);
        break;
      }
      default:
        if (length + n > 40) break;
        append(*cache, n);
        length += n;
    }
    ASSERT_EQ(cache->length(), length);
  }
  expect_content(*cache, length);
}

TEST_P(CacheConformance, ClonesAreIndependent) {
  auto cache = make(20);
  append(*cache, 9);
  auto copy = cache->fork();
  ASSERT_TRUE(copy.ok());
  ASSERT_TRUE(cache->truncate(0).ok());
  EXPECT_EQ(copy.value()->length(), 9);
  EXPECT_EQ(copy.value()->capacity(), 20);
  EXPECT_EQ(copy.value()->traits().kind, format());
  expect_content(**copy, 9);
  append(**copy, 11);
  expect_content(**copy, 20);
  EXPECT_EQ(cache->length(), 0);
  if (tiered() || far()) return;  // copies nothing; never fails
  allocator_.fail_after(0);
  EXPECT_EQ(cache->fork().status().code(), Code::kOutOfMemory);
}

TEST_P(CacheConformance, AStateDoesNotTellHowBlocksLie) {
  for (int32_t length : {0, 1, 15, 16, 17, 40}) {
    SCOPED_TRACE(length);
    auto cache = make(50);
    append(*cache, length);
    const std::vector<std::byte> state = save(*cache);
    for (int32_t block_size : {0, 5, 16, 48}) {
      auto other = block_size == 0 ? make(64) : make_paged(block_size);
      ASSERT_TRUE(restore(*other, state).ok());
      EXPECT_EQ(other->length(), length);
      expect_content(*other, length);
      EXPECT_EQ(save(*other), state);
      append(*other, 10);
      expect_content(*other, length + 10);
      ASSERT_TRUE(other->truncate(7).ok());
      expect_content(*other, std::min(length, 7));
    }
  }
}

// A lane that has let entries of a window go has no state: one that grows from it, and is then cut,
// would take what is gone for entries.
TEST_P(CacheConformance, StatesOfLanes) {
  if (tiered()) GTEST_SKIP() << "lanes have no tiers";
  LaneLimits limits;
  limits.max_sequences = 2;
  limits.capacity = 64;
  limits.max_batch = 12;
  auto store = LaneStore::create(format(), kLayers, limits, memory()).value();
  auto lane = store->lane(3).value();
  append(*lane, 4);
  const std::vector<std::byte> state = save(*lane);
  auto plain = make(64);
  auto other = store->lane(8).value();
  for (KvCache* target : {plain.get(), other.get()}) {
    ASSERT_TRUE(restore(*target, state).ok());
    append(*target, 3);
    expect_content(*target, 7);
  }
  for (int i = 0; i < 5; ++i) append(*lane, 9);
  const auto size = state_size([&](StateWriter& to) { return lane->save(to); });
  EXPECT_EQ(size.status().code(), Code::kUnsupported);
  EXPECT_EQ(std::string(size.status().message()).find("layer 1 no longer holds the positions"), 0U);
}

TEST_P(CacheConformance, AStateThatDoesNotFitIsRefused) {
  auto cache = make(50);
  append(*cache, 20);
  const std::vector<std::byte> state = save(*cache);
  const auto expect_refused = [&](KvCache& other, Code code, const std::vector<std::byte>& bytes) {
    const Status status = restore(other, bytes);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(other.length(), 0);
  };
  auto small = make(19);
  expect_refused(*small, Code::kCacheFull, state);
  auto fewer = make(std::span(kLayers).first(2), 50, memory());
  expect_refused(*fewer.value(), Code::kInvalidArgument, state);
  for (const auto change : {&LayerShape::kv_heads, &LayerShape::k_dim, &LayerShape::v_dim,
                            &LayerShape::window, &LayerShape::rope_dims, &LayerShape::chunk}) {
    std::vector<LayerShape> shapes = kLayers;
    shapes[1].*change += 1;
    auto other = make(shapes, 50, memory());
    expect_refused(*other.value(), Code::kInvalidArgument, state);
  }
  for (const CacheKind& kind : cache_kinds()) {
    // No head here has a size that is turned, so q3:rotated is q3.
    const CacheFormat own = parse_cache_format(format()).value();
    if (kind.format == own.keys && kind.format == own.values) continue;
    auto other = make_cache(kind.name, kLayers, 50, memory());
    expect_refused(*other.value(), Code::kInvalidArgument, state);
  }
  // Damage, also under a checksum that is right; the first layer's numbers come after the frame of
  // 24 bytes, the cache's section of 16 and 16, and 16 of its own.
  auto other = make(50);
  for (size_t at = 0; at < state.size(); at += 1 + at / 32) {
    std::vector<std::byte> bytes = state;
    bytes[at] ^= std::byte{0x04};
    expect_refused(*other, Code::kFormat, bytes);
    bytes.resize(at);
    expect_refused(*other, Code::kFormat, bytes);
  }
  for (size_t at = 40; at < 56 + 16 + 40; at += 4) {
    for (const int32_t value : {-1, 0, 1, 99, INT32_MAX, INT32_MIN}) {
      int32_t old = 0;
      std::vector<std::byte> bytes = state;
      std::memcpy(&old, bytes.data() + at, sizeof(old));
      std::memcpy(bytes.data() + at, &value, sizeof(value));
      const uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
      std::memcpy(bytes.data() + bytes.size() - 8, &sum, sizeof(sum));
      const bool unused = at == 52 || at == 60;  // filling up, a section's spare number
      if (value == old || unused) continue;
      const Status status = restore(*other, bytes);
      EXPECT_FALSE(status.ok()) << "number at " << at << " is " << value;
      EXPECT_EQ(other->length(), 0);
    }
  }
  ASSERT_TRUE(restore(*other, state).ok());
  expect_content(*other, 20);
}

TEST_P(CacheConformance, RestoringMayRunOutOfMemory) {
  auto cache = make(50);
  append(*cache, 40);
  const std::vector<std::byte> state = save(*cache);
  for (int succeed = 0;; ++succeed) {
    auto other = make_paged(5);
    allocator_.fail_after(succeed);
    const Status status = restore(*other, state);
    allocator_.fail_after(-1);
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kOutOfMemory);
    EXPECT_EQ(other->length(), 0);
    ASSERT_TRUE(restore(*other, state).ok());
    expect_content(*other, 40);
    ASSERT_LT(succeed, 100);
  }
}

TEST_P(CacheConformance, SizesThatOverflowAreRefused) {
  const std::vector<LayerShape> huge = {{INT32_MAX, INT32_MAX, INT32_MAX}};
  const Status status = make(huge, INT32_MAX, allocator_).status();
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_NE(std::string(status.message()).find("2147483647 entries"), std::string::npos);
  if (tiered()) return;
  const std::vector<LayerShape> large = {{1 << 10, 1 << 20, 1 << 20}};
  EXPECT_EQ(make(large, 1 << 20, allocator_).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(allocator_.live_blocks(), 0u);
}

}  // namespace
}  // namespace gen::cache

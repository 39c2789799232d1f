// SPDX-License-Identifier: Apache-2.0
// Proves that a full chunk becomes the mean of its values and of its keys before rotation, turned
// to the chunk's middle, against a formula in complex numbers; that truncating is exact one chunk
// back and drops whole chunks further back; and random steps against an obvious model.
#include "engine/memory/host_memory.h"
#include "support/host_view.h"
#include "support/refusing_memory.h"
#include "cache/sequence/compressed_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/checksum.h"
#include "cache/sequence/cache_state.h"
#include "cache/sequence/restored_cache.h"
#include "cache/guard_allocator.h"
#include "cache/sequence/registry.h"
#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

using Row = std::vector<double>;

constexpr int32_t kHeads = 2;
constexpr int32_t kKeyDim = 6;  // four of which turn
constexpr int32_t kValueDim = 3;
const float kFrequencies[] = {1.0F, 0.03F};

/// Two layers, the second without rotary embedding.
std::vector<LayerShape> shapes(engine::RopeKind kind, const engine::RopeTable& table) {
  return {{kHeads, kKeyDim, kValueDim, 0, kind, 4, 0, &table},
          {kHeads, kKeyDim, kValueDim, 0, engine::RopeKind::kNone, 0}};
}

/// A head's key at a position: pairs are complex numbers that angle p * frequency turns.
Row turned(const Row& key, engine::RopeKind kind, double position) {
  Row out = key;
  for (size_t pair = 0; pair < 2 && kind != engine::RopeKind::kNone; ++pair) {
    const bool adjacent = kind == engine::RopeKind::kAdjacent;
    const size_t a = adjacent ? 2 * pair : pair;
    const size_t b = adjacent ? 2 * pair + 1 : pair + 2;
    const std::complex<double> z =
        std::complex<double>(key[a], key[b]) *
        std::polar(1.0, position * static_cast<double>(kFrequencies[pair]));
    out[a] = z.real();
    out[b] = z.imag();
  }
  return out;
}

/// Element `d` of head `h` of token `seed` in a layer, before rotation.
Row made_up(size_t layer, bool key, int32_t head, uint32_t seed) {
  std::minstd_rand random(1 + seed * 8 + static_cast<uint32_t>(layer) * 4 + (key ? 2U : 0U) +
                          static_cast<uint32_t>(head));
  random.discard(2);
  Row row(static_cast<size_t>(key ? kKeyDim : kValueDim));
  for (double& x : row) x = static_cast<double>(random()) / 1073741824.0 - 1.0;
  return row;
}

std::vector<std::byte> state_of(KvCache& cache) {
  const auto contents = [&cache](StateWriter& to) { return cache.save(to); };
  std::vector<std::byte> state(state_size(contents).value());
  EXPECT_TRUE(save_state(StateKind::kModelCache, contents, state).ok());
  return state;
}

class Compressed {
 public:
  Compressed(engine::RopeKind kind, int32_t chunk, int32_t capacity,
             engine::EngineMemory* memory = nullptr)
      : kind_(kind), chunk_(chunk), table_{kind, 4, kFrequencies, 1.0F} {
    if (memory == nullptr) memory = &static_cast<engine::EngineMemory&>(allocator_);
    cache_ =
        std::move(make_compressed_cache(shapes(kind, table_), capacity, chunk, *memory)).value();
  }

  KvCache& cache() { return *cache_; }
  GuardAllocator& allocator() { return allocator_; }
  [[nodiscard]] const std::vector<uint32_t>& tokens() const { return tokens_; }
  void adopt(std::unique_ptr<KvCache> other) { cache_ = std::move(other); }
  engine::RopeKind kind(size_t layer) const { return layer == 0 ? kind_ : engine::RopeKind::kNone; }

  void append(const std::vector<uint32_t>& seeds, bool commit = true) {
    for (size_t at = 0; at < seeds.size();) {
      const int32_t left = static_cast<int32_t>(seeds.size() - at);
      const int32_t n = std::min(left, cache_->plan_limit());
      auto plan = cache_->plan(n);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      for (size_t layer = 0; layer < 2; ++layer) {
        const engine::KvView view = host_view(*cache_, static_cast<int32_t>(layer), *plan).value();
        for (int32_t i = 0; i < n; ++i) {
          const uint32_t seed = seeds[at + static_cast<size_t>(i)];
          put(view.k, layer, true, plan->start + i, cache_->length() + i, seed);
          put(view.v, layer, false, plan->start + i, 0, seed);
        }
      }
      if (!commit) return;
      cache_->commit(*plan);
      tokens_.insert(tokens_.end(), seeds.begin() + static_cast<ptrdiff_t>(at),
                     seeds.begin() + static_cast<ptrdiff_t>(at) + n);
      at += static_cast<size_t>(n);
    }
  }

  std::vector<std::byte> save() const { return state_of(*cache_); }
  /// A cache of its own with what this one saves, or why there is none.
  Result<std::unique_ptr<KvCache>> restored(std::span<const std::byte> state, int32_t chunk) {
    GEN_ASSIGN(auto made,
               make_compressed_cache(shapes(kind_, table_), cache_->capacity(), chunk, allocator_));
    GEN_ASSIGN(StateReader reader, StateReader::open(state));
    const Status status = made->restore(reader);
    if (status.ok()) return made;
    EXPECT_EQ(made->length(), 0);
    return status;
  }

  void truncate(int32_t n) {
    ASSERT_TRUE(cache_->truncate(n).ok());
    tokens_.resize(static_cast<size_t>(cache_->length()));
  }

  /// Every entry is what its tokens make.
  void expect_content() {
    const auto length = static_cast<int32_t>(tokens_.size());
    ASSERT_EQ(cache_->length(), length);
    const int32_t chunks = length / chunk_;
    const CachePlan plan = cache_->plan(0).value();
    ASSERT_EQ(plan.start, chunks + length % chunk_);
    for (size_t layer = 0; layer < 2; ++layer) {
      const engine::KvView view = host_view(*cache_, static_cast<int32_t>(layer), plan).value();
      ASSERT_EQ(view.entries, plan.start);
      for (int32_t e = 0; e < view.entries; ++e) {
        const bool pooled = e < chunks;
        const int32_t first = pooled ? e * chunk_ : chunks * chunk_ + e - chunks;
        const int32_t n = pooled ? chunk_ : 1;
        ASSERT_EQ(view.positions[e], first + (n - 1) / 2);
        ASSERT_NEAR(view.log_weights[e], std::log(static_cast<double>(n)), 1e-6);
        for (int32_t head = 0; head < kHeads; ++head) {
          const Row key = mean(layer, true, head, first, n);
          expect_near(view.k, e, head, turned(key, kind(layer), first + 0.5 * (n - 1)));
          expect_near(view.v, e, head, mean(layer, false, head, first, n));
        }
      }
    }
  }

 private:
  void put(const engine::KvSide& side, size_t layer, bool key, int32_t entry, int32_t position,
           uint32_t seed) const {
    std::vector<float> row;
    for (int32_t head = 0; head < kHeads; ++head) {
      const Row made = made_up(layer, key, head, seed);
      for (double x : key ? turned(made, kind(layer), position) : made) {
        row.push_back(static_cast<float>(x));
      }
    }
    engine::kv_put(side, entry, kHeads, row.data());
  }
  [[nodiscard]] Row mean(size_t layer, bool key, int32_t head, int32_t first, int32_t n) const {
    Row sum(static_cast<size_t>(key ? kKeyDim : kValueDim), 0.0);
    for (int32_t i = first; i < first + n; ++i) {
      const Row one = made_up(layer, key, head, tokens_[static_cast<size_t>(i)]);
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += one[d] / n;
    }
    return sum;
  }
  static void expect_near(const engine::KvSide& side, int32_t entry, int32_t head,
                          const Row& want) {
    std::vector<float> got(want.size());
    engine::kv_get(side, entry, head, got.data());
    for (size_t d = 0; d < want.size(); ++d) {
      ASSERT_NEAR(static_cast<double>(got[d]), want[d], 1e-6) << "entry " << entry;
    }
  }

  engine::RopeKind kind_;
  int32_t chunk_;
  engine::RopeTable table_;
  GuardAllocator allocator_;
  std::unique_ptr<KvCache> cache_;
  std::vector<uint32_t> tokens_;
};

std::vector<uint32_t> seeds(uint32_t first, uint32_t n) {
  std::vector<uint32_t> list(n);
  for (uint32_t i = 0; i < n; ++i) list[i] = first + i;
  return list;
}

TEST(CompressedCache, FullChunksBecomeTheirMean) {
  for (const auto kind : {engine::RopeKind::kAdjacent, engine::RopeKind::kHalves}) {
    for (const int32_t chunk : {1, 2, 5, 16, 40}) {
      Compressed it(kind, chunk, 64);
      it.append(seeds(100, 3));
      it.expect_content();
      it.append(seeds(200, 38));
      it.expect_content();
      it.append(seeds(300, 23));
      it.expect_content();
      EXPECT_EQ(it.cache().plan(1).status().code(), Code::kCacheFull);
    }
  }
}

TEST(CompressedCache, PlansEndWithTheChunk) {
  Compressed it(engine::RopeKind::kHalves, 8, 64);
  EXPECT_EQ(it.cache().plan_limit(), 8);
  it.append(seeds(1, 11));
  EXPECT_EQ(it.cache().plan_limit(), 5);
  const Status status = it.cache().plan(6).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_STREQ(status.message(), "6 rows reach over the end of a chunk of 8, 5 may come");
  EXPECT_EQ(it.cache().plan(-1).status().code(), Code::kInvalidArgument);
  it.append(seeds(50, 5), false);  // a step that fails at the end of a chunk
  it.expect_content();
  it.append(seeds(60, 5));
  it.expect_content();
}

TEST(CompressedCache, TruncatingIsExactOneChunkBack) {
  Compressed it(engine::RopeKind::kAdjacent, 8, 64);
  it.append(seeds(1, 35));  // four chunks and three
  it.truncate(34);
  EXPECT_EQ(it.cache().length(), 34);
  it.expect_content();
  it.truncate(29);  // into the chunk closed last
  EXPECT_EQ(it.cache().length(), 29);
  it.expect_content();
  it.append(seeds(70, 10));
  it.expect_content();
  it.truncate(13);  // into one whose rows are gone
  EXPECT_EQ(it.cache().length(), 8);
  it.expect_content();
  it.append(seeds(90, 9));
  it.truncate(8);
  it.expect_content();
  it.truncate(5);  // the rows of chunk 1, not of chunk 0, were kept
  EXPECT_EQ(it.cache().length(), 0);
  it.expect_content();
}

// Each operation of a call is refused once. Nothing has changed then.
TEST(CompressedCache, IsAsItWasWhenOperationsAreRefused) {
  test::RefusingMemory memory;
  for (const uint32_t rows : {24U, 27U}) {  // three chunks, the last of them not pooled yet
    for (int32_t to = 1; to < static_cast<int32_t>(rows); ++to) {
      bool refused = true;
      for (size_t at = 0; refused; ++at) {
        Compressed it(engine::RopeKind::kHalves, 8, 64, &memory);
        it.append(seeds(1, rows));
        memory.refused = memory.operations + at;
        refused = false;
        try {
          it.truncate(to);
        } catch (const std::bad_alloc&) {
          refused = true;
        }
        memory.refused = test::RefusingMemory::kNone;
        it.expect_content();
        it.append(seeds(100, 20));
        it.expect_content();
        ASSERT_FALSE(HasFatalFailure()) << rows << " rows cut to " << to << ", operation " << at;
      }
    }
  }
}

TEST(CompressedCache, IsEmptyWhenRestoringIsRefused) {
  test::RefusingMemory memory;
  const engine::RopeTable table = {engine::RopeKind::kHalves, 4, kFrequencies, 1.0F};
  Compressed it(engine::RopeKind::kHalves, 8, 64);
  it.append(seeds(1, 29));
  const std::vector<std::byte> state = it.save();
  auto made = make_compressed_cache(shapes(engine::RopeKind::kHalves, table), 64, 8, memory);
  const std::vector<std::byte> empty = state_of(**made);
  bool refused = true;
  for (size_t at = 0; refused; ++at) {
    memory.refused = memory.operations + at;
    refused = false;
    try {
      StateReader reader = StateReader::open(state).value();
      ASSERT_TRUE((*made)->restore(reader).ok());
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    memory.refused = test::RefusingMemory::kNone;
    ASSERT_EQ(state_of(**made), refused ? empty : state) << "operation " << at;
    if (!refused) {
      EXPECT_GT(at, 4U);
    }
  }
}

// A chunk is pooled when the next rows come, and the model may have ended before.
TEST(CompressedCache, KeepsTheAnglesOfAModelThatEnds) {
  std::vector<float> frequencies(std::begin(kFrequencies), std::end(kFrequencies));
  engine::RopeTable table = {engine::RopeKind::kHalves, 4, frequencies.data(), 1.0F};
  const auto layers = shapes(engine::RopeKind::kHalves, table);
  const auto fill = [](KvCache& cache) {
    const CachePlan plan = cache.plan(4).value();
    for (int32_t e = 0; e < 4; ++e) {
      const std::vector<float> row(size_t{kHeads} * kKeyDim, static_cast<float>(e + 1));
      for (const int32_t layer : {0, 1}) {
        const engine::KvView view = host_view(cache, layer, plan).value();
        engine::kv_put(view.k, e, kHeads, row.data());
        engine::kv_put(view.v, e, kHeads, row.data());
      }
    }
    cache.commit(plan);
  };
  const auto make = [&] {
    return make_compressed_cache(layers, 64, 4, engine::system_memory()).value();
  };
  const auto key = [](KvCache& cache) {
    std::vector<float> head(kKeyDim);
    const engine::KvView view = host_view(cache, 0, cache.plan(0).value()).value();
    engine::kv_get(view.k, 0, 0, head.data());
    return head;
  };
  const auto first = make();
  const auto later = make();
  fill(*first);
  fill(*later);
  const std::vector<float> want = key(*first);
  frequencies.assign(frequencies.size(), 0.0F);
  table = {};
  EXPECT_EQ(key(*later), want);
}

TEST(CompressedCache, RandomStepsAgreeWithAModel) {
  const char* trials = std::getenv("GEN_TRIALS");
  const int steps = trials != nullptr ? std::atoi(trials) : 3000;
  std::mt19937 random(11);
  Compressed it(engine::RopeKind::kHalves, 7, 200);
  uint32_t next = 1;
  for (int step = 0; step < steps; ++step) {
    const auto length = static_cast<uint32_t>(it.tokens().size());
    switch (random() % 5) {
      case 4: {
        const std::vector<std::byte> state = it.save();
        it.adopt(std::move(it.restored(state, 7)).value());
        ASSERT_EQ(it.save(), state);
        break;
      }
      case 0:
        it.truncate(static_cast<int32_t>(random() % (length + 10)));
        break;
      case 1:
        if (length < 195) it.append(seeds(next, 1 + static_cast<uint32_t>(random() % 5)), false);
        break;
      case 2:
        it.adopt(std::move(it.cache().fork()).value());
        break;
      default: {
        const uint32_t n = std::min(1 + static_cast<uint32_t>(random() % 20), 200 - length);
        it.append(seeds(next, n));
        next += n;
      }
    }
    if (step % 64 == 0) it.expect_content();
    if (testing::Test::HasFatalFailure()) FAIL() << "step " << step;
  }
}

TEST(CompressedCache, AStateThatDoesNotFitIsRefused) {
  Compressed it(engine::RopeKind::kHalves, 8, 64);
  it.append(seeds(1, 29));
  const std::vector<std::byte> state = it.save();
  EXPECT_EQ(it.restored(state, 7).status().code(), Code::kInvalidArgument);
  // Neither goes into a cache that keeps all positions, nor the other way round.
  auto plain = make_cache("fp32", it.cache().layers(), 64, engine::system_memory()).value();
  auto reader = StateReader::open(state);
  EXPECT_EQ(plain->restore(*reader).code(), Code::kInvalidArgument);
  EXPECT_EQ(it.restored(state_of(*plain), 8).status().code(), Code::kInvalidArgument);
  // The chunk and the length, behind the frame of 24 bytes and 16 of the section's own.
  for (const auto& [at, value] : {std::pair{40, 4}, std::pair{44, 30}, std::pair{44, -1},
                                  std::pair{44, 5}, std::pair{44, INT32_MAX}}) {
    std::vector<std::byte> bytes = state;
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    const uint64_t sum = checksum(std::span(bytes).first(bytes.size() - 8));
    std::memcpy(bytes.data() + bytes.size() - 8, &sum, sizeof(sum));
    EXPECT_FALSE(it.restored(bytes, 8).ok()) << at << " " << value;
  }
  it.adopt(std::move(it.restored(state, 8)).value());
  it.expect_content();
  it.truncate(18);  // into the chunk closed last, whose rows came along
  it.expect_content();
}

TEST(CompressedCache, MemoryAndFailures) {
  const engine::RopeTable table = {engine::RopeKind::kHalves, 4, kFrequencies, 1.0F};
  const auto layers = shapes(engine::RopeKind::kHalves, table);
  GuardAllocator allocator;
  {
    auto cache = std::move(make_compressed_cache(layers, 6400, 64, allocator)).value();
    EXPECT_EQ(cache->memory().resident, allocator.live_bytes());
    EXPECT_LT(cache->memory().resident, 300 * cache->traits().bytes_per_entry);
    EXPECT_TRUE(cache->traits().lossy);
    EXPECT_STREQ(cache->traits().kind, "compressed");
    allocator.fail_after(1);
    EXPECT_EQ(cache->fork().status().code(), Code::kOutOfMemory);
  }
  EXPECT_EQ(allocator.live_blocks(), 0U);
  const auto refused = [&](const std::vector<LayerShape>& some, int32_t capacity, int32_t chunk) {
    return std::string(
        make_compressed_cache(some, capacity, chunk, engine::system_memory()).status().message());
  };
  EXPECT_EQ(refused(layers, 10, 0), "chunks of 0 positions");
  EXPECT_EQ(refused(layers, 0, 4), "cache capacity 0 is below 1");
  auto changed = layers;
  changed[0].rope_table = nullptr;
  EXPECT_EQ(refused(changed, 10, 4),
            "the keys of layer 0 cannot be rotated to other positions, so they cannot be averaged");
  changed = layers;
  changed[1].window = 3;
  EXPECT_EQ(refused(changed, 10, 4),
            "layer 1 has a window or chunks, whose entries cannot be averaged");
}

/// A state of `positions` positions in chunks of `chunk` that gives a shape of any size and no
/// bytes.
std::vector<std::byte> boast(int32_t chunk, int32_t positions, int32_t entries, int32_t kept) {
  const auto part = [](StateWriter& to, int32_t n) -> Status {
    GEN_TRY(to.section("CACH", 3 * sizeof(int32_t), [n](StateWriter& out) {
      return out.numbers({1, n, n});
    }));
    return to.section("LAYR", 10 * sizeof(int32_t), [](StateWriter& out) {
      return out.numbers({1 << 20, 1 << 20, 1 << 20, 0, 0, 0, 0, 0, 0, 0});
    });
  };
  const auto contents = [&](StateWriter& to) -> Status {
    GEN_TRY(to.section(kPoolSection, 2 * sizeof(int32_t), [chunk, positions](StateWriter& out) {
      return out.numbers({chunk, positions});
    }));
    GEN_TRY(part(to, entries));
    return part(to, kept);
  };
  std::vector<std::byte> state(state_size(contents).value());
  EXPECT_TRUE(save_state(StateKind::kModelCache, contents, state).ok());
  return state;
}

/// What a state says is held against its size before anything is made for it.
TEST(CompressedCache, RefusesShapesThatAStateHasNoBytesFor) {
  for (const int32_t chunk : {-1, 0, 1, 4, 1 << 30}) {
    for (const int32_t positions : {-5, 1, 100, 1 << 30}) {
      const std::vector<std::byte> state = boast(chunk, positions, 0, 0);
      auto reader = StateReader::open(state);
      ASSERT_TRUE(reader.ok());
      int made = 0;
      const auto make = [&made](const SavedOutline&) -> Result<std::unique_ptr<KvCache>> {
        ++made;
        return Status(Code::kOutOfMemory, "made");
      };
      const auto restored = restored_cache(*reader, 1, make);
      EXPECT_EQ(restored.status().code(), Code::kFormat) << chunk << " " << positions;
      EXPECT_EQ(made, 0);
    }
  }
}

}  // namespace
}  // namespace gen::cache

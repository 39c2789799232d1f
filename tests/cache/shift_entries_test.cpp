// SPDX-License-Identifier: Apache-2.0
// Proves that after a shift of a plain cache each key is what its new position asks for, as near as
// its type rounds, that values and what stands before are what they were bit for bit, and that
// caches which cannot do it say so. Angles are computed here, in double precision.
#include "engine/memory/host_memory.h"
#include "support/host_view.h"
#include "cache/sequence/shift_entries.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cache/sequence/cache_state.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/window_cache.h"
#include "cache/state/state_file.h"
#include "cache/window_start.h"
#include "engine/kv/codec.h"

namespace gen::cache {
namespace {

using engine::RopeKind;
using engine::RopeTable;

const std::vector<float> kFrequencies{1.0F, 0.37F, 0.05F, 0.0061F};

struct World {
  World() {
    adjacent = {RopeKind::kAdjacent, 8, kFrequencies.data(), 1.0F};
    halves = {RopeKind::kHalves, 6, kFrequencies.data(), 1.3F};
    layers = {
        {2, 8, 5, 0, RopeKind::kAdjacent, 8, 0, &adjacent},
        {3, 16, 16, 12, RopeKind::kHalves, 6, 0, &halves},
        {1, 5, 7, 0, RopeKind::kNone, 0, 0, nullptr},
        {1, 8, 32, 0, RopeKind::kAdjacent, 8, 0, &adjacent},
    };
  }
  RopeTable adjacent;
  RopeTable halves;
  std::vector<LayerShape> layers;
};

double element(int32_t layer, int32_t token, int32_t head, int32_t i, bool value) {
  const auto stream = static_cast<uint64_t>(((layer * 8 + head) * 64 + i) * 2 + (value ? 1 : 0));
  return 2.0 * uniform_double(3, stream, static_cast<uint64_t>(token)) - 1.0;
}

// The key of a token as rotary embedding leaves it at a position.
std::vector<double> key_of(const LayerShape& shape, int32_t layer, int32_t token, int32_t head,
                           int32_t position) {
  std::vector<double> x;
  for (int32_t i = 0; i < shape.k_dim; ++i) x.push_back(element(layer, token, head, i, false));
  if (shape.rope == RopeKind::kNone) return x;
  const int32_t pairs = shape.rope_dims / 2;
  for (int32_t i = 0; i < pairs; ++i) {
    const bool adjacent = shape.rope == RopeKind::kAdjacent;
    double& a = x[static_cast<size_t>(adjacent ? 2 * i : i)];
    double& b = x[static_cast<size_t>(adjacent ? 2 * i + 1 : i + pairs)];
    const double angle = position * static_cast<double>(kFrequencies[static_cast<size_t>(i)]);
    const double turned = a * std::cos(angle) - b * std::sin(angle);
    b = a * std::sin(angle) + b * std::cos(angle);
    a = turned;
  }
  return x;
}

// Appends one entry to all layers: a token at the next position.
void append(KvCache& cache, int32_t token) {
  const CachePlan plan = cache.plan(1).value();
  for (size_t l = 0; l < cache.layers().size(); ++l) {
    const auto layer = static_cast<int32_t>(l);
    const LayerShape& shape = cache.layers()[l];
    const engine::KvView view = host_view(cache, layer, plan).value();
    std::vector<float> k;
    std::vector<float> v;
    for (int32_t head = 0; head < shape.kv_heads; ++head) {
      for (const double x : key_of(shape, layer, token, head, plan.start)) {
        k.push_back(static_cast<float>(x));
      }
      for (int32_t i = 0; i < shape.v_dim; ++i) {
        v.push_back(static_cast<float>(element(layer, token, head, i, true)));
      }
    }
    engine::kv_put(view.k, plan.start, shape.kv_heads, k.data());
    engine::kv_put(view.v, plan.start, shape.kv_heads, v.data());
  }
  cache.commit(plan);
}

std::vector<float> read(KvCache& cache, int32_t layer, int32_t entry, bool values) {
  const CachePlan held = cache.plan(0).value();
  const engine::KvView view = host_view(cache, layer, held).value();
  const engine::KvSide& side = values ? view.v : view.k;
  const auto dim = static_cast<size_t>(side.head_dim);
  std::vector<float> row(dim * static_cast<size_t>(view.kv_heads));
  for (int32_t head = 0; head < view.kv_heads; ++head) {
    engine::kv_get(side, entry, head, row.data() + static_cast<size_t>(head) * dim);
  }
  return row;
}

// What a cache holds at an entry must be what `token` gives there. `rounding` is that of one
// storing of a key, relative; a pair has a length of at most sqrt(2).
void expect_entry(KvCache& cache, int32_t entry, int32_t token, double rounding, double values) {
  for (size_t l = 0; l < cache.layers().size(); ++l) {
    const auto layer = static_cast<int32_t>(l);
    const LayerShape& shape = cache.layers()[l];
    const std::vector<float> k = read(cache, layer, entry, false);
    const std::vector<float> v = read(cache, layer, entry, true);
    size_t at = 0;
    for (int32_t head = 0; head < shape.kv_heads; ++head) {
      for (const double x : key_of(shape, layer, token, head, entry)) {
        ASSERT_NEAR(static_cast<double>(k[at++]), x, rounding) << layer << " " << entry;
      }
    }
    at = 0;
    for (int32_t head = 0; head < shape.kv_heads; ++head) {
      for (int32_t i = 0; i < shape.v_dim; ++i) {
        ASSERT_NEAR(static_cast<double>(v[at++]), element(layer, token, head, i, true), values);
      }
    }
  }
}

struct Kind {
  const char* name;
  double rounding;  // of a key that was stored, turned and stored again
  double values;
};

class ShiftEntries : public ::testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Kinds, ShiftEntries,
                         ::testing::Values(Kind{"fp32", 3e-7, 1e-7}, Kind{"fp16", 1.5e-3, 5e-4},
                                           Kind{"fp32/q4", 3e-7, 0.2},
                                           Kind{"fp16/fp32", 1.5e-3, 1e-7}),
                         [](const auto& row) {
                           std::string name = row.param.name;
                           for (char& c : name) c = c == '/' ? '_' : c;
                           return name;
                         });

TEST_P(ShiftEntries, KeysAreThoseOfTheirNewPositions) {
  const World world;
  for (const std::array<int32_t, 3>& one : std::vector<std::array<int32_t, 3>>{
           {40, 4, 18}, {40, 0, 1}, {40, 39, 1}, {40, 0, 40}, {700, 5, 340}, {700, 0, 17}}) {
    const auto [length, first, n] = one;
    auto cache = make_cache(GetParam().name, world.layers, 720, engine::system_memory()).value();
    EXPECT_NE(cache->shifting(), nullptr);
    for (int32_t token = 0; token < length; ++token) append(*cache, token);
    std::vector<std::vector<float>> before;  // keys and values of what stays, values of the rest
    for (int32_t layer = 0; layer < 4; ++layer) {
      for (int32_t entry = 0; entry < length; ++entry) {
        if (entry < first) before.push_back(read(*cache, layer, entry, false));
        if (entry < first || entry >= first + n) before.push_back(read(*cache, layer, entry, true));
      }
    }
    ASSERT_TRUE(cache->shifting()->shift(first, n).ok());
    ASSERT_EQ(cache->length(), length - n);
    size_t at = 0;
    for (int32_t layer = 0; layer < 4; ++layer) {
      for (int32_t entry = 0; entry < length - n; ++entry) {
        if (entry < first) {
          ASSERT_EQ(read(*cache, layer, entry, false), before[at++]);
        }
        ASSERT_EQ(read(*cache, layer, entry, true), before[at++]) << layer << " " << entry;
      }
    }
    for (int32_t token = 1000; token < 1020; ++token) append(*cache, token);  // and goes on
    for (int32_t entry = 0; entry < cache->length(); ++entry) {
      const int32_t token = entry < first        ? entry
                            : entry < length - n ? entry + n
                                                 : 1000 + entry - (length - n);
      expect_entry(*cache, entry, token, GetParam().rounding, GetParam().values);
    }
  }
}

// What the next row sees of each layer must be equal in both, to the bit.
void expect_same_windows(KvCache& windowed, KvCache& full) {
  ASSERT_EQ(windowed.length(), full.length());
  for (size_t l = 0; l < full.layers().size(); ++l) {
    const auto layer = static_cast<int32_t>(l);
    const int32_t reach = window_reach(full.layers()[l]);
    const int32_t from = window_start(full.length(), reach < 0 ? 100 : reach);
    for (int32_t entry = from; entry < full.length(); ++entry) {
      ASSERT_EQ(read(windowed, layer, entry, false), read(full, layer, entry, false)) << entry;
      ASSERT_EQ(read(windowed, layer, entry, true), read(full, layer, entry, true)) << entry;
    }
  }
}

// Rows come, go and are dropped at random in a cache that keeps windows, and in one that keeps all.
TEST(ShiftWindows, MoveAsInAFullCache) {
  constexpr int32_t kCapacity = 640;
  constexpr int32_t kLead = 9;
  int32_t shifts = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    World world;
    world.layers[0].window = static_cast<int32_t>(random() % 140) + 1;
    world.layers[3].window = world.layers[0].window;
    const char* const format = seed % 3 == 0 ? "fp16" : "fp32";
    WindowRoom room;
    room.rows = static_cast<int32_t>(random() % 40) + 1;
    room.rewind = static_cast<int32_t>(random() % 30);
    room.copies = static_cast<int32_t>(random() % 3);
    room.lead = kLead;
    auto windowed =
        make_windowed_cache(format, world.layers, kCapacity, room, engine::system_memory()).value();
    auto full = make_cache(format, world.layers, kCapacity, engine::system_memory()).value();
    ASSERT_NE(windowed->shifting(), nullptr);
    ASSERT_LT(windowed->memory().resident, full->memory().resident);
    int32_t token = 0;
    for (int32_t step = 0; step < 24; ++step) {
      for (auto n = static_cast<int32_t>(random() % 300); n > 0; --n) {
        if (full->length() == kCapacity) break;
        append(*windowed, token);
        append(*full, token++);
      }
      if (random() % 3 == 0) windowed->remember(windowed->length(), SnapshotPlace::kBorder);
      if (random() % 3 == 0) {
        const int32_t most = std::min(room.rewind, full->length());
        const int32_t n =
            full->length() - static_cast<int32_t>(random() % static_cast<uint32_t>(most + 1));
        ASSERT_TRUE(windowed->truncate(n).ok());
        ASSERT_TRUE(full->truncate(n).ok());
      }
      if (random() % 6 == 0) {  // as far as a copy goes back, if there is one
        ASSERT_TRUE(windowed->truncate(static_cast<int32_t>(random() % kCapacity)).ok());
        ASSERT_TRUE(full->truncate(windowed->length()).ok());
        ASSERT_NO_FATAL_FAILURE(expect_same_windows(*windowed, *full));
      }
      if (random() % 4 == 0) windowed = windowed->fork().value();
      const int32_t held = full->length();
      const auto first = static_cast<int32_t>(random() % (kLead + 1));
      const int32_t n =
          random() % 2 == 0 ? (held - first) / 2 : static_cast<int32_t>(random() % 70);
      const bool slides =
          std::all_of(world.layers.begin(), world.layers.end(), [&](const LayerShape& layer) {
            return window_reach(layer) < 0 || window_start(held - n, window_reach(layer)) >= first;
          });
      if (n < 1 || n > held - first || !slides) continue;
      ASSERT_TRUE(windowed->shifting()->shift(first, n).ok());
      ASSERT_TRUE(full->shifting()->shift(first, n).ok());
      ++shifts;
      ASSERT_NO_FATAL_FAILURE(expect_same_windows(*windowed, *full));
    }
    ASSERT_NO_FATAL_FAILURE(expect_same_windows(*windowed, *full));
  }
  EXPECT_GT(shifts, 80);
}

// A state has no more than the window, which lies elsewhere in its tile after a shift.
TEST(ShiftWindows, MoveWhatAStateHas) {
  World world;
  world.layers[0].window = world.layers[3].window = 7;
  WindowRoom room;
  room.rows = 8;
  room.rewind = 0;
  room.lead = 4;
  const auto make = [&] {
    return make_windowed_cache("fp32", world.layers, 240, room, engine::system_memory()).value();
  };
  for (int32_t length = 200; length < 216; ++length) {
    auto full = make_cache("fp32", world.layers, 240, engine::system_memory()).value();
    auto cache = make();
    for (int32_t token = 0; token < length; ++token) {
      append(*cache, token);
      append(*full, token);
    }
    const auto contents = [&cache](StateWriter& to) { return cache->save(to); };
    std::vector<std::byte> state(state_size(contents).value());
    ASSERT_TRUE(save_state(StateKind::kModelCache, contents, state).ok());
    auto loaded = make();
    auto reader = StateReader::open(state);
    ASSERT_TRUE(reader.ok() && loaded->restore(*reader).ok());
    ASSERT_TRUE(loaded->shifting()->shift(4, 98 + length % 3).ok()) << length;
    ASSERT_TRUE(full->shifting()->shift(4, 98 + length % 3).ok());
    ASSERT_NO_FATAL_FAILURE(expect_same_windows(*loaded, *full));
  }
}

TEST(ShiftWindows, RefuseWhatTheyLack) {
  World world;
  world.layers.resize(2);
  world.layers[0].window = world.layers[1].window = 50;
  WindowRoom room{4, 0, 0, 0};
  auto cache =
      make_windowed_cache("fp32", world.layers, 400, room, engine::system_memory()).value();
  for (int32_t token = 0; token < 400; ++token) append(*cache, token);
  EXPECT_EQ(cache->shifting()->shift(300, 60).code(), Code::kUnsupported);
  EXPECT_EQ(cache->shifting()->shift(401, 1).code(), Code::kInvalidArgument);
  ASSERT_EQ(cache->length(), 400);
  for (int32_t entry = 360; entry < 400; ++entry) expect_entry(*cache, entry, entry, 1e-6, 1e-7);
  ASSERT_TRUE(cache->shifting()->shift(4, 198).ok());
  for (int32_t entry = 160; entry < 202; ++entry) {
    expect_entry(*cache, entry, entry + 198, 1e-6, 1e-7);
  }
  // Half of a context of 80 positions leaves less than the window.
  EXPECT_TRUE(make_windowed_cache("fp32", world.layers, 164, room, engine::system_memory())
                  .value()
                  ->wants_points() == false);
}

TEST(ShiftCache, RefusesWhatIsNotHeldAndChangesNothing) {
  const World world;
  auto cache = make_cache("fp32", world.layers, 32, engine::system_memory()).value();
  for (int32_t token = 0; token < 10; ++token) append(*cache, token);
  for (const auto& [first, n] : std::vector<std::array<int32_t, 2>>{
           {-1, 1}, {0, -1}, {0, 11}, {10, 1}, {11, 0}, {5, INT32_MAX}, {INT32_MAX, INT32_MAX}}) {
    EXPECT_EQ(cache->shifting()->shift(first, n).code(), Code::kInvalidArgument)
        << first << " " << n;
  }
  EXPECT_TRUE(cache->shifting()->shift(10, 0).ok());
  EXPECT_EQ(cache->length(), 10);
  for (int32_t entry = 0; entry < 10; ++entry) expect_entry(*cache, entry, entry, 1e-6, 1e-7);
}

TEST(ShiftCache, KnowsWhoCannot) {
  World world;
  const auto can = [&](const char* kind) {
    return make_cache(kind, world.layers, 32, engine::system_memory()).value()->shifting() !=
           nullptr;
  };
  EXPECT_TRUE(can("fp16"));
  EXPECT_FALSE(can("fp8"));
  EXPECT_FALSE(can("q4/fp32"));
  world.layers.resize(2);  // heads that can be turned
  world.layers[0].k_dim = 16;
  EXPECT_FALSE(can("fp32:hadamard"));
  EXPECT_TRUE(can("fp32"));
  world.layers[1].chunk = 8;
  EXPECT_FALSE(can("fp32"));
  world.layers[1].chunk = 0;
  world.layers[1].rope_table = nullptr;
  EXPECT_FALSE(can("fp32"));
}

}  // namespace
}  // namespace gen::cache

// SPDX-License-Identifier: Apache-2.0
// Windows in rings (cache/sequence/window_cache.h) against caches that keep everything: random
// programs of rows, drafts of which some are kept, points, cuts, forks and states, for windows that
// are smaller and larger than segments and prompt chunks. After each step the next logits have the
// bits of a full cache that holds the same text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache/sequence/cache_state.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/window_cache.h"
#include "cache/state/state_file.h"
#include "engine/memory/host_memory.h"
#include "support/counting_allocator.h"
#include "support/loaded_tiny.h"
#include "support/sanitized.h"

namespace gen::model {
namespace {

using Cache = std::unique_ptr<cache::KvCache>;

constexpr int32_t kContext = 700;

struct Case {
  int32_t window;
  int32_t chunk;
  int32_t rows;
  int32_t rewind;
  int32_t copies = 0;
};

std::vector<std::byte> state_of(cache::KvCache& cache) {
  const auto contents = [&cache](cache::StateWriter& to) { return cache.save(to); };
  std::vector<std::byte> state(cache::state_size(contents).value());
  EXPECT_TRUE(cache::save_state(cache::StateKind::kModelCache, contents, state).ok());
  return state;
}

/// Block sizes of a pool, or 0 for rings. A pool may lie in two memories.
struct Form {
  const char* kind;
  int32_t block_size = 0;
  bool two = false;
};

class WindowCaches : public testing::TestWithParam<Form> {
 protected:
  explicit WindowCaches() = default;
  void make(const Case& of) {
    of_ = of;
    pool_ = nullptr;
    test::TinyModelSpec spec;
    spec.layers = 3;
    spec.context = kContext;
    spec.window = of.window;
    spec.local = {1, 0, 1};
    spec.chunk = of.chunk;
    model_ = std::make_unique<test::LoadedTiny>(test::TinyModel(spec));
  }
  [[nodiscard]] Cache windowed() const {
    const auto layers = model_->model().layer_shapes();
    const Form form = GetParam();
    if (form.block_size > 0) {
      if (pool_ == nullptr) {
        std::vector<engine::EngineMemory*> memories(layers.size(), &engine::system_memory());
        if (form.two) memories[1] = memories[2] = &other_;
        pool_ = cache::CachePool::create(form.kind, layers, form.block_size, 8, memories,
                                         {of_.rewind, of_.copies, of_.rows})
                    .value();
      }
      return cache::make_paged_cache(pool_, kContext).value();
    }
    auto made = cache::make_windowed_cache(
        form.kind, layers, kContext, {of_.rows, of_.rewind, of_.copies}, engine::system_memory());
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }
  [[nodiscard]] Cache full() const { return model_->cache(GetParam().kind, kContext); }

  void expect_blocks(cache::KvCache& cache) const {
    const int32_t size = GetParam().block_size;
    const cache::BlockPool& pool = pool_->blocks();
    for (int32_t at = 0; at < kContext; at += 20) {
      (void)model_->feed(cache, std::vector<int32_t>(20, 3));
      const int32_t length = at + 20;
      // Two layers keep what lies this far behind the last pass, and one all; all of them take
      // blocks of one size.
      const int32_t tile = size % engine::kKvTile == 0 ? 0 : engine::kKvTile - 1;
      const int32_t far = of_.window - 1 + tile + std::max(of_.rewind, size);
      const int32_t first = std::max(at - far, 0) / engine::kKvTile * engine::kKvTile / size;
      const int32_t end = (length + size - 1) / size;
      const size_t window = pool_->reaches()[0] >= 0 ? pool.allocated(0) : pool.allocated(1);
      const size_t whole = pool_->reaches()[0] >= 0 ? pool.allocated(1) : pool.allocated(0);
      // In two memories one block has both layers with a window, each in its own.
      const size_t bins = GetParam().two ? 1 : 2;
      EXPECT_EQ(window, bins * static_cast<size_t>(end - first)) << length;
      EXPECT_EQ(whole, static_cast<size_t>(end)) << length;
      EXPECT_EQ(cache.memory().resident, (window + whole) * pool.block_bytes());
    }
    // A group's fragmentation is of its own last blocks.
    const double rest = static_cast<double>(kContext % size);
    const double room = static_cast<double>((kContext + size - 1) / size * size);
    EXPECT_NEAR(pool.fragmentation(pool_->reaches()[0] >= 0 ? 1 : 0),
                rest == 0 ? 0 : (size - rest) / room, 1e-9);
  }

  Case of_ = {};
  mutable engine::HostMemory other_;
  mutable std::shared_ptr<cache::CachePool> pool_;
  std::unique_ptr<test::LoadedTiny> model_;
};

std::string name_of(const testing::TestParamInfo<Form>& each) {
  const std::string size = std::to_string(each.param.block_size);
  return each.param.kind + (each.param.block_size > 0 ? "_blocks_of_" + size : std::string()) +
         (each.param.two ? "_in_two_memories" : "");
}

INSTANTIATE_TEST_SUITE_P(Formats, WindowCaches,
                         testing::Values(Form{"fp32"}, Form{"fp16"}, Form{"fp8"}, Form{"q4"},
                                         Form{"q3"}, Form{"fp32", 16}, Form{"fp32", 7},
                                         Form{"q4", 8}, Form{"fp16", 100}, Form{"fp16", 8, true}),
                         name_of);

/// A text, a cache that lets entries go, and one that does not.
struct Pair {
  std::vector<int32_t> text;
  Cache windowed;
  Cache full;
  int32_t point = 0;  // the newest
};

TEST_P(WindowCaches, HaveTheBitsOfFullOnes) {
  const char* const trials = std::getenv("GEN_TRIALS");
  const int n_trials = trials != nullptr ? std::atoi(trials) : 6;
  const Case cases[] = {{5, 0, 8, 4},        {16, 0, 5, 0},       {17, 0, 16, 3},
                        {40, 0, 24, 9},      {64, 0, 40, 20},     {130, 0, 16, 0},
                        {7, 0, 8, 4, 2},     {32, 0, 40, 9, 1},   {33, 0, 16, 20, 3},
                        {100, 0, 130, 0, 1}, {100, 0, 24, 17, 2}, {0, 32, 24, 9, 2}};
  int exact = 0;
  int anew = 0;
  int copied = 0;
  for (const Case& of : cases) {
    make(of);
    for (int trial = 0; trial < n_trials; ++trial) {
      const int32_t sees = std::max(of.window, of.chunk);
      SCOPED_TRACE(testing::Message() << "window " << sees << ", trial " << trial);
      std::mt19937 random(static_cast<uint32_t>(trial * 31 + sees + of.copies));
      const auto draw = [&](int32_t least, int32_t most) {
        return std::uniform_int_distribution<int32_t>(least, most)(random);
      };
      std::vector<Pair> pairs;
      pairs.push_back({{}, windowed(), full()});
      ASSERT_EQ(pairs[0].windowed->wants_points(), of.copies > 0);
      for (int step = 0; step < 60; ++step) {
        Pair& pair = pairs[static_cast<size_t>(draw(0, static_cast<int32_t>(pairs.size()) - 1))];
        const int32_t length = pair.windowed->length();
        ASSERT_EQ(length, static_cast<int32_t>(pair.text.size()));
        switch (draw(0, 10)) {
          case 0: {  // a cut
            if (length == 0) break;
            const int32_t far = sees + (draw(0, 1) == 0 ? 0 : 2 * (of.rows + of.rewind + 40));
            const int32_t n = draw(std::max(0, length - far), length - 1);
            ASSERT_TRUE(pair.windowed->truncate(n).ok());
            const int32_t left = pair.windowed->length();
            EXPECT_TRUE(left <= n && (n < pair.point || left >= pair.point))
                << n << " " << pair.point;
            if (of.copies == 0) {
              EXPECT_TRUE(left == n || left == 0);
            }
            (left == n ? exact : anew) += 1;
            if (left < n && left > 0) ++copied;
            ASSERT_TRUE(pair.full->truncate(left).ok());
            pair.text.resize(static_cast<size_t>(left));
            if (pair.point > left) pair.point = 0;
            break;
          }
          case 10: {  // a point, anywhere in the last rows
            const int32_t n = draw(std::max(0, length - of.rows), length);
            if (n < pair.point) break;
            const bool border = n == length || draw(0, 1) == 0;
            pair.windowed->remember(
                n, border ? cache::SnapshotPlace::kBorder : cache::SnapshotPlace::kPlain);
            // Behind a cut its window may be gone. The newest border stays until it is cut.
            if (of.copies > 0 && border) pair.point = n == length ? n : 0;
            EXPECT_LE(pair.windowed->memory().resident, pair.windowed->max_resident());
            break;
          }
          case 1: {  // a fork
            if (pairs.size() >= 3) break;
            Pair fork = {pair.text, pair.windowed->fork().value(), pair.full->fork().value(),
                         pair.point};
            pairs.push_back(std::move(fork));
            break;
          }
          case 2: {  // a state, in another one of its kind, which has the same again
            if (draw(0, 5) != 0) break;  // it has no points
            Cache loaded = windowed();
            const std::vector<std::byte> state = state_of(*pair.windowed);
            auto reader = cache::StateReader::open(state).value();
            ASSERT_TRUE(loaded->restore(reader).ok());
            EXPECT_EQ(state_of(*loaded), state);
            pair.windowed = std::move(loaded);
            pair.point = 0;
            break;
          }
          case 3: {                      // that of one that has everything
            if (draw(0, 5) != 0) break;  // it has no points
            Cache loaded = windowed();
            const std::vector<std::byte> state = state_of(*pair.full);
            auto reader = cache::StateReader::open(state).value();
            ASSERT_TRUE(loaded->restore(reader).ok());
            // It may have a tile more that shifts, and pools of other blocks, would need.
            EXPECT_GE(state_of(*loaded).size(), state_of(*pair.windowed).size());
            pair.windowed = std::move(loaded);
            pair.point = 0;
            break;
          }
          default: {  // rows, of which a first part is kept
            const int32_t limit = GetParam().block_size > 0 ? of.rows : pair.windowed->plan_limit();
            const int32_t most = std::min(limit, kContext - length);
            if (most < 1) break;
            const int32_t n = draw(1, std::min(most, draw(0, 2) == 0 ? most : 7));
            std::vector<int32_t> more;
            for (int32_t i = 0; i < n; ++i) more.push_back(draw(0, 49));
            const int32_t kept = draw(0, 2) == 0 ? draw(0, n) : n;
            std::vector<float> logits[2];
            for (const bool other : {false, true}) {
              cache::KvCache& cache = other ? *pair.full : *pair.windowed;
              test::OwnedBatch batch;
              ASSERT_TRUE(batch.add(cache, more).ok());
              const Status ran = model_->model().forward(batch.finish(50));
              ASSERT_TRUE(ran.ok()) << ran.message();
              logits[other ? 1 : 0] = batch.results(50);
              test::OwnedBatch::commit(batch.sequences[0], kept);
            }
            ASSERT_EQ(logits[0], logits[1]) << n << " rows behind " << length;
            pair.text.insert(pair.text.end(), more.begin(), more.begin() + kept);
          }
        }
      }
    }
  }
  EXPECT_GT(exact, 10 * n_trials / 6);
  if (GetParam().block_size < 50) {  // larger blocks are seldom given back here
    EXPECT_GT(anew, 10 * n_trials / 6);
    EXPECT_GE(copied, n_trials / 3);
  }
  if (pool_ == nullptr) return;
  EXPECT_EQ(pool_->blocks().available(), pool_->blocks().capacity());
}

// However far that is, in texts of about a window and of many, in chunks of every size.
TEST_P(WindowCaches, ComeBackToPoints) {
  test::Thinned thinned(3);
  for (const int32_t window : {7, 32, 33, 100}) {
    for (const int32_t chunk : {window == 7 ? 1 : 8, 40}) {
      make({window, 0, chunk, 20, 2});
      for (const int32_t point : {window - 1, window, window + 1, 2 * window, 230}) {
        if (thinned.skips()) continue;
        SCOPED_TRACE(testing::Message() << window << " in chunks of " << chunk << " to " << point);
        const Cache cache = windowed();
        const Cache all = full();
        std::vector<int32_t> text;
        while (cache->length() < 480) {
          std::vector<int32_t> more;
          for (int32_t i = 0; i < std::min(chunk, 480 - cache->length()); ++i) {
            more.push_back((cache->length() * 7 + i * i) % 50);
          }
          const int32_t before = cache->length();
          (void)model_->feed(*cache, more);
          (void)model_->feed(*all, more);
          // The whole window is in the ring until the next pass.
          if (before < point && cache->length() >= point) {
            cache->remember(point, cache::SnapshotPlace::kBorder);
          }
        }
        // To a few positions before it, then behind it.
        for (const int32_t to : {point + 100, point, std::max(1, point - 20)}) {
          const Cache other = cache->fork().value();
          const Cache other_full = all->fork().value();
          ASSERT_TRUE(other->truncate(to).ok());
          const int32_t left = other->length();
          EXPECT_TRUE(left == std::min(to, point) || left == to) << left << " of " << to;
          ASSERT_TRUE(other_full->truncate(other->length()).ok());
          for (int32_t row = 0; row < 20; ++row) {
            const std::vector<int32_t> next = {row};
            ASSERT_EQ(model_->feed(*other, next), model_->feed(*other_full, next)) << to;
          }
        }
        EXPECT_GT(cache->memory().resident, windowed()->memory().resident);
      }
    }
  }
}

// The two borders behind which a chat goes on stay, and what others there were is gone.
TEST_P(WindowCaches, KeepTheNewestPoints) {
  if (GetParam().block_size > 0) return;  // points of pools are blocks, and no copies
  make({17, 0, 8, 0, 2});
  const Cache cache = windowed();
  const size_t ring = cache->memory().resident;
  const size_t copy = (cache->max_resident() - ring) / 2;
  std::vector<int32_t> text(8, 5);
  for (int i = 1; i <= 60; ++i) {
    (void)model_->feed(*cache, text);
    if (i % 10 == 5) cache->remember(8 * i, cache::SnapshotPlace::kBorder);
  }
  EXPECT_EQ(cache->memory().resident, ring + 2 * copy);
  const Cache fork = cache->fork().value();
  EXPECT_EQ(fork->memory().resident, ring + 2 * copy);
  ASSERT_TRUE(cache->truncate(445).ok());
  EXPECT_EQ(cache->length(), 440);
  ASSERT_TRUE(cache->truncate(439).ok());
  EXPECT_EQ(cache->length(), 439);  // in the ring again
  ASSERT_TRUE(cache->truncate(400).ok());
  EXPECT_EQ(cache->length(), 360);
  ASSERT_TRUE(cache->truncate(330).ok());
  EXPECT_EQ(cache->length(), 0);
  EXPECT_EQ(cache->memory().resident, ring);
  ASSERT_TRUE(fork->truncate(442).ok());
  EXPECT_EQ(fork->length(), 440);
}

// What a loaded state lacks is not there for a later cut either.
TEST_P(WindowCaches, PointsOfLoadedStatesKnowWhatIsThere) {
  for (const int32_t length : {76, 120, 210}) {
    make({7, 0, 8, 0, 1});
    const std::vector<int32_t> one = {5};
    Cache cache = windowed();
    const Cache all = full();
    std::vector<int32_t> text;
    for (int32_t i = 0; i < length; ++i) text.push_back(i * i % 50);
    for (const auto& each : {cache.get(), all.get()}) {
      for (int32_t at = 0; at < length; at += 8) {
        const auto begin = text.begin() + at;
        (void)model_->feed(*each, {begin, begin + std::min(8, length - at)});
      }
    }
    Cache loaded = windowed();
    const std::vector<std::byte> state = state_of(*cache);
    auto reader = cache::StateReader::open(state).value();
    ASSERT_TRUE(loaded->restore(reader).ok());
    loaded->remember(length, cache::SnapshotPlace::kBorder);
    for (int i = 0; i < 3; ++i) {
      (void)model_->feed(*loaded, one);
      (void)model_->feed(*all, one);
    }
    for (const int32_t to : {length, length - 4, length - 10, length - 20, 4}) {
      const Cache other = loaded->fork().value();
      const Cache other_full = all->fork().value();
      ASSERT_TRUE(other->truncate(to).ok());
      EXPECT_TRUE(other->length() == to || other->length() == 0) << to;
      ASSERT_TRUE(other_full->truncate(other->length()).ok());
      ASSERT_EQ(model_->feed(*other, one), model_->feed(*other_full, one)) << length << " " << to;
    }
  }
}

// Nothing fails for want of memory: the cut goes back to the point before, or to nothing.
TEST_P(WindowCaches, WithoutMemoryThereIsNoPoint) {
  make({17, 0, 8, 0, 2});
  test::CountingAllocator allocator;
  for (const size_t refused : {size_t{0}, size_t{1}, size_t{2}}) {  // of the copies
    {
      const Cache cache =
          cache::make_windowed_cache(GetParam().kind, model_->model().layer_shapes(), kContext,
                                     {8, 0, 2}, allocator)
              .value();
      allocator.fail_at = allocator.calls + refused;
      std::vector<int32_t> text(8, 5);
      for (int i = 1; i <= 50; ++i) {
        (void)model_->feed(*cache, text);
        if (i == 10 || i == 20) cache->remember(8 * i, cache::SnapshotPlace::kBorder);
      }
      allocator.fail_at = ~size_t{0};
      ASSERT_TRUE(cache->truncate(200).ok());
      EXPECT_EQ(cache->length(), refused == 1 ? 80 : 160);
      ASSERT_TRUE(cache->truncate(100).ok());
      EXPECT_EQ(cache->length(), refused == 0 ? 0 : 80);
      EXPECT_EQ(allocator.live_bytes, cache->memory().resident);
    }
    EXPECT_EQ(allocator.live_bytes, 0U);
  }
}

// Before the ring has gone round, points take nothing.
TEST_P(WindowCaches, ShortTextsHaveNoCopies) {
  if (GetParam().block_size > 0) return;
  make({17, 0, 8, 20, 2});
  const Cache cache = windowed();
  const size_t ring = cache->memory().resident;
  std::vector<int32_t> text(8, 5);
  for (int i = 0; i < 7; ++i) {
    (void)model_->feed(*cache, text);
    cache->remember(cache->length(), cache::SnapshotPlace::kBorder);
  }
  EXPECT_EQ(cache->memory().resident, ring);
}

// From any length, if no draft went further.
TEST_P(WindowCaches, GoBackAsFarAsTheySay) {
  make({17, 0, 8, 20});
  for (int32_t length = 1; length < 120; ++length) {
    const Cache cache = windowed();
    for (int32_t at = 0; at < length; at += 8) {
      (void)model_->feed(*cache,
                         std::vector<int32_t>(static_cast<size_t>(std::min(8, length - at)), 5));
    }
    const int32_t n = std::max(length - 20, 0);
    ASSERT_TRUE(cache->truncate(n).ok());
    EXPECT_EQ(cache->length(), n) << length;
  }
}

TEST_P(WindowCaches, TakeAsMuchAsTheyKeep) {
  make({40, 0, 24, 9});
  const Cache cache = windowed();
  const Cache all = full();
  EXPECT_EQ(cache->capacity(), kContext);
  EXPECT_FALSE(cache->traits().cuts_exactly);
  EXPECT_EQ(cache->shifting(), nullptr);
  if (GetParam().block_size > 0) {
    expect_blocks(*cache);
    return;
  }
  // Two layers of 40 - 1 + 15 + 24 + 9 entries, in whole segments of 16, and one of all.
  const double entry = static_cast<double>(all->memory().resident) / (3 * kContext);
  EXPECT_NEAR(static_cast<double>(cache->memory().resident), entry * (2 * 96 + kContext),
              entry * 3 * 32);
}

TEST_P(WindowCaches, StatesOfWindowsDoNotFitFullOnes) {
  make({5, 0, 8, 4});
  const Cache cache = windowed();
  std::vector<int32_t> text(8, 3);
  for (int i = 0; i < 8; ++i) (void)model_->feed(*cache, text);
  const std::vector<std::byte> state = state_of(*cache);
  auto reader = cache::StateReader::open(state).value();
  const Cache other = full();
  const Status status = other->restore(reader);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(std::string(status.message()).find("lacks the first 32 positions"), std::string::npos)
      << status.message();
  EXPECT_EQ(other->length(), 0);
}

}  // namespace
}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Proves that plans run on the CUDA engine: over caches of all kinds in its memory, with trees,
// taps and given embeddings, logits are those of the CPU engine within the bound of golden files,
// the best token is the same wherever the CPU's two best differ by more than twice it, and a row's
// bits do not depend on what runs beside it or on how a prompt is cut.
#include "engine/host_memory.h"

#include <algorithm>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "cuda/engine/op_bench.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int32_t kCapacity = 64;
constexpr double kGolden =
    1e-3;  // of probabilities, see tests/golden; logits here are held to less

/// A plan of one graph on one engine, with caches in its memory.
class Side {
 public:
  Side(const test::TinyGraph& tiny, const std::shared_ptr<engine::Engine>& engine)
      : tiny_(tiny), engine_(engine), pool_(engine) {
    CompileOptions options;
    options.max_seq_len = kCapacity;
    options.selected_arena_bytes = 1;  // rows that want logits come in many chunks
    auto plan = compile(tiny.graph(), engine, options);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    plan_ = std::move(plan).value();
  }

  std::unique_ptr<cache::KvCache> cache(const char* kind) {
    return cache::make_cache(kind, tiny_.layer_shapes(), kCapacity, memory()).value();
  }
  std::unique_ptr<cache::KvCache> paged(const char* kind) {
    auto pool = cache::CachePool::create(kind, tiny_.layer_shapes(), 5, 1, memory()).value();
    return cache::make_paged_cache(std::move(pool), kCapacity).value();
  }
  /// One block in memory, the others in a file.
  std::unique_ptr<cache::KvCache> tiered(const char* kind) {
    cache::TieredCacheOptions options;
    options.format = kind;
    options.block_size = 9;
    options.hot_blocks = 1;
    options.prefetch_layers = 1;
    return cache::make_tiered_cache(options, tiny_.layer_shapes(), kCapacity, memory()).value();
  }
  std::unique_ptr<cache::KvCache> lane(const char* kind) {
    cache::LaneLimits limits;
    limits.max_sequences = 2;
    limits.capacity = kCapacity;
    limits.max_batch = 32;
    auto store = cache::LaneStore::create(kind, tiny_.layer_shapes(), limits, memory()).value();
    return store->lane(0).value();
  }
  std::vector<std::unique_ptr<cache::KvCache>> every_kind() {
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
      caches.push_back(cache(kind));
      caches.push_back(paged(kind));
      caches.push_back(tiered(kind));
      caches.push_back(lane(kind));
    }
    return caches;
  }
  std::vector<float> run(test::OwnedBatch& batch) {
    batch.finish(vocab());
    auto workspace = pool_.borrow();
    EXPECT_TRUE(workspace.ok()) << workspace.status().message();
    const Status status = plan_->run(batch.batch, **workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    return batch.results(vocab());
  }
  std::vector<float> feed(cache::KvCache& cache, const std::vector<int32_t>& tokens) {
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache, tokens).ok());
    return run(batch);
  }
  [[nodiscard]] engine::EngineMemory& memory() { return engine_->memory(); }
  [[nodiscard]] int64_t vocab() const { return tiny_.shape().vocab; }
  [[nodiscard]] int32_t hidden() const { return tiny_.shape().hidden; }

 private:
  const test::TinyGraph& tiny_;
  std::shared_ptr<engine::Engine> engine_;
  WorkspacePool pool_;
  std::shared_ptr<const ExecutionPlan> plan_;
};

/// Values of both engines within `bound`; of rows of `vocab` also the best token.
void expect_near(const std::vector<float>& want, const std::vector<float>& got, int64_t vocab,
                 float bound) {
  ASSERT_FALSE(want.empty());
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], got[i], bound) << i;
  for (size_t row = 0; vocab > 0 && row < want.size() / static_cast<size_t>(vocab); ++row) {
    const auto* const from = want.data() + row * static_cast<size_t>(vocab);
    const auto* const other = got.data() + row * static_cast<size_t>(vocab);
    std::vector<float> sorted(from, from + vocab);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    if (sorted[0] - sorted[1] <= 2 * bound) continue;
    EXPECT_EQ(std::max_element(from, from + vocab) - from,
              std::max_element(other, other + vocab) - other)
        << "row " << row;
  }
}

/// Sums of a few dozen terms in another order; keys and values that fall on a level beside the
/// other engine's move results by what a level is worth.
constexpr float kBound = 2e-5F;
constexpr float kCodeBound = 5e-2F;
static_assert(kBound < kGolden);

TEST(CudaPlan, SequencesOfPlainCachesTogether) {
  const test::TinyGraph tiny;
  const auto scenario = [&](const std::shared_ptr<engine::Engine>& engine) {
    Side side(tiny, engine);
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    caches.push_back(side.cache("fp32"));
    caches.push_back(side.paged("fp32"));
    caches.push_back(side.lane("fp32"));
    caches.push_back(side.tiered("fp32"));
    std::vector<float> seen;
    for (int32_t step = 0; step < 4; ++step) {
      test::OwnedBatch batch;
      for (size_t i = 0; i < caches.size(); ++i) {
        std::vector<int32_t> tokens(step == 0 ? 3 + i : 1);
        for (size_t t = 0; t < tokens.size(); ++t) {
          tokens[t] = static_cast<int32_t>((7 * i + 3 * t + static_cast<size_t>(step)) % 30);
        }
        EXPECT_TRUE(batch.add(*caches[i], tokens, i % 2 == 0).ok());
      }
      const auto results = side.run(batch);
      seen.insert(seen.end(), results.begin(), results.end());
    }
    return seen;
  };
  expect_near(scenario(test::cpu_engine()), scenario(test::cuda_engine()), 30, kBound);
}

TEST(CudaPlan, EveryKindOfCache) {
  const test::TinyGraph tiny;
  Side near(tiny, test::cpu_engine());
  Side far(tiny, test::cuda_engine());
  auto near_caches = near.every_kind();
  auto far_caches = far.every_kind();
  for (size_t i = 0; i < near_caches.size(); ++i) {
    SCOPED_TRACE(i);
    for (const auto& tokens :
         {std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}, std::vector<int32_t>{9, 10, 11, 12},
          std::vector<int32_t>{13}, std::vector<int32_t>{14, 15}}) {
      const auto want = near.feed(*near_caches[i], tokens);
      const auto got = far.feed(*far_caches[i], tokens);
      expect_near(want, got, near.vocab(), i < 4 ? kBound : kCodeBound);
    }
  }
}

TEST(CudaPlan, TreesTapsAndEmbeddings) {
  const test::TinyGraph tiny;
  const auto scenario = [&](const std::shared_ptr<engine::Engine>& engine) {
    Side side(tiny, engine);
    const auto cache = side.cache("fp32");
    std::vector<float> seen = side.feed(*cache, {1, 2, 3});
    test::OwnedBatch tree;
    EXPECT_TRUE(tree.add(*cache, std::vector<int32_t>{4, 5, 6, 7}).ok());
    tree.parents = {-1, 0, 0, 1};
    std::vector<float> hidden(static_cast<size_t>(4 * side.hidden()));
    const Tap taps[] = {{2, hidden.data()}};
    tree.batch.taps = taps;
    const auto results = side.run(tree);
    seen.insert(seen.end(), results.begin(), results.end());
    seen.insert(seen.end(), hidden.begin(), hidden.end());
    std::vector<float> given(static_cast<size_t>(2 * side.hidden()), 0.25F);
    test::OwnedBatch embedded;
    EXPECT_TRUE(embedded.add(*cache, std::vector<int32_t>{-2, 3, -1}).ok());
    embedded.batch.embeddings = given;
    const auto last = side.run(embedded);
    seen.insert(seen.end(), last.begin(), last.end());
    return seen;
  };
  expect_near(scenario(test::cpu_engine()), scenario(test::cuda_engine()), 0, kBound);
}

TEST(CudaPlan, RowsBesideAndCutsDoNotShow) {
  const test::TinyGraph tiny;
  Side side(tiny, test::cuda_engine());
  const std::vector<int32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  for (const char* kind : {"fp32", "fp16", "fp8", "q4", "q3"}) {
    SCOPED_TRACE(kind);
    const auto whole = side.cache(kind);
    const auto want = side.feed(*whole, tokens);
    const auto parts = side.paged(kind);
    const auto other = side.lane(kind);
    std::vector<float> got;
    for (size_t at = 0, n = 1; at < tokens.size(); at += n, n = n % 5 + 1) {
      n = std::min(n, tokens.size() - at);
      test::OwnedBatch batch;
      EXPECT_TRUE(batch.add(*other, std::vector<int32_t>{3, 2, 1}).ok());
      EXPECT_TRUE(batch.add(*parts, std::span(tokens).subspan(at, n)).ok());
      const auto results = side.run(batch);
      got.insert(got.end(), results.begin() + 3 * side.vocab(), results.end());
    }
    EXPECT_TRUE(test::same_bits(got, want));
  }
}

TEST(CudaPlan, MemoryComesBack) {
  const test::TinyGraph tiny;
  const auto engine = test::cuda_engine();
  Side side(tiny, engine);
  for (int32_t round = 0; round < 3; ++round) {
    const auto cache = side.paged("q4");
    for (int32_t i = 0; i < 20; ++i) side.feed(*cache, {i});
    EXPECT_TRUE(cache->truncate(7).ok());
    side.feed(*cache, {1, 2});
  }
}

}  // namespace
}  // namespace gen::graph

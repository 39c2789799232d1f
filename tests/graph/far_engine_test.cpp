// SPDX-License-Identifier: Apache-2.0
// Proves that a plan reaches what its operations read and write through the engine alone: on an
// engine whose memory nobody may touch and which does nothing before it is asked to finish, results
// are those of the CPU engine, bit for bit.
#include "engine/host_memory.h"
#include "support/far_engine.h"

#include <gtest/gtest.h>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int32_t kCapacity = 64;

/// A plan of one graph on one engine, and all rows' logits of what is fed to it.
class Side {
 public:
  Side(const test::TinyGraph& tiny, std::shared_ptr<engine::Engine> engine,
       engine::EngineMemory& caches)
      : tiny_(tiny), pool_(engine), caches_(caches) {
    CompileOptions options;
    options.max_seq_len = kCapacity;
    options.selected_arena_bytes = 1;  // rows that want logits come in many chunks
    plan_ = compile(tiny.graph(), std::move(engine), options).value();
  }

  std::unique_ptr<cache::KvCache> cache(const char* kind) {
    return cache::make_cache(kind, tiny_.layer_shapes(), kCapacity, caches_).value();
  }
  std::unique_ptr<cache::KvCache> paged(const char* kind) {
    auto pool = cache::CachePool::create(kind, tiny_.layer_shapes(), 5, 1, caches_).value();
    return cache::make_paged_cache(std::move(pool), kCapacity).value();
  }
  /// One block in memory, the others in a file.
  std::unique_ptr<cache::KvCache> tiered(const char* kind) {
    cache::TieredCacheOptions options;
    options.format = kind;
    options.block_size = 9;
    options.hot_blocks = 1;
    options.prefetch_layers = 1;
    return cache::make_tiered_cache(options, tiny_.layer_shapes(), kCapacity, caches_).value();
  }
  std::unique_ptr<cache::KvCache> lane(const char* kind) {
    cache::LaneLimits limits;
    limits.max_sequences = 2;
    limits.capacity = kCapacity;
    limits.max_batch = 32;
    auto store = cache::LaneStore::create(kind, tiny_.layer_shapes(), limits, caches_).value();
    return store->lane(0).value();
  }
  Status run(test::OwnedBatch& batch) {
    auto workspace = pool_.borrow();
    if (!workspace.ok()) return workspace.status();
    GEN_TRY(plan_->run(batch.batch, **workspace));
    batch.commit();
    return {};
  }
  [[nodiscard]] int64_t vocab() const { return tiny_.shape().vocab; }
  [[nodiscard]] int32_t hidden() const { return tiny_.shape().hidden; }

 private:
  const test::TinyGraph& tiny_;
  WorkspacePool pool_;
  engine::EngineMemory& caches_;
  std::shared_ptr<const ExecutionPlan> plan_;
};

/// The same on both engines; `scenario` gives what it saw.
template <typename Scenario>
void expect_equal(Scenario scenario) {
  const test::TinyGraph tiny;
  test::FarMemory memory;
  for (const int32_t threads : {1, 3}) {
    Side near(tiny, test::cpu_engine({.threads = threads}), engine::system_memory());
    Side far(tiny, std::make_shared<test::FarEngine>(memory, threads), memory);
    const std::vector<float> want = scenario(near);
    ASSERT_FALSE(want.empty());
    EXPECT_EQ(scenario(far), want) << threads << " threads";
  }
}

void feed(Side& side, test::OwnedBatch& batch, std::vector<float>* seen) {
  batch.finish(side.vocab());
  const Status status = side.run(batch);
  ASSERT_TRUE(status.ok()) << status.message();
  const auto results = batch.results(side.vocab());
  seen->insert(seen->end(), results.begin(), results.end());
}

TEST(FarEngine, SequencesOfAllKindsOfCachesTogether) {
  expect_equal([](Side& side) {
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    caches.push_back(side.cache("fp32"));
    caches.push_back(side.paged("fp32"));
    caches.push_back(side.cache("fp16"));
    caches.push_back(side.lane("fp32"));
    caches.push_back(side.cache("fp8"));
    caches.push_back(side.paged("fp16"));
    caches.push_back(side.tiered("fp32"));
    std::vector<float> seen;
    for (int32_t step = 0; step < 4; ++step) {
      test::OwnedBatch batch;
      for (size_t i = 0; i < caches.size(); ++i) {
        std::vector<int32_t> tokens(step == 0 ? 3 + i : 1);
        for (size_t t = 0; t < tokens.size(); ++t) {
          tokens[t] = static_cast<int32_t>((7 * i + 3 * t + static_cast<size_t>(step)) % 30);
        }
        const Status added = batch.add(*caches[i], tokens, i % 2 == 0);
        EXPECT_TRUE(added.ok()) << i << ": " << added.message();
      }
      feed(side, batch, &seen);
    }
    return seen;
  });
}

TEST(FarEngine, TreesTapsAndEmbeddings) {
  expect_equal([](Side& side) {
    const auto cache = side.cache("fp32");
    std::vector<float> seen;
    test::OwnedBatch prompt;
    EXPECT_TRUE(prompt.add(*cache, std::vector<int32_t>{1, 2, 3}).ok());
    feed(side, prompt, &seen);

    test::OwnedBatch tree;
    EXPECT_TRUE(tree.add(*cache, std::vector<int32_t>{4, 5, 6, 7}).ok());
    tree.parents = {-1, 0, 0, 1};
    std::vector<float> hidden(static_cast<size_t>(4 * side.hidden()));
    const Tap taps[] = {{2, hidden.data()}};
    tree.finish(side.vocab()).taps = taps;
    EXPECT_TRUE(side.run(tree).ok());
    const auto results = tree.results(side.vocab());
    seen.insert(seen.end(), results.begin(), results.end());
    seen.insert(seen.end(), hidden.begin(), hidden.end());

    std::vector<float> given(static_cast<size_t>(2 * side.hidden()), 0.25F);
    test::OwnedBatch embedded;
    EXPECT_TRUE(embedded.add(*cache, std::vector<int32_t>{-2, 3, -1}).ok());
    embedded.finish(side.vocab()).embeddings = given;
    EXPECT_TRUE(side.run(embedded).ok());
    const auto last = embedded.results(side.vocab());
    seen.insert(seen.end(), last.begin(), last.end());
    return seen;
  });
}

TEST(FarEngine, NothingIsTouchedBeforeItFinishes) {
  test::FarMemory memory;
  test::FarEngine engine(memory);
  auto buffer = std::move(engine.memory().allocate(64)).value();
  auto stream = std::move(engine.new_stream()).value();
  const float sent[] = {1.0F, 2.0F};
  float got[] = {0.0F, 0.0F};
  ASSERT_TRUE(engine.upload(*stream, buffer.data(), sent, sizeof(sent)).ok());
  ASSERT_TRUE(engine.download(*stream, got, buffer.data(), sizeof(got)).ok());
  EXPECT_EQ(got[1], 0.0F);
  ASSERT_TRUE(engine.finish(*stream).ok());
  EXPECT_EQ(got[1], 2.0F);
}

}  // namespace
}  // namespace gen::graph

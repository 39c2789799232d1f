// SPDX-License-Identifier: Apache-2.0
// A plan of one graph on any engine with caches in any memory that it reaches, and what is run on
// two engines and compared: caches of several kinds in one step, trees, taps, given embeddings.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/tiered_cache.h"
#include "support/tiny_graph.h"

namespace gen::test {

class PlanSide {
 public:
  static constexpr int32_t kCapacity = 64;

  PlanSide(const TinyGraph& tiny, std::shared_ptr<engine::Engine> engine,
           engine::EngineMemory& caches)
      : tiny_(tiny), pool_(engine), caches_(caches) {
    graph::CompileOptions options;
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
  /// All logits that were asked for. What else the batch needs is set before.
  std::vector<float> run(OwnedBatch& batch) {
    batch.finish(vocab());
    auto workspace = pool_.borrow();
    EXPECT_TRUE(workspace.ok()) << workspace.status().message();
    const Status status = plan_->run(batch.batch, **workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    return batch.results(vocab());
  }
  std::vector<float> feed(cache::KvCache& cache, const std::vector<int32_t>& tokens) {
    OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache, tokens).ok());
    return run(batch);
  }
  [[nodiscard]] int64_t vocab() const { return tiny_.shape().vocab; }
  [[nodiscard]] int32_t hidden() const { return tiny_.shape().hidden; }

 private:
  const TinyGraph& tiny_;
  graph::WorkspacePool pool_;
  engine::EngineMemory& caches_;
  std::shared_ptr<const graph::ExecutionPlan> plan_;
};

/// Prompts of several lengths, then a token each, every other sequence with logits of its last row
/// only.
inline std::vector<float> sequences_together(
    PlanSide& side, const std::vector<std::unique_ptr<cache::KvCache>>& caches) {
  std::vector<float> seen;
  for (int32_t step = 0; step < 4; ++step) {
    OwnedBatch batch;
    for (size_t i = 0; i < caches.size(); ++i) {
      std::vector<int32_t> tokens(step == 0 ? 3 + i : 1);
      for (size_t t = 0; t < tokens.size(); ++t) {
        tokens[t] = static_cast<int32_t>((7 * i + 3 * t + static_cast<size_t>(step)) % 30);
      }
      const Status added = batch.add(*caches[i], tokens, i % 2 == 0);
      EXPECT_TRUE(added.ok()) << i << ": " << added.message();
    }
    const auto results = side.run(batch);
    seen.insert(seen.end(), results.begin(), results.end());
  }
  return seen;
}

/// A prompt, a tree with its hidden rows, and rows that are given.
inline std::vector<float> trees_taps_and_embeddings(PlanSide& side) {
  const auto cache = side.cache("fp32");
  std::vector<float> seen = side.feed(*cache, {1, 2, 3});
  OwnedBatch tree;
  EXPECT_TRUE(tree.add(*cache, std::vector<int32_t>{4, 5, 6, 7}).ok());
  tree.parents = {-1, 0, 0, 1};
  std::vector<float> hidden(static_cast<size_t>(4 * side.hidden()));
  const graph::Tap taps[] = {{2, hidden.data()}};
  tree.batch.taps = taps;
  const auto results = side.run(tree);
  seen.insert(seen.end(), results.begin(), results.end());
  seen.insert(seen.end(), hidden.begin(), hidden.end());
  std::vector<float> given(static_cast<size_t>(2 * side.hidden()), 0.25F);
  OwnedBatch embedded;
  EXPECT_TRUE(embedded.add(*cache, std::vector<int32_t>{-2, 3, -1}).ok());
  embedded.batch.embeddings = given;
  const auto last = side.run(embedded);
  seen.insert(seen.end(), last.begin(), last.end());
  return seen;
}

}  // namespace gen::test

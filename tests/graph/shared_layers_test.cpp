// SPDX-License-Identifier: Apache-2.0
// Proves that plans run blocks without attention and blocks that look at an earlier block's layer:
// caches have the layers that are written, what is shared is written once and read after it, and
// what no kernel can do is refused by name. Values are compared in tests/model, toy_model_test.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/trace/trace_log.h"
#include "graph/cache_layers.h"
#include "graph/execution_plan.h"
#include "graph/plan_trace.h"
#include "support/reference_cache.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int32_t kWidth = 8;
constexpr int32_t kVocab = 12;

/// Blocks 0 and 3 keep keys and values, 1 does not attend, 4 and 5 look at the layers of 3 and 0.
class Blocks {
 public:
  explicit Blocks(const AttentionSpec& first = spec(2, 1)) {
    spec_ = first;
    x_ = builder_.embed(matrix(kVocab, kWidth));
    spec_.rope = builder_.rope_table({engine::RopeKind::kAdjacent, 2, {0.7F}, 1.0F});
    spec_.window = 3;
    attend(0);
    mix();
    AttentionSpec wide = spec_;
    wide.n_heads = wide.n_kv_heads = 2;
    wide.window = 0;
    std::swap(spec_, wide);
    attend(3);
    spec_.use = CacheUse::kShared;
    spec_.shared = 3;
    attend(4);
    spec_ = wide;
    spec_.use = CacheUse::kShared;
    spec_.shared = 0;
    spec_.n_heads = 3;  // as many queries as it likes
    attend(5);
    builder_.logits(builder_.linear(builder_.select_rows(x_), matrix(kVocab, kWidth), {}, 0));
    auto graph = builder_.finish();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    if (graph.ok()) graph_ = std::move(graph).value();
  }
  static AttentionSpec spec(int32_t heads, int32_t kv_heads) {
    AttentionSpec spec;
    spec.n_heads = heads;
    spec.n_kv_heads = kv_heads;
    spec.k_dim = 4;
    spec.v_dim = 6;
    spec.scale = 0.5F;
    return spec;
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  engine::WeightSource matrix(int32_t rows, int32_t cols) {
    data_.push_back(std::make_unique<std::vector<float>>(static_cast<size_t>(rows) *
                                                         static_cast<size_t>(cols)));
    for (float& value : *data_.back()) {
      value = static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F;
    }
    return {"w", DType::kF32, rows, cols, std::as_bytes(std::span(*data_.back())), true};
  }
  ValueId part(int32_t heads, int32_t dim) {
    return builder_.linear(x_, matrix(heads * dim, kWidth), {}, 0);
  }
  void attend(int32_t block) {
    const bool stores = spec_.use == CacheUse::kOwn;
    const ValueId q = part(spec_.n_heads, spec_.k_dim);
    const ValueId k = stores ? part(spec_.n_kv_heads, spec_.k_dim) : ValueId();
    const ValueId v = stores ? part(spec_.n_kv_heads, spec_.v_dim) : ValueId();
    const ValueId a = builder_.attention(builder_.rope_append(q, k, v, block, spec_), block);
    x_ = builder_.add(x_, builder_.linear(a, matrix(kWidth, spec_.n_heads * spec_.v_dim), {}, 0));
  }
  void mix() { x_ = builder_.add(x_, builder_.linear(x_, matrix(kWidth, kWidth), {}, 0)); }

  std::mt19937 random_{7};
  std::vector<std::unique_ptr<std::vector<float>>> data_;
  GraphBuilder builder_;
  AttentionSpec spec_;
  ValueId x_;
  Graph graph_;
};

Result<std::shared_ptr<const ExecutionPlan>> compiled(const Graph& graph, bool fused = true) {
  CompileOptions options;
  options.max_seq_len = 64;
  if (!fused) options.fusion = {false, false, false, false, false};
  return compile(graph, std::make_shared<test::ReferenceEngine>(), options);
}

class SharedLayers : public testing::Test {
 protected:
  std::vector<float> feed(const ExecutionPlan& plan, cache::KvCache& cache,
                          std::span<const int32_t> tokens, bool logits = true,
                          engine::Tracer* tracer = nullptr) {
    auto workspace = Workspace::create(plan.engines()).value();
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache, tokens).ok());
    batch.sequences[0].trace_id = 1;
    if (!logits) batch.wants.assign(tokens.size(), 0);
    batch.finish(kVocab).tracer = tracer;
    const Status status = plan.run(batch.batch, *workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    return batch.results(kVocab);
  }
  Blocks blocks_;
  const std::vector<int32_t> tokens_ = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
};

TEST_F(SharedLayers, CachesHaveTheLayersThatAreWritten) {
  const auto plan = compiled(blocks_.graph()).value();
  const auto layers = plan->cache_layers();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].kv_heads, 1);
  EXPECT_EQ(layers[0].window, 3);
  EXPECT_EQ(layers[1].kv_heads, 2);
  EXPECT_EQ(layers[1].window, 0);
}

TEST_F(SharedLayers, RowsAreTheSameHoweverTheyCome) {
  const auto plan = compiled(blocks_.graph()).value();
  test::ReferenceCache whole_cache(plan->cache_layers(), 64);
  const std::vector<float> whole = feed(*plan, whole_cache, tokens_);
  for (const bool fused : {true, false}) {
    const auto other = compiled(blocks_.graph(), fused).value();
    for (const size_t step : {1U, 3U, 10U}) {
      test::ReferenceCache cache(other->cache_layers(), 64);
      std::vector<float> parts;
      for (size_t at = 0; at < tokens_.size(); at += step) {
        const auto some = std::span(tokens_).subspan(at, std::min(step, tokens_.size() - at));
        const auto part = feed(*other, cache, some);
        parts.insert(parts.end(), part.begin(), part.end());
      }
      EXPECT_EQ(parts, whole) << "in steps of " << step << (fused ? ", fused" : "");
    }
  }
}

/// What only shared blocks read need not run where no row wants logits: caches are as full.
TEST_F(SharedLayers, APromptEndsWithTheLastBlockThatStores) {
  const auto plan = compiled(blocks_.graph()).value();
  int32_t skipped = 0;
  for (const Instruction& in : plan->instructions()) {
    if (in.op != engine::Op::kRopeAppend) continue;
    EXPECT_EQ(in.skippable, in.attention.use == CacheUse::kShared);
    skipped += in.skippable ? 1 : 0;
  }
  EXPECT_EQ(skipped, 2);
  const auto prompt = std::span(tokens_).first(9);
  test::ReferenceCache with(plan->cache_layers(), 64);
  test::ReferenceCache without(plan->cache_layers(), 64);
  feed(*plan, with, prompt);
  feed(*plan, without, prompt, false);
  EXPECT_EQ(with.keys(0), without.keys(0));
  EXPECT_EQ(with.keys(1), without.keys(1));
  const auto last = std::span(tokens_).last(1);
  EXPECT_EQ(feed(*plan, with, last), feed(*plan, without, last));
}

TEST_F(SharedLayers, TracesShowOneAppendPerLayer) {
  const auto plan = compiled(blocks_.graph()).value();
  test::ReferenceCache cache(plan->cache_layers(), 64);
  auto log = std::make_shared<engine::TraceLog>();
  PlanTrace trace(log);
  feed(*plan, cache, std::span(tokens_).first(4), true, &trace);
  std::vector<int64_t> written(2, 0);  // by layer: the tensor that the append made
  std::vector<int> appends(2, 0);
  std::vector<int> reads(2, 0);
  for (const engine::TracedOp& op : log->ops()) {
    const auto layer = static_cast<size_t>(std::max(op.layer, 0));
    if (op.name == std::string("KVCacheAppendK")) {
      ++appends[layer];
      written[layer] = op.outputs.front();
    }
    if (op.name == std::string("KVCacheGetK")) {
      ++reads[layer];
      EXPECT_EQ(op.inputs.front(), written[layer]);
    }
  }
  EXPECT_EQ(appends, (std::vector<int>{1, 1}));
  EXPECT_EQ(reads, (std::vector<int>{2, 2}));
}

TEST(Attention, WhatNoKernelDoesIsRefusedByName) {
  const auto refused = [](void (*change)(AttentionSpec&)) {
    GraphBuilder builder;
    const auto weight = [](int64_t rows) {
      return engine::WeightSource{"w", DType::kF32, rows, kWidth, {}, false};
    };
    const ValueId x = builder.embed(weight(kVocab));
    AttentionSpec spec = Blocks::spec(2, 1);
    spec.v_dim = 4;
    change(spec);
    const ValueId q = builder.linear(x, weight(8), {}, 0);
    const ValueId k = builder.linear(x, weight(4), {}, 0);
    const ValueId v = spec.v_in_k ? ValueId() : builder.linear(x, weight(4), {}, 0);
    const ValueId a = builder.attention(builder.rope_append(q, k, v, 2, spec), 2);
    builder.logits(builder.linear(builder.select_rows(a), weight(kVocab), {}, 0));
    const auto graph = builder.finish();
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    const Status status = compiled(graph.value()).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    return std::string(status.message());
  };
  EXPECT_EQ(refused([](AttentionSpec& s) { s.v_in_k = true; }),
            "block 2: engine reference has no values in keys");
  EXPECT_EQ(refused([](AttentionSpec& s) { s.causal = false; }),
            "block 2: engine reference has no attention to later rows");
  EXPECT_EQ(refused([](AttentionSpec& s) { s.use = CacheUse::kStep; }),
            "block 2: engine reference has no attention without a cache");
}

}  // namespace
}  // namespace gen::graph

// SPDX-License-Identifier: Apache-2.0
// Proves that a plan on several engines gives the bits of a plan on one, wherever it is cut, with
// all that a step may ask for; that an engine is asked for nothing but its own blocks, also one
// whose memory nobody may touch; that what cannot be split is refused by name, and that memory may
// fail anywhere.
#include "graph/engine_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cache/sequence/lane_store.h"
#include "cache/sequence/paged_cache.h"
#include "cache/sequence/registry.h"
#include "cache/sequence/split_cache.h"
#include "engine/memory/host_memory.h"
#include "graph/weight_need.h"
#include "support/counting_allocator.h"
#include "support/far_engine.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int32_t kCapacity = 64;

CompileOptions options_of() {
  CompileOptions options;
  options.max_seq_len = kCapacity;
  options.selected_arena_bytes = 1;  // rows that want logits come in chunks of 16
  return options;
}

/// A plan, and caches for it.
struct Machine {
  Machine(const Graph& graph, Engines engines, EngineOfBlock blocks)
      : plan(compile(graph, engines, blocks, options_of()).value()), pool(std::move(engines)) {}

  /// Each layer in the memory of its engine.
  std::unique_ptr<cache::KvCache> cache(const char* kind, bool paged) const {
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    for (size_t i = 0; i < plan->engines().size(); ++i) {
      std::vector<cache::LayerShape> layers;
      for (size_t layer = 0; layer < plan->cache_layers().size(); ++layer) {
        if (static_cast<size_t>(plan->layer_engines()[layer]) != i) continue;
        layers.push_back(plan->cache_layers()[layer]);
      }
      engine::EngineMemory& memory = plan->engines()[i]->memory();
      if (!paged || layers.empty()) {
        caches.push_back(cache::make_cache(kind, layers, kCapacity, memory).value());
      } else {
        auto blocks = cache::CachePool::create(kind, layers, 8, 1, memory).value();
        caches.push_back(cache::make_paged_cache(std::move(blocks), kCapacity).value());
      }
    }
    return cache::make_split_cache(std::move(caches), plan->layer_engines()).value();
  }
  Status run(const Batch& batch) {
    GEN_ASSIGN(const WorkspacePool::Lease workspace, pool.borrow());
    return plan->run(batch, *workspace);
  }

  std::shared_ptr<const ExecutionPlan> plan;
  WorkspacePool pool;
};

/// Two sequences, a prompt and steps after it, a tree, taps, best tokens: all that came back.
std::vector<float> live(Machine& machine, int64_t vocab, int64_t hidden, int32_t last_tap) {
  const auto one = machine.cache("fp32", false);
  const auto two = machine.cache("fp16", true);
  std::vector<float> seen;
  for (int32_t step = 0; step < 4; ++step) {
    test::OwnedBatch batch;
    std::vector<int32_t> prompt(step == 0 ? 19 : 1);
    for (size_t i = 0; i < prompt.size(); ++i) {
      prompt[i] = static_cast<int32_t>((5 * i + static_cast<size_t>(step)) % 30);
    }
    EXPECT_TRUE(batch.add(*one, prompt).ok());
    EXPECT_TRUE(batch.add(*two, std::vector<int32_t>{4, step, -1}).ok());
    const std::vector<float> given(static_cast<size_t>(hidden), 0.125F);
    const auto rows = static_cast<int32_t>(batch.tokens.size());
    if (step == 2) {
      batch.parents = {-1, -1, 1, 1};
      batch.wants = {kWantsBest, kWantsLogits, kWantsNothing, kWantsBest};
    }
    const std::vector<uint32_t> mask = {0x55555555U};
    const RowExtras extras[] = {{.row = 3, .mask = mask}};
    int32_t tokens[4] = {};
    float logits[4] = {};
    std::vector<float> taps_of(static_cast<size_t>(2 * rows * hidden));
    const Tap taps[] = {{1, taps_of.data()}, {last_tap, taps_of.data() + rows * hidden}};
    batch.finish(vocab).embeddings = given;
    batch.batch.taps = taps;
    if (step == 2) {
      batch.batch.extras = extras;
      batch.batch.best = {2, tokens, logits, 2};
    }
    const Status status = machine.run(batch.batch);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    seen.insert(seen.end(), batch.logits.begin(), batch.logits.end());
    seen.insert(seen.end(), taps_of.begin(), taps_of.end());
    seen.insert(seen.end(), logits, logits + 4);
    for (const int32_t token : tokens) seen.push_back(static_cast<float>(token));
  }
  return seen;
}

TEST(EngineSplit, EveryCutGivesTheBitsOfOneEngine) {
  for (const int32_t experts : {0, 5}) {
    test::TinyShape shape;
    shape.layers = 4;
    shape.experts = experts;
    const test::TinyGraph tiny(shape);
    Machine whole(tiny.graph(), {test::cpu_engine()}, {});
    const std::vector<float> want = live(whole, 30, 24, 4);
    const std::vector<int32_t> cuts[] = {{0, 1}, {0, 0, 1, 1},    {1, 0},         {0, 1, 0, 1},
                                         {1},    {0, 0, 0, 0, 1}, {0, 0, 0, 1, 0}};
    for (const auto& cut : cuts) {
      Machine split(tiny.graph(), {test::cpu_engine(), test::cpu_engine({.threads = 3})}, cut);
      EXPECT_EQ(live(split, 30, 24, 4), want) << testing::PrintToString(cut);
    }
    CompileOptions late = options_of();
    late.fusion.select_early = false;
    const Engines engines = {test::cpu_engine(), test::cpu_engine()};
    Machine plain(tiny.graph(), engines, cuts[3]);
    plain.plan = compile(tiny.graph(), engines, cuts[3], late).value();
    EXPECT_EQ(live(plain, 30, 24, 4), want);
  }
}

/// The experts of any blocks, whatever is done with those blocks.
TEST(EngineSplit, ExpertsElsewhereGiveTheBitsOfOneEngine) {
  test::TinyShape shape;
  shape.layers = 3;
  shape.experts = 5;
  for (const DType type : {DType::kF32, DType::kF16}) {  // gate and up are one product, or two
    shape.expert_up_type = type;
    const test::TinyGraph tiny(shape);
    Machine whole(tiny.graph(), {test::cpu_engine()}, {});
    const std::vector<float> want = live(whole, 30, 24, 3);
    const std::vector<int32_t> maps[][2] = {
        {{0}, {1}}, {{0, 0, 0, 0}, {1, 1, 0, 0}}, {{0, 1, 1, 0}, {1, 0, 1, 0}}, {{1}, {0}}};
    for (const auto& [blocks, experts] : maps) {
      test::FarMemory memory;
      const auto far = std::make_shared<test::FarEngine>(memory);
      Machine split(tiny.graph(), {far, test::cpu_engine({.threads = 3})}, {blocks, experts});
      const EngineOfBlock kept = split.plan->engine_of_block();  // for plans that are derived
      EXPECT_TRUE(
          std::equal(experts.begin(), experts.end(), kept.experts.begin(), kept.experts.end()));
      EXPECT_EQ(live(split, 30, 24, 3), want)
          << testing::PrintToString(blocks) << testing::PrintToString(experts);
    }
    const std::vector<int32_t> none = {0};
    const std::vector<int32_t> all = {1};
    const auto far = test::cpu_engine();
    const WeightNeed with = weight_need(tiny.graph(), none, 0, *far);
    const WeightNeed without = weight_need(tiny.graph(), {none, all}, 0, *far);
    const WeightNeed experts = weight_need(tiny.graph(), {none, all}, 1, *far);
    EXPECT_GT(experts.bytes, 0U);
    EXPECT_EQ(with.bytes, without.bytes + experts.bytes);
  }
}

/// A router in block 0, the experts that it chooses in block 1 or, each product, in one of their
/// own; all rows or selected ones.
std::vector<float> routed(EngineOfBlock blocks, Engines engines, bool select_first) {
  std::mt19937 random(5);
  std::vector<std::unique_ptr<std::vector<float>>> data;
  const auto weight = [&](const char* name, int64_t rows, int64_t cols, int64_t count = 1) {
    data.push_back(std::make_unique<std::vector<float>>(static_cast<size_t>(rows * cols * count)));
    for (float& value : *data.back()) value = static_cast<float>(random() >> 8) * 0x1p-24F - 0.5F;
    engine::WeightSource source = {
        name, DType::kF32, rows, cols, std::as_bytes(std::span(*data.back())), true};
    source.count = count;
    if (count > 1) source.pitch = source.data.size() / static_cast<size_t>(count);
    return source;
  };
  GraphBuilder b;
  b.begin_block(0);
  ValueId x = b.embed(weight("embed", 30, 16));
  if (select_first) x = b.select_rows(x);
  const ValueId routes =
      b.route(b.linear(x, weight("router", 7, 16), {}, 0), {engine::Gating::kSigmoid, 7, 3});
  b.begin_block(1);
  const ValueId h = b.experts(x, routes, weight("up", 24, 16, 7));
  b.begin_block(2);
  const ValueId y = b.experts(h, routes, weight("down", 16, 24, 7));
  b.begin_block(3);
  x = b.add(x, b.combine(y, routes));
  b.begin_block(4);
  b.logits(b.linear(b.select_rows(x), weight("head", 30, 16), {}, 3));
  const Graph graph = b.finish().value();
  Machine machine(graph, std::move(engines), blocks);
  const auto cache = machine.cache("fp32", false);
  test::OwnedBatch batch;
  EXPECT_TRUE(batch.add(*cache, std::vector<int32_t>{3, 1, 4, 1, 5, 9, 2}).ok());
  EXPECT_TRUE(machine.run(batch.finish(30)).ok());
  batch.commit();
  return batch.logits;
}

TEST(EngineSplit, WhatRoutersMakeIsReadElsewhere) {
  for (const bool select_first : {false, true}) {
    const std::vector<float> want = routed({}, {test::cpu_engine()}, select_first);
    for (const std::vector<int32_t>& cut :
         {std::vector<int32_t>{0, 1}, {0, 1, 1, 1, 0}, {1, 0, 1, 0, 1}, {0, 0, 1, 0}}) {
      EXPECT_EQ(routed(cut, {test::cpu_engine(), test::cpu_engine({.threads = 3})}, select_first),
                want)
          << testing::PrintToString(cut);
    }
  }
}

/// Blocks 0 and 2 are a gated product each, block 1 attends.
class Sandwich {
 public:
  Sandwich() {
    GraphBuilder b;
    b.begin_block(0);
    ValueId x = b.embed(weight("embed", 30, 16));
    b.tap(0, x);
    x = b.add(x, feed_forward(b, x));
    b.tap(1, x);
    b.begin_block(1);
    AttentionSpec spec;
    spec.n_heads = spec.n_kv_heads = 2;
    spec.k_dim = spec.v_dim = 8;
    spec.rope = b.rope_table({engine::RopeKind::kHalves, 4, {1.0F, 0.1F}, 1.0F});
    const ValueId q = b.linear(x, weight("q", 16, 16), {}, 0);
    const ValueId k = b.linear(x, weight("k", 16, 16), {}, 1);
    const ValueId v = b.linear(x, weight("v", 16, 16), {}, 2);
    x = b.add(x, b.attention(b.rope_append(q, k, v, 1, spec), 1));
    b.tap(2, x);
    b.begin_block(2);
    x = b.add(x, feed_forward(b, x));
    b.tap(3, x);
    b.logits(b.linear(b.select_rows(x), weight("head", 30, 16), {}, 3));
    graph_ = b.finish().value();
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  ValueId feed_forward(GraphBuilder& b, ValueId x) {
    const std::vector<float> norm(16, 0.5F);
    x = b.rms_norm(x, norm, 1e-5F);
    const ValueId gate = b.linear(x, weight("gate", 32, 16), {}, 4);
    const ValueId up = b.linear(x, weight("up", 32, 16), {}, 5);
    return b.linear(b.apply(engine::Op::kGated, {gate, up}, {engine::Act::kSilu}),
                    weight("down", 16, 32), {}, 6);
  }
  engine::WeightSource weight(const char* name, int64_t rows, int64_t cols) {
    data_.push_back(std::make_unique<std::vector<float>>(static_cast<size_t>(rows * cols)));
    for (float& value : *data_.back()) {
      value = static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F;
    }
    return {name, DType::kF32, rows, cols, std::as_bytes(std::span(*data_.back())), true};
  }

  std::mt19937 random_{7};
  std::vector<std::unique_ptr<std::vector<float>>> data_;
  Graph graph_;
};

TEST(EngineSplit, AnEngineIsReachedThroughItselfAlone) {
  const Sandwich sandwich;
  Machine whole(sandwich.graph(), {test::cpu_engine()}, {});
  const std::vector<float> want = live(whole, 30, 16, 3);
  // Engine 1 is far.
  const std::vector<int32_t> cuts[] = {{1, 0, 1}, {0, 0, 1},    {1, 0, 0}, {0, 0, 0, 1},
                                       {0, 1, 0}, {1, 1, 1, 0}, {1}};
  for (const auto& cut : cuts) {
    test::FarMemory memory;
    Machine split(sandwich.graph(), {test::cpu_engine(), std::make_shared<test::FarEngine>(memory)},
                  cut);
    EXPECT_EQ(live(split, 30, 16, 3), want) << testing::PrintToString(cut);
  }
}

class Recorder final : public engine::Tracer {
 public:
  void record(const engine::TraceEvent& event) noexcept override {
    ops += event.op;
    ops += " ";
  }
  std::string ops;
};

TEST(EngineSplit, MovesAValueOnceAndSelectsBeforeItMoves) {
  const test::TinyGraph tiny;
  const int32_t cut[] = {0, 1, 0};  // the head is where the embedding is
  const Engines engines(2, std::make_shared<test::ReferenceEngine>());
  Machine split(tiny.graph(), engines, cut);
  const auto cache = split.cache("fp32", false);
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{1, 2, 3}, /*all=*/false).ok());
  Recorder recorder;
  batch.finish(30).tracer = &recorder;
  ASSERT_TRUE(split.run(batch.batch).ok());
  const std::string& ops = recorder.ops;
  size_t transfers = 0;
  for (size_t i = ops.find("transfer"); i != std::string::npos; i = ops.find("transfer", i + 1)) {
    ++transfers;
  }
  EXPECT_EQ(transfers, 2U) << ops;  // into block 1, and the one selected row to the head
  EXPECT_LT(ops.find("select_rows"), ops.rfind("transfer")) << ops;
  const auto instructions = split.plan->instructions();
  const auto last =
      std::find_if(instructions.rbegin(), instructions.rend(),
                   [](const Instruction& instruction) { return instruction.op == Op::kTransfer; });
  EXPECT_TRUE(last->selected);
  EXPECT_EQ(last->engine, 0);
  const std::vector<int32_t> layers(split.plan->layer_engines().begin(),
                                    split.plan->layer_engines().end());
  EXPECT_EQ(layers, (std::vector<int32_t>{0, 1}));
}

TEST(EngineSplit, WhatCannotBeIsRefused) {
  const test::TinyGraph tiny;
  const Engines two(2, test::cpu_engine());
  const auto says = [&](const Engines& engines, std::vector<int32_t> cut) {
    const auto plan = compile(tiny.graph(), engines, cut, options_of());
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
    return std::string(plan.status().message());
  };
  EXPECT_EQ(says({}, {0}), "no engine to compile for");
  EXPECT_EQ(says({two[0], nullptr}, {0, 1}), "no engine to compile for");
  EXPECT_EQ(says(two, {}), "2 engines, and no block for them");
  EXPECT_EQ(says(two, {0, 2}), "block 1 is for engine 2 of 2");
  EXPECT_EQ(says(two, {-1}), "block 0 is for engine -1 of 2");

  // A cache in a memory that one of them cannot reach.
  const int32_t cut[] = {0, 1};
  test::FarMemory memory;
  const Engines one_far = {two[0], std::make_shared<test::FarEngine>(memory)};
  Machine split(tiny.graph(), one_far, cut);
  cache::LaneLimits limits;
  limits.max_sequences = 1;
  limits.capacity = kCapacity;
  limits.max_batch = 8;
  const auto store =
      cache::LaneStore::create("fp32", tiny.layer_shapes(), limits, engine::system_memory())
          .value();
  const auto lane = store->lane(0).value();
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(*lane, std::vector<int32_t>{1}).ok());
  const Status status = split.run(batch.finish(30));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_STREQ(
      status.message(),
      "layer 1 of the lane cache of sequence 0 is in memory that engine far cannot address");
  // Where all layers are of an engine that can it is as good as any.
  const int32_t head_apart[] = {0, 0, 1};
  Machine apart(tiny.graph(), one_far, head_apart);
  EXPECT_TRUE(apart.run(batch.batch).ok());
}

TEST(EngineSplit, ABlockStaysWithTheLayerThatItShares) {
  std::vector<float> table(30 * 16, 0.5F);
  std::vector<float> square(16 * 16, 0.25F);
  const auto source = [](const char* name, const std::vector<float>& data, int64_t rows) {
    return engine::WeightSource{name, DType::kF32, rows, 16, std::as_bytes(std::span(data)), true};
  };
  GraphBuilder b;
  AttentionSpec spec;
  spec.n_heads = spec.n_kv_heads = 2;
  spec.k_dim = spec.v_dim = 8;
  ValueId x = b.embed(source("embed", table, 30));
  for (int32_t block = 0; block < 2; ++block) {
    b.begin_block(block);
    const auto made = [&](int32_t site) { return b.linear(x, source("w", square, 16), {}, site); };
    if (block == 1) spec.use = CacheUse::kShared;
    const bool own = block == 0;
    spec.shared = own ? -1 : 0;
    const ValueId q = made(0);
    x = b.attention(
        b.rope_append(q, own ? made(1) : ValueId(), own ? made(2) : ValueId(), block, spec), block);
  }
  b.logits(b.linear(b.select_rows(x), source("head", table, 30), {}, 3));
  const Graph graph = b.finish().value();
  const Engines two(2, test::cpu_engine());
  const auto plan = compile(graph, two, std::vector<int32_t>{0, 1}, options_of());
  EXPECT_EQ(plan.status().code(), Code::kUnsupported);
  EXPECT_STREQ(plan.status().message(),
               "block 1 shares the cache layer of block 0, on another engine");
  EXPECT_TRUE(compile(graph, two, std::vector<int32_t>{1, 1, 0}, options_of()).ok());
}

TEST(EngineSplit, EveryFailedAllocationIsReportedAndNothingLeaks) {
  const test::TinyGraph tiny;
  const int32_t cut[] = {0, 1};
  test::CountingAllocator allocator;
  bool succeeded = false;
  size_t failures = 0;
  for (size_t n = 0; n < 100 && !succeeded; ++n) {
    allocator.calls = 0;
    allocator.fail_at = n;
    {
      const test::ReferenceEngine::Options plain;
      const Engines engines = {std::make_shared<test::ReferenceEngine>(plain, allocator),
                               std::make_shared<test::ReferenceEngine>(plain, allocator)};
      WorkspacePool pool(engines);
      const auto cache =
          cache::make_cache("fp32", tiny.layer_shapes(), 16, engine::system_memory()).value();
      test::OwnedBatch batch;
      ASSERT_TRUE(batch.add(*cache, std::vector<int32_t>{1, 2}).ok());
      const auto plan = compile(tiny.graph(), engines, cut, options_of());
      Status status = plan.status();
      if (status.ok()) {
        auto workspace = pool.borrow();
        ASSERT_TRUE(workspace.ok());
        status = plan.value()->run(batch.finish(30), **workspace);
        if (!status.ok()) {
          allocator.fail_at = ~size_t{0};
          EXPECT_TRUE(plan.value()->run(batch.batch, **workspace).ok());
        }
      }
      succeeded = status.ok();
      if (!succeeded) {
        ++failures;
        EXPECT_EQ(status.code(), Code::kOutOfMemory);
      }
    }
    EXPECT_EQ(allocator.live_blocks, 0U) << "request " << n;
  }
  EXPECT_TRUE(succeeded);
  EXPECT_EQ(failures, 7U);  // of each constants, rows and step block; of the second selected rows
}

}  // namespace
}  // namespace gen::graph

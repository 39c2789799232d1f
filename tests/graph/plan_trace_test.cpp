// SPDX-License-Identifier: Apache-2.0
// Proves that a trace of a plan holds the instructions that ran and no others, that its tensors are
// made once and before they are read, and that what a pass appends to a cache is what that pass and
// the next ones read. What ran is counted by another tracer; caches by their lengths.
#include "graph/plan_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "graph/execution_plan.h"
#include "support/counting_new.h"
#include "support/reference_cache.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

using engine::TracedOp;
using engine::TraceLog;

constexpr int32_t kLayers = 2;
constexpr int32_t kMost = 64;

/// Passes calls on, and counts what succeeded.
class Counter final : public engine::Tracer {
 public:
  explicit Counter(engine::Tracer& next) : next_(next) {}
  void record(const engine::TraceEvent& event) noexcept override {
    running_ = event.op;
    next_.record(event);
  }
  void done() noexcept override {
    ++calls[running_];
    next_.done();
  }
  void failed() noexcept override { next_.failed(); }
  std::map<std::string, size_t> calls;

 private:
  engine::Tracer& next_;
  const char* running_ = "";
};

/// A cache whose layers are brought, of which the nth fails.
class FailingCache final : public cache::KvCache {
 public:
  explicit FailingCache(std::span<const cache::LayerShape> layers) : inner_(layers, kMost) {}
  const cache::CacheTraits& traits() const noexcept override { return inner_.traits(); }
  std::span<const cache::LayerShape> layers() const noexcept override { return inner_.layers(); }
  int32_t length() const noexcept override { return inner_.length(); }
  int32_t capacity() const noexcept override { return inner_.capacity(); }
  Result<cache::CachePlan> plan(int32_t n) override { return inner_.plan(n); }
  std::span<const engine::KvLayer> kv_layers() const noexcept override {
    return inner_.kv_layers();
  }
  int32_t parts() const noexcept override { return inner_.parts(); }
  engine::EngineMemory& engine_memory(int32_t part) const noexcept override {
    return inner_.engine_memory(part);
  }
  Result<std::unique_ptr<cache::KvCache>> fork() override { return inner_.fork(); }
  Result<engine::KvTables> tables(int32_t part, const cache::CachePlan& plan) override {
    return inner_.tables(part, plan);
  }
  Status stage(int32_t layer, const cache::CachePlan&) override {
    if (staged++ == fails_at) return error(Code::kIo, "no layer %d", layer);
    return {};
  }
  bool stages(const cache::CachePlan&) const noexcept override { return true; }
  void commit(const cache::CachePlan& plan, cache::Kept kept) noexcept override {
    inner_.commit(plan, kept);
  }
  Status truncate(int32_t n) override { return inner_.truncate(n); }
  cache::MemoryUse memory() const noexcept override { return inner_.memory(); }

  int staged = 0;
  int fails_at = -1;

 private:
  test::ReferenceCache inner_;
};

class PlanTraceTest : public ::testing::Test {
 protected:
  PlanTraceTest() : engine_(std::make_shared<test::ReferenceEngine>()), pool_(engine_) {
    CompileOptions options;
    options.max_seq_len = kMost;
    plan_ = std::move(compile(tiny_.graph(), engine_, options)).value();
    for (int i = 0; i < 2; ++i) {
      caches_.push_back(std::make_unique<FailingCache>(tiny_.layer_shapes()));
    }
  }
  /// Runs so many tokens of each sequence; 0 leaves it out.
  Status feed(const std::vector<int32_t>& counts) {
    test::OwnedBatch batch;
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      const std::vector<int32_t> tokens(static_cast<size_t>(counts[i]), 7);
      GEN_TRY(batch.add(*caches_[i], tokens, /*all=*/false));
      batch.sequences.back().trace_id = static_cast<int64_t>(i) + 1;
    }
    batch.finish(30).tracer = &counter_;
    auto workspace = pool_.borrow();
    GEN_TRY(plan_->run(batch.batch, **workspace));
    batch.commit();
    logits_ = batch.results(30);
    return {};
  }
  /// Every tensor is made once, and made or named before it is read; returns those that no
  /// operation made.
  [[nodiscard]] std::set<int64_t> expect_sound() const {
    std::set<int64_t> made;
    std::set<int64_t> given;
    for (const TracedOp& op : log_->ops()) {
      for (int64_t input : op.inputs) {
        EXPECT_GT(input, 0);
        if (made.count(input) == 0) given.insert(input);
      }
      for (int64_t output : op.outputs) {
        EXPECT_TRUE(made.insert(output).second) << op.name;
        EXPECT_EQ(given.count(output), 0u) << op.name;
      }
    }
    return given;
  }
  [[nodiscard]] std::map<std::string, size_t> counts() const {
    std::map<std::string, size_t> out;
    for (const TracedOp& op : log_->ops()) ++out[op.name];
    return out;
  }
  [[nodiscard]] std::vector<TracedOp> named(const std::string& name, int32_t layer) const {
    std::vector<TracedOp> out;
    for (const TracedOp& op : log_->ops()) {
      if (op.name == name && op.layer == layer) out.push_back(op);
    }
    return out;
  }

  test::TinyGraph tiny_;
  std::shared_ptr<test::ReferenceEngine> engine_;
  WorkspacePool pool_;
  std::shared_ptr<const ExecutionPlan> plan_;
  std::vector<std::unique_ptr<FailingCache>> caches_;
  std::shared_ptr<TraceLog> log_ = std::make_shared<TraceLog>();
  PlanTrace trace_{log_};
  Counter counter_{trace_};
  std::vector<float> logits_;
};

TEST_F(PlanTraceTest, APassIsItsInstructionsAndWhatTheyDoToCaches) {
  ASSERT_TRUE(feed({5}).ok());
  EXPECT_TRUE(expect_sound().empty());  // the cache was empty
  auto expected = counter_.calls;
  for (const char* name : {"KVCacheAppendK", "KVCacheAppendV"}) expected[name] = kLayers;
  for (const char* name : {"KVCacheGetK", "KVCacheGetV"}) expected[name] = kLayers;
  EXPECT_EQ(counts(), expected);
  const TracedOp product = log_->ops()[4];
  EXPECT_STREQ(product.name, "linear");
  EXPECT_EQ(product.weight, "q+k+v");
  ASSERT_EQ(product.outputs.size(), 1u);
  EXPECT_EQ(log_->shape(product.outputs[0]).seq, 5);
  EXPECT_EQ(log_->shape(product.outputs[0]).dim, 56);
  // 4 heads over 2, of 6 and 10.
  for (int32_t layer = 0; layer < kLayers; ++layer) {
    const TracedOp rope = named("rope_append", layer).at(0);
    const TracedOp keys = named("KVCacheAppendK", layer).at(0);
    const TracedOp values = named("KVCacheAppendV", layer).at(0);
    ASSERT_EQ(rope.outputs.size(), 3u);
    EXPECT_EQ(keys.inputs, std::vector<int64_t>{rope.outputs[1]});
    EXPECT_EQ(values.inputs, std::vector<int64_t>{rope.outputs[2]});
    const engine::TraceShape shape = log_->shape(values.outputs[0]);
    EXPECT_EQ(shape.batch, 2);
    EXPECT_EQ(shape.seq, 5);
    EXPECT_EQ(shape.dim, 10);
    EXPECT_EQ(named("KVCacheGetK", layer).at(0).inputs, keys.outputs);
    EXPECT_EQ(named("KVCacheGetV", layer).at(0).inputs, values.outputs);
    const TracedOp attention = named("attention", layer).at(0);
    EXPECT_EQ(attention.inputs,
              (std::vector<int64_t>{rope.outputs[0], named("KVCacheGetK", layer).at(0).outputs[0],
                                    named("KVCacheGetV", layer).at(0).outputs[0]}));
  }
}

TEST_F(PlanTraceTest, PassesFollowOnOneAnother) {
  ASSERT_TRUE(feed({5}).ok());
  ASSERT_TRUE(feed({1}).ok());
  EXPECT_TRUE(expect_sound().empty());
  const auto keys = named("KVCacheAppendK", 1);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[1].inputs.at(0), keys[0].outputs[0]);
  EXPECT_EQ(log_->shape(keys[1].outputs[0]).seq, 6);
  // A cut, and as long again: what was cut is not what was there.
  ASSERT_TRUE(caches_[0]->truncate(3).ok());
  ASSERT_TRUE(feed({3}).ok());
  const auto given = expect_sound();
  EXPECT_EQ(given.size(), 2u * kLayers);
  EXPECT_EQ(given.count(named("KVCacheAppendK", 1)[2].inputs.at(0)), 1u);
}

TEST_F(PlanTraceTest, SequencesAreToldApart) {
  ASSERT_TRUE(feed({4, 2}).ok());
  ASSERT_TRUE(feed({0, 1}).ok());
  ASSERT_TRUE(feed({1, 3}).ok());
  EXPECT_TRUE(expect_sound().empty());
  const auto keys = named("KVCacheAppendK", 0);
  ASSERT_EQ(keys.size(), 5u);
  EXPECT_EQ(keys[2].inputs.at(0), keys[1].outputs[0]);
  EXPECT_EQ(keys[3].inputs.at(0), keys[0].outputs[0]);
  EXPECT_EQ(keys[4].inputs.at(0), keys[2].outputs[0]);
  EXPECT_EQ(named("attention", 0)[2].inputs.size(), 1u + 4);
}

TEST_F(PlanTraceTest, WhatFailedIsNotRecorded) {
  for (int fail = 0; fail < kLayers; ++fail) {
    caches_[0]->staged = 0;
    caches_[0]->fails_at = fail;
    EXPECT_EQ(feed({3}).code(), Code::kIo);
    auto expected = counter_.calls;
    EXPECT_EQ(expected["rope_append"], static_cast<size_t>(fail == 0 ? 0 : 1));
    const size_t appends = named("KVCacheAppendK", 0).size() + named("KVCacheAppendK", 1).size();
    EXPECT_EQ(appends, expected["rope_append"]);
    EXPECT_EQ(counts()["attention"], expected["attention"]);
  }
  caches_[0]->fails_at = -1;
  ASSERT_TRUE(feed({3}).ok());
  EXPECT_TRUE(expect_sound().empty());
}

TEST_F(PlanTraceTest, RandomPassesAreThoseDone) {
  std::mt19937 random(6);
  std::map<std::string, size_t> appends;  // by the shape that came out
  for (int step = 0; step < 300; ++step) {
    const auto which = static_cast<size_t>(random() % 2);
    if (random() % 3 == 0) {
      ASSERT_TRUE(caches_[which]->truncate(static_cast<int32_t>(random() % 50)).ok());
      continue;
    }
    std::vector<int32_t> rows = {static_cast<int32_t>(random() % 4), 0};
    rows[1] = static_cast<int32_t>(random() % 4) + (rows[0] == 0 ? 1 : 0);
    caches_[0]->staged = 0;
    caches_[0]->fails_at = random() % 6 == 0 ? static_cast<int>(random() % 4) : -1;
    const auto before = counter_.calls["rope_append"];
    const Status status = feed(rows);
    // Layers that were written are recorded, whether or not the pass came to its end.
    const size_t layers = counter_.calls["rope_append"] - before;
    EXPECT_TRUE(!status.ok() || layers == kLayers);
    for (size_t i = 0; i < 2; ++i) {
      if (rows[i] == 0 || layers == 0) continue;
      const int32_t length = caches_[i]->length() + (status.ok() ? 0 : rows[i]);
      appends[std::to_string(length)] += layers;
    }
  }
  static_cast<void>(expect_sound());
  std::map<std::string, size_t> recorded;
  for (const TracedOp& op : log_->ops()) {
    if (std::string(op.name) != "KVCacheAppendK") continue;
    ++recorded[std::to_string(log_->shape(op.outputs[0]).seq)];
  }
  EXPECT_EQ(recorded, appends);
  auto all = counts();
  for (const auto& [name, calls] : counter_.calls) EXPECT_EQ(all[name], calls) << name;
  EXPECT_EQ(all["KVCacheAppendK"], all["KVCacheAppendV"]);
  EXPECT_EQ(all["KVCacheGetK"], all["KVCacheGetV"]);
  EXPECT_FALSE(log_->incomplete());
}

// Whichever list of the record has to grow when there is no memory, what is recorded later names
// tensors that there are.
TEST(PlanTraceMemory, EveryAllocationOfARecordFails) {
  const engine::TraceCache first = {1, 0, 3, 2, 6, 10};
  const engine::TraceCache later = {1, 3, 1, 2, 6, 10};
  const engine::TraceCache nameless = {0, 7, 1, 2, 6, 10};
  const engine::TraceValue q = {0, 3, 24};
  engine::TraceEvent append;
  append.op = "rope_append";
  append.layer = 0;
  append.rows = 3;
  append.inputs = append.outputs = {&q, 1};
  engine::TraceEvent attention = append;
  attention.op = "attention";
  // Lists grow at powers of two: with any number of tensors before, that falls on any of them.
  for (int before = 0; before < 40; ++before) {
    for (size_t nth = 0;; ++nth) {
      auto log = std::make_shared<TraceLog>();
      for (int i = 0; i < before; ++i) log->add_tensor({1, 1, 1});
      PlanTrace trace(log);
      test::fail_new_at = test::news + nth;
      for (const engine::TraceCache* cache : {&first, &later, &nameless}) {
        append.caches = attention.caches = {cache, 1};
        trace.record(append);
        trace.done();
        trace.record(attention);
        trace.done();
      }
      const bool reached = test::news > test::fail_new_at;
      test::fail_new_at = ~size_t{0};
      EXPECT_EQ(log->incomplete(), reached);
      const auto count = static_cast<int64_t>(log->add_tensor({1, 1, 1}));
      for (const TracedOp& op : log->ops()) {
        for (const auto* list : {&op.inputs, &op.outputs}) {
          for (const int64_t tensor : *list) {
            ASSERT_TRUE(tensor > 0 && tensor < count) << op.name << " " << before << " " << nth;
          }
        }
      }
      EXPECT_FALSE(log->dot().empty());
      if (!reached) break;
    }
  }
}

}  // namespace
}  // namespace gen::graph

// SPDX-License-Identifier: Apache-2.0
// Proves that columns of a value serve operations as a copy of them does, to the bit: a product
// with a matrix of ones and zeros makes the copy. In every way that a plan is made, on one engine
// and two.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "cache/sequence/registry.h"
#include "cache/state/recurrent_state.h"
#include "engine/host_memory.h"
#include "graph/execution_plan.h"
#include "support/cpu_engine.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kPieces = 7;
constexpr int32_t kVocab = 20;

/// A block whose operations read pieces of one wide product.
class Pieces {
 public:
  explicit Pieces(bool slices) : slices_(slices) {
    GraphBuilder b;
    const ValueId x = b.embed(matrix("table", kVocab, kWidth));
    b.tap(0, x);
    b.begin_block(0);
    const ValueId wide = b.linear(x, matrix("wide", kPieces * kWidth, kWidth), {}, 0);
    const auto piece = [&](int64_t i) {
      return take(b, wide, kPieces * kWidth, i * kWidth, kWidth);
    };
    ValueId sum = b.rms_norm(piece(0), ones(), 1e-5F);
    sum = b.add(sum, b.linear(piece(1), matrix("square", kWidth, kWidth), {}, 1));
    sum = b.add(b.linear(sum, matrix("end", kWidth, kWidth), {}, 2), piece(1));  // a residual
    sum = b.add(sum, b.apply(Op::kGated, {piece(2), piece(3)}, {engine::Act::kSilu}));
    sum = b.add(sum, b.apply(Op::kActivate, {piece(4)}, {engine::Act::kGelu}));
    sum = b.add(sum, b.scan(piece(0), piece(5), piece(4)));
    AttentionSpec spec;
    spec.n_heads = spec.n_kv_heads = 2;
    spec.k_dim = spec.v_dim = 4;
    spec.rope = b.rope_table({engine::RopeKind::kHalves, 4, {1.0F, 0.1F}, 1.0F});
    const ValueId q = b.linear(piece(3), matrix("q", kWidth, kWidth), {}, 3);
    sum = b.add(sum, b.attention(b.rope_append(q, piece(5), piece(6), 0, spec), 0));
    b.begin_block(1);
    sum = b.add(sum, piece(6));
    b.tap(1, take(b, sum, kWidth, 0, kWidth));
    b.begin_block(2);
    b.logits(take(b, b.linear(b.select_rows(sum), matrix("head", 2 * kWidth, kWidth), {}, 4),
                  2 * kWidth, 3, kWidth + 1));
    graph_ = b.finish().value();
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  static std::vector<float> ones() { return std::vector<float>(kWidth, 1.0F); }
  engine::WeightSource source(const char* name, int64_t cols, std::vector<float> values) {
    held_.push_back(std::move(values));
    const auto rows = static_cast<int64_t>(held_.back().size()) / cols;
    return {name, DType::kF32, rows, cols, std::as_bytes(std::span(held_.back())), true};
  }
  engine::WeightSource matrix(const char* name, int64_t rows, int64_t cols) {
    std::vector<float> values(static_cast<size_t>(rows * cols));
    for (float& value : values) value = static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F;
    return source(name, cols, std::move(values));
  }
  /// Columns [first, first + n) of x, which has `cols`.
  ValueId take(GraphBuilder& b, ValueId x, int64_t cols, int64_t first, int64_t n) {
    if (slices_) return b.slice(x, first, n);
    std::vector<float> chosen(static_cast<size_t>(n * cols));
    for (int64_t i = 0; i < n; ++i) chosen[static_cast<size_t>(i * cols + first + i)] = 1.0F;
    return b.linear(x, source("copy", cols, std::move(chosen)), {}, -1);
  }

  const bool slices_;
  std::mt19937 random_{7};
  std::deque<std::vector<float>> held_;
  Graph graph_;
};

/// A prompt and rows after it; what all rows gave, and their taps.
std::vector<float> run(const ExecutionPlan& plan) {
  const auto cache =
      cache::make_cache("fp32", plan.cache_layers(), 32, engine::system_memory()).value();
  cache::RecurrentState state(plan.states(), plan.state_memory());
  const auto workspace = Workspace::create(plan.engines()).value();
  std::vector<float> all;
  for (const std::vector<int32_t>& tokens : {std::vector{1, 17, 3, 4, 9, 0, 12}, {6}, {2, 19}}) {
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(*cache, tokens, true, &state).ok());
    std::vector<float> hidden(tokens.size() * kWidth);
    const Tap taps[] = {{1, hidden.data()}};
    batch.finish(kWidth + 1).taps = taps;
    const Status status = plan.run(batch.batch, *workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const auto results = batch.results(kWidth + 1);
    all.insert(all.end(), results.begin(), results.end());
    all.insert(all.end(), hidden.begin(), hidden.end());
  }
  return all;
}

TEST(Slice, IsAsGoodAsACopy) {
  const Pieces sliced(true);
  const Pieces copied(false);
  const std::shared_ptr<engine::Engine> cpu = test::cpu_engine();
  const std::shared_ptr<engine::Engine> reference = std::make_shared<test::ReferenceEngine>();
  for (const auto& engine : {cpu, reference}) {
    CompileOptions plain;
    plain.max_seq_len = 32;
    plain.fusion = {false, false, false, false, false, false};
    const std::vector<float> want = run(*compile(copied.graph(), engine, plain).value());
    for (int32_t bits = 0; bits < 64; ++bits) {
      CompileOptions options = plain;
      const auto on = [bits](int32_t i) { return (bits >> i & 1) != 0; };
      options.fusion = {on(0), on(1), on(2), on(3), on(4), on(5)};
      EXPECT_EQ(run(*compile(sliced.graph(), engine, options).value()), want) << bits;
    }
    CompileOptions options;
    options.max_seq_len = 32;
    for (const std::vector<int32_t>& blocks : {std::vector{0, 1, 1}, {0, 1, 0}, {0, 0, 1}}) {
      const auto plan = compile(sliced.graph(), {engine, engine}, blocks, options).value();
      EXPECT_EQ(run(*plan), want) << blocks[1] << blocks[2];
    }
  }
}

// Columns where they lie: no operation makes them.
TEST(Slice, CostsNoInstruction) {
  const Pieces sliced(true);
  CompileOptions options;
  options.max_seq_len = 32;
  const auto plan = compile(sliced.graph(), test::cpu_engine(), options).value();
  for (const Instruction& in : plan->instructions()) EXPECT_NE(in.op, Op::kSlice);
}

}  // namespace
}  // namespace gen::graph

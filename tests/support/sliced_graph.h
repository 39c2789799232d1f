// SPDX-License-Identifier: Apache-2.0
// SlicedGraph: a block whose operations read columns of one wide product, or copies of them that a
// product with a matrix of ones and zeros makes, after embeddings by tokens, by positions and of
// one row: for tests of plans on all engines.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "cache/sequence/registry.h"
#include "cache/state/recurrent_state.h"
#include "support/tiny_graph.h"

namespace gen::test {

class SlicedGraph {
 public:
  static constexpr int64_t kWidth = 8;
  static constexpr int64_t kResult = kWidth + 1;
  static constexpr int32_t kContext = 32;

  /// `means`: rows answer with means of what the head reads.
  explicit SlicedGraph(bool slices, bool means = false) : slices_(slices) {
    using engine::Op;
    using graph::Lookup;
    using graph::ValueId;
    constexpr int64_t kPieces = 7;
    graph::GraphBuilder b;
    ValueId x = b.embed(matrix("table", 20, kWidth));
    b.tap(0, x);
    x = b.add(x, b.embed(matrix("places", kContext, kWidth), 0.5F, Lookup::kPositions));
    x = b.add(x, b.embed_row(matrix("types", 3, kWidth), 2));
    b.begin_block(0);
    const ValueId wide = b.linear(x, matrix("wide", kPieces * kWidth, kWidth), {}, 0);
    const auto piece = [&](int64_t i) {
      return take(b, wide, kPieces * kWidth, i * kWidth, kWidth);
    };
    const ValueId three = take(b, wide, kPieces * kWidth, 3 * kWidth, 3 * kWidth);
    const ValueId fourth = take(b, three, 3 * kWidth, kWidth, kWidth);  // columns of columns
    ValueId sum = b.rms_norm(piece(0), ones(), 1e-5F);
    sum = b.add(sum, b.linear(piece(1), matrix("square", kWidth, kWidth), {}, 1));
    sum = b.add(b.linear(sum, matrix("end", kWidth, kWidth), {}, 2), piece(1));  // a residual
    sum = b.add(sum, b.apply(Op::kGated, {piece(2), piece(3)}, {engine::Act::kSilu}));
    sum = b.add(sum, b.apply(Op::kActivate, {fourth}, {engine::Act::kGelu}));
    sum = b.add(sum, b.scan(piece(0), piece(5), piece(4)));
    const std::vector<float> rates = {-0.4F, -1.5F};
    const ValueId dt = take(b, wide, kPieces * kWidth, 9, 2);
    const ValueId in = take(b, wide, kPieces * kWidth, 13, 6);
    sum = b.add(sum, b.selective_scan(piece(2), dt, in, take(b, wide, kPieces * kWidth, 30, 6),
                                      {2, rates, rates, rates}));
    graph::AttentionSpec spec;
    spec.n_heads = spec.n_kv_heads = 2;
    spec.k_dim = spec.v_dim = 4;
    spec.rope = b.rope_table({engine::RopeKind::kHalves, 4, {1.0F, 0.1F}, 1.0F});
    const ValueId q = b.linear(piece(3), matrix("q", kWidth, kWidth), {}, 3);
    sum = b.add(sum, b.attention(b.rope_append(q, piece(5), piece(6), 0, spec), 0));
    b.begin_block(1);
    sum = b.add(sum, piece(6));
    b.tap(1, take(b, sum, kWidth, 0, kWidth));
    b.begin_block(2);
    const ValueId end = means ? b.mean_rows(sum) : b.select_rows(sum);
    b.result(
        take(b, b.linear(end, matrix("head", 2 * kWidth, kWidth), {}, 4), 2 * kWidth, 3, kResult));
    graph_ = b.finish().value();
  }
  [[nodiscard]] const graph::Graph& graph() const { return graph_; }

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
  graph::ValueId take(graph::GraphBuilder& b, graph::ValueId x, int64_t cols, int64_t first,
                      int64_t n) {
    if (slices_) return b.slice(x, first, n);
    std::vector<float> chosen(static_cast<size_t>(n * cols));
    for (int64_t i = 0; i < n; ++i) chosen[static_cast<size_t>(i * cols + first + i)] = 1.0F;
    return b.linear(x, source("copy", cols, std::move(chosen)), {}, -1);
  }

  const bool slices_;
  std::mt19937 random_{7};
  std::deque<std::vector<float>> held_;
  graph::Graph graph_;
};

/// A prompt and rows after it, beside a sequence of its own in each step; what all rows gave, and
/// their taps. Means are of one step, so then the first is all.
inline std::vector<float> run_sliced(const graph::ExecutionPlan& plan) {
  constexpr int64_t kWidth = SlicedGraph::kWidth;
  engine::EngineMemory& memory = plan.engines()[0]->memory();
  const auto new_cache = [&] {
    return cache::make_cache("fp32", plan.cache_layers(), SlicedGraph::kContext, memory).value();
  };
  const auto cache = new_cache();
  cache::RecurrentState state(plan.states(), plan.state_memory());
  const auto workspace = graph::Workspace::create(plan.engines()).value();
  std::vector<float> all;
  for (const std::vector<int32_t>& tokens : {std::vector{1, 17, 3, 4, 9, 0, 12}, {6}, {2, 19}}) {
    const auto other = new_cache();
    cache::RecurrentState beside(plan.states(), plan.state_memory());
    OwnedBatch batch;
    EXPECT_TRUE(batch.add(*other, std::vector{5, 6, 7}, false, &beside).ok());
    EXPECT_TRUE(batch.add(*cache, tokens, true, &state).ok());
    std::vector<float> hidden(batch.tokens.size() * kWidth);
    const graph::Tap taps[] = {{1, hidden.data()}};
    batch.finish(SlicedGraph::kResult);
    if (!plan.limits().means) batch.batch.taps = taps;  // and steps that may be padded
    const Status status = plan.run(batch.batch, *workspace);
    EXPECT_TRUE(status.ok()) << status.message();
    batch.commit();
    const auto results = batch.results(SlicedGraph::kResult);
    all.insert(all.end(), results.begin(), results.end());
    all.insert(all.end(), hidden.begin(), hidden.end());
    if (plan.limits().means) break;
  }
  return all;
}

}  // namespace gen::test

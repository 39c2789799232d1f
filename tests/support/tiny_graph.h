// SPDX-License-Identifier: Apache-2.0
// TinyGraph: a small decoder of random weights as a graph, for tests of what is made of graphs. The
// graph borrows the weights that this object holds.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/sequence/kv_cache.h"
#include "graph/execution_plan.h"
#include "graph/graph.h"
#include "quant/format.h"
#include "support/weight_blocks.h"

namespace gen::test {

struct TinyShape {
  int32_t layers = 2;
  int32_t hidden = 24;  // no multiple of 16, so that strides differ from widths
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t k_dim = 6;
  int32_t v_dim = 10;
  int32_t feed_forward = 40;
  int32_t vocab = 30;
  bool biases = true;
  bool head_norms = true;
  DType v_type = DType::kF32;  // of attn_v, to mix types in a stack
  int32_t experts = 0;         // in the place of the feed-forward; two of them are used
  /// The type of the experts' `up`, to mix types.
  DType expert_up_type = DType::kF32;
};

class TinyGraph {
 public:
  explicit TinyGraph(const TinyShape& shape = {}, uint32_t seed = 1)
      : shape_(shape), random_(seed) {
    graph::GraphBuilder builder;
    const int32_t d = shape.hidden;
    const int32_t q_rows = shape.heads * shape.k_dim;
    graph::AttentionSpec spec;
    spec.n_heads = shape.heads;
    spec.n_kv_heads = shape.kv_heads;
    spec.k_dim = shape.k_dim;
    spec.v_dim = shape.v_dim;
    spec.scale = 0.4F;
    spec.rope = builder.rope_table({engine::RopeKind::kAdjacent, 4, {1.0F, 0.1F}, 1.0F});
    graph::ValueId x = builder.embed(matrix("embed", shape.vocab, d), 1.5F, graph::Lookup::kTokens,
                                     graph::site_id(shape.layers, graph::SiteKind::kEmbedding));
    builder.tap(0, x);
    for (int32_t i = 0; i < shape.layers; ++i) {
      using graph::SiteKind;
      builder.begin_block(i);
      const auto site = [&](SiteKind kind) { return graph::site_id(i, kind); };
      graph::ValueId a = builder.rms_norm(x, vector(d), 1e-5F);
      const auto q = builder.linear(a, matrix("q", q_rows, d), bias(q_rows), site(SiteKind::kQ));
      const auto k =
          builder.linear(a, matrix("k", shape.kv_heads * shape.k_dim, d), {}, site(SiteKind::kK));
      const auto v = builder.linear(a, matrix("v", shape.kv_heads * shape.v_dim, d, shape.v_type),
                                    bias(shape.kv_heads * shape.v_dim), site(SiteKind::kV));
      a = builder.attention(builder.rope_append(q, k, v, i, spec, head_norm(), head_norm(), 1e-5F),
                            i);
      a = builder.linear(a, matrix("o", d, shape.heads * shape.v_dim), bias(d),
                         site(SiteKind::kAttnOut));
      x = builder.add(x, a);
      a = builder.rms_norm(x, vector(d), 1e-5F);
      const int32_t f = shape.feed_forward;
      if (shape.experts > 0) {
        x = builder.add(experts(builder, a, i), x);
        builder.tap(i + 1, x);
        continue;
      }
      const auto gate = builder.linear(a, matrix("gate", f, d), {}, site(SiteKind::kGate));
      const auto up = builder.linear(a, matrix("up", f, d), bias(f), site(SiteKind::kUp));
      const auto gated = builder.apply(engine::Op::kGated, {gate, up}, {engine::Act::kSilu});
      a = builder.linear(gated, matrix("down", d, f), {}, site(SiteKind::kDown));
      x = builder.add(a, x);
      builder.tap(i + 1, x);
    }
    builder.begin_block(shape.layers);
    x = builder.rms_norm(builder.select_rows(x), vector(d), 1e-5F);
    builder.logits(builder.linear(x, matrix("head", shape.vocab, d), {},
                                  graph::site_id(shape.layers, graph::SiteKind::kLogits)));
    auto graph = builder.finish();
    if (graph.ok()) graph_ = std::move(graph).value();
  }

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] const TinyShape& shape() const { return shape_; }
  [[nodiscard]] size_t weight_bytes() const {
    size_t bytes = 0;
    for (const auto& data : data_) bytes += data->size();
    return bytes;
  }
  [[nodiscard]] std::vector<cache::LayerShape> layer_shapes() const {
    cache::LayerShape layer;
    layer.kv_heads = shape_.kv_heads;
    layer.k_dim = shape_.k_dim;
    layer.v_dim = shape_.v_dim;
    layer.rope = engine::RopeKind::kAdjacent;
    layer.rope_dims = 4;
    return std::vector<cache::LayerShape>(static_cast<size_t>(shape_.layers), layer);
  }

 private:
  graph::ValueId experts(graph::GraphBuilder& builder, graph::ValueId a, int32_t layer) {
    const int32_t n = shape_.experts;
    const int32_t f = shape_.feed_forward;
    const int32_t d = shape_.hidden;
    engine::Routing routing = {engine::Gating::kSoftmax, n, 2};
    routing.normalise = true;
    using graph::SiteKind;
    const auto site = [&](SiteKind kind) { return graph::site_id(layer, kind); };
    const auto logits = builder.linear(a, matrix("router", n, d), bias(n), site(SiteKind::kRouter));
    const auto routes = builder.route(logits, routing, bias(n));
    const auto stack = [&](const char* name, int32_t rows, int32_t cols, DType type = DType::kF32) {
      engine::WeightSource all = matrix(name, rows * n, cols, type);
      all.rows = rows;
      all.count = n;
      all.pitch = n > 1 ? all.data.size() / static_cast<size_t>(n) : 0;
      return all;
    };
    const auto gate =
        builder.experts(a, routes, stack("gates", f, d), {}, {}, site(SiteKind::kExpertGates));
    const auto up =
        builder.experts(a, routes, stack("ups", f, d, shape_.expert_up_type), bias(f * n),
                        vector(n),  // scales, which the gates have none of
                        site(SiteKind::kExpertUps));
    const auto gated = builder.apply(engine::Op::kGated, {gate, up}, {engine::Act::kSilu});
    const auto down = builder.experts(gated, routes, stack("downs", d, f), bias(d * n), {},
                                      site(SiteKind::kExpertDowns));
    return builder.combine(down, routes);
  }
  std::vector<float> vector(int32_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) value = next();
    return values;
  }
  std::vector<float> bias(int32_t n) { return shape_.biases ? vector(n) : std::vector<float>(); }
  std::vector<float> head_norm() {
    return shape_.head_norms ? vector(shape_.k_dim) : std::vector<float>();
  }
  engine::WeightSource matrix(const char* name, int32_t rows, int32_t cols,
                              DType type = DType::kF32) {
    const std::vector<float> values = vector(rows * cols);
    const DTypeInfo* info = dtype_info(type);
    data_.push_back(std::make_unique<std::vector<std::byte>>(values.size() / info->block_elements *
                                                             info->block_bytes));
    write_weights(type, values.data(), data_.back()->data(), static_cast<int64_t>(values.size()));
    return {name, type, rows, cols, *data_.back(), true};
  }
  /// In [-0.5, 0.5): a plain scale of the generator's bits, alike on every machine.
  float next() { return static_cast<float>(random_() >> 8) * 0x1p-24F - 0.5F; }

  TinyShape shape_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> data_;
  graph::Graph graph_;
};

/// A batch of tokens with all that it borrows. Sequences are added one after another.
struct OwnedBatch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> positions;
  std::vector<int32_t> parents;
  std::vector<uint8_t> wants;
  std::vector<graph::BatchSequence> sequences;
  std::vector<float> logits;
  graph::Batch batch;

  /// Tokens that follow what the cache holds; all rows want logits, or only the last one.
  Status add(cache::KvCache& cache, std::span<const int32_t> more, bool all = true,
             cache::SequenceState* state = nullptr, cache::Keep keep = cache::Keep::kAll) {
    graph::BatchSequence sequence;
    sequence.cache = &cache;
    sequence.state = state;
    GEN_ASSIGN(sequence.plan, cache.plan(static_cast<int32_t>(more.size())));
    if (state != nullptr) {
      GEN_ASSIGN(sequence.state_plan, state->plan(static_cast<int32_t>(more.size()), keep));
    }
    sequence.first_row = static_cast<int32_t>(tokens.size());
    sequence.n_rows = static_cast<int32_t>(more.size());
    sequences.push_back(sequence);
    for (size_t i = 0; i < more.size(); ++i) {
      tokens.push_back(more[i]);
      positions.push_back(sequence.plan.start + static_cast<int32_t>(i));
      wants.push_back(all || i + 1 == more.size() ? 1 : 0);
    }
    return {};
  }
  /// A token behind what the cache holds, which it only reads.
  Status read(cache::KvCache& cache, int32_t token) {
    graph::BatchSequence sequence;
    sequence.cache = &cache;
    GEN_ASSIGN(sequence.plan, cache.plan(0));
    sequence.first_row = static_cast<int32_t>(tokens.size());
    sequence.n_rows = 1;
    sequences.push_back(sequence);
    tokens.push_back(token);
    positions.push_back(cache.length());
    wants.push_back(1);
    return {};
  }
  /// Points the batch at what was added. Logits have room for every row.
  graph::Batch& finish(int64_t vocab) {
    logits.assign(tokens.size() * static_cast<size_t>(vocab), 0.0F);
    batch.tokens = tokens;
    batch.positions = positions;
    batch.parents = parents;
    batch.wants = wants;
    batch.sequences = sequences;
    batch.logits = logits.data();
    batch.logits_rows = tokens.size();
    return batch;
  }
  void commit() {
    for (const graph::BatchSequence& sequence : sequences) commit(sequence, sequence.n_rows);
  }
  /// The first `n` rows of one.
  static void commit(const graph::BatchSequence& sequence, int32_t n) {
    sequence.cache->commit(sequence.plan, {n});
    if (sequence.state != nullptr) sequence.state->commit(sequence.state_plan, {n});
  }
  /// What was written: one row for each that wanted it.
  [[nodiscard]] std::vector<float> results(int64_t vocab) const {
    size_t wanted = 0;
    for (const uint8_t want : wants) wanted += want;
    return {logits.begin(),
            logits.begin() + static_cast<std::ptrdiff_t>(wanted * static_cast<size_t>(vocab))};
  }
};

}  // namespace gen::test

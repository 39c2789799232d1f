// SPDX-License-Identifier: Apache-2.0
// Proves that the builder refuses shapes and orders that do not fit, reports the first mistake, and
// that a good graph keeps what it was told.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

engine::WeightSource weight(const char* name, int64_t rows, int64_t cols) {
  return {name, DType::kF32, rows, cols, {}, false};
}

TEST(GraphBuilder, KeepsWhatItWasTold) {
  const test::TinyGraph tiny;
  const Graph& graph = tiny.graph();
  EXPECT_EQ(graph.vocab, 30);
  EXPECT_EQ(graph.logits, 30);
  EXPECT_EQ(graph.hidden, 24);
  EXPECT_EQ(graph.n_taps, 3);
  EXPECT_EQ(graph.weights.size(), 1U + 2 * 7 + 1);
}

TEST(GraphBuilder, FeaturesComeAfterTokens) {
  GraphBuilder builder;
  EXPECT_FALSE(builder.features(8).valid());
  EXPECT_EQ(builder.finish().status().code(), Code::kInternal);
}

TEST(GraphBuilder, FeaturesMayTakeThePlaceOfTokens) {
  GraphBuilder builder;
  const ValueId x = builder.only_features(8, 10);
  builder.tap(0, x);
  builder.logits(builder.linear(builder.select_rows(x), weight("head", 10, 8), {}, 0));
  const Graph graph = builder.finish().value();
  EXPECT_EQ(graph.features, 8);
  EXPECT_EQ(graph.hidden, 8);
  EXPECT_EQ(graph.vocab, 10);
  for (const auto& [cols, vocab] : {std::pair(0, 10), {8, 0}}) {
    GraphBuilder wrong;
    EXPECT_FALSE(wrong.only_features(cols, vocab).valid());
    EXPECT_EQ(wrong.finish().status().code(), Code::kInternal);
  }
}

TEST(GraphBuilder, NamesWhatHeadsRead) {
  GraphBuilder builder;
  const ValueId x = builder.embed(weight("table", 10, 8));
  builder.last_hidden(x);
  builder.logits(builder.linear(builder.select_rows(x), weight("head", 10, 8), {}, 0));
  const Graph graph = builder.finish().value();
  EXPECT_EQ(graph.last_hidden, x.index);
  EXPECT_EQ(graph.n_taps, 0);  // it is none of the layers' borders
}

TEST(GraphBuilder, SelectingTwiceIsOnce) {
  GraphBuilder builder;
  const ValueId x = builder.select_rows(builder.embed(weight("e", 3, 4)));
  EXPECT_EQ(builder.select_rows(x), x);
}

struct Mistake {
  const char* name;
  std::function<void(GraphBuilder&, ValueId)> make;  // after an embedding of 8 columns
  Code code;
  const char* says;
};

class GraphMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(GraphMistakes, AreReported) {
  GraphBuilder builder;
  const ValueId x = builder.embed(weight("table", 10, 8));
  GetParam().make(builder, x);
  // What follows a mistake changes nothing about it.
  builder.logits(builder.linear(builder.select_rows(x), weight("head", 10, 8), {}, 0));
  const auto graph = builder.finish();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.status().code(), GetParam().code);
  EXPECT_NE(std::string(graph.status().message()).find(GetParam().says), std::string::npos)
      << graph.status().message();
}

/// A selective scan with so many parameters of each kind; b and c are one value.
void selective(GraphBuilder& b, ValueId x, ValueId dt, ValueId shared, size_t parameters,
               int32_t groups = 1) {
  const std::vector<float> each(parameters, 1.0F);
  b.selective_scan(x, dt, shared, shared, {groups, each, each, each});
}

AttentionSpec heads(int32_t n, int32_t kv, int32_t dim) {
  AttentionSpec spec;
  spec.n_heads = n;
  spec.n_kv_heads = kv;
  spec.k_dim = spec.v_dim = dim;
  return spec;
}

/// Blocks of the same geometry that look at another's layer.
AttentionSpec sharing(int32_t block) {
  AttentionSpec spec = heads(2, 2, 4);
  spec.use = CacheUse::kShared;
  spec.shared = block;
  return spec;
}

/// Blocks that read a layer of another graph's cache.
AttentionSpec reading(int32_t layer) {
  AttentionSpec spec = sharing(layer);
  spec.use = CacheUse::kGiven;
  return spec;
}
constexpr cache::LayerShape kGivenLayer = {.kv_heads = 2, .k_dim = 4, .v_dim = 4};

/// A stack of five matrices.
engine::WeightSource stack(const char* name, int64_t rows, int64_t cols) {
  engine::WeightSource all = weight(name, rows, cols);
  all.count = 5;
  return all;
}

/// Routes of rows of 8 to two of five experts.
ValueId routes_of(GraphBuilder& b, ValueId x, engine::Routing routing = {{}, 5, 2}) {
  return b.route(b.linear(x, weight("router", 5, 8), {}, 0), routing);
}

const Mistake kMistakes[] = {
    {"short_second_embedding", [](GraphBuilder& b, ValueId) { b.embed(weight("again", 9, 4)); },
     Code::kFormat, "again: 9 rows for a vocabulary of 10"},
    {"empty_table",
     [](GraphBuilder& b, ValueId) { b.embed(weight("again", 0, 4), 1.0F, Lookup::kPositions); },
     Code::kFormat, "again: empty embedding"},
    {"row_beyond_the_table", [](GraphBuilder& b, ValueId) { b.embed_row(weight("w", 2, 8), 2); },
     Code::kFormat, "w: row 2 of 2"},
    {"cache_twice",
     [](GraphBuilder& b, ValueId) {
       b.read_cache({&kGivenLayer, 1});
       b.read_cache({&kGivenLayer, 1});
     },
     Code::kInternal, "a graph reads a cache of 1 layers, once and before it attends"},
    {"cache_without_layers", [](GraphBuilder& b, ValueId) { b.read_cache({}); }, Code::kInternal,
     "a graph reads a cache of 0 layers"},
    {"no_cache",
     [](GraphBuilder& b, ValueId x) {
       b.rope_append(b.linear(x, weight("q", 8, 8), {}, 0), {}, {}, 0, reading(0));
     },
     Code::kInternal, "block 0 reads cache layer 0 of 0"},
    {"cache_layer_beyond",
     [](GraphBuilder& b, ValueId x) {
       b.read_cache({&kGivenLayer, 1});
       b.rope_append(b.linear(x, weight("q", 8, 8), {}, 0), {}, {}, 0, reading(1));
     },
     Code::kInternal, "block 0 reads cache layer 1 of 1"},
    {"keys_for_a_given_layer",
     [](GraphBuilder& b, ValueId x) {
       b.read_cache({&kGivenLayer, 1});
       const auto q = b.linear(x, weight("q", 8, 8), {}, 0);
       const auto k = b.linear(x, weight("k", 8, 8), {}, 0);
       b.rope_append(q, k, k, 0, reading(0));
     },
     Code::kInternal, "block 0: k and v are given by blocks that keep them"},
    {"own_layer_beside_a_given_one",
     [](GraphBuilder& b, ValueId x) {
       b.read_cache({&kGivenLayer, 1});
       const auto q = b.linear(x, weight("q", 8, 8), {}, 0);
       const auto k = b.linear(x, weight("k", 8, 8), {}, 0);
       b.rope_append(q, k, k, 0, heads(2, 2, 4));
     },
     Code::kInternal, "block 0 keeps keys and values where caches are only read"},
    {"given_layer_of_another_shape",
     [](GraphBuilder& b, ValueId x) {
       cache::LayerShape shape = kGivenLayer;
       shape.window = 3;
       b.read_cache({&shape, 1});
       b.rope_append(b.linear(x, weight("q", 8, 8), {}, 0), {}, {}, 0, reading(0));
     },
     Code::kFormat, "block 0 has window 0, cache layer 0, which it reads, has 3"},
    {"given_layer_with_chunks",
     [](GraphBuilder& b, ValueId x) {
       cache::LayerShape shape = kGivenLayer;
       shape.chunk = 3;
       b.read_cache({&shape, 1});
       AttentionSpec spec = reading(0);
       spec.chunk = 3;
       b.rope_append(b.linear(x, weight("q", 8, 8), {}, 0), {}, {}, 0, spec);
     },
     Code::kUnsupported, "block 0 reads cache layer 0, which has chunks of positions"},
    {"given_layer_with_other_angles",
     [](GraphBuilder& b, ValueId x) {
       const float inv_freq[] = {1.0F, 0.5F};
       const engine::RopeTable table = {engine::RopeKind::kHalves, 4, inv_freq, 1.0F};
       cache::LayerShape shape = kGivenLayer;
       shape.rope = table.kind;
       shape.rope_dims = table.n_dims;
       shape.rope_table = &table;
       b.read_cache({&shape, 1});
       AttentionSpec spec = reading(0);
       spec.rope = b.rope_table({engine::RopeKind::kHalves, 4, {1.0F, 0.4F}, 1.0F});
       b.rope_append(b.linear(x, weight("q", 8, 8), {}, 0), {}, {}, 0, spec);
     },
     Code::kFormat, "block 0 turns by other angles than cache layer 0, which it reads"},
    {"features_twice",
     [](GraphBuilder& b, ValueId) {
       b.features(8);
       b.features(8);
     },
     Code::kInternal, "features of 8 columns"},
    {"features_alone_behind_tokens", [](GraphBuilder& b, ValueId) { b.only_features(8, 10); },
     Code::kInternal, "do not begin a graph"},
    {"features_of_nothing", [](GraphBuilder& b, ValueId) { b.features(0); }, Code::kInternal,
     "features of 0 columns"},
    {"joined_product",
     [](GraphBuilder& b, ValueId x) {
       b.join(b.features(8), b.linear(x, weight("w", 8, 8), {}, 0));
     },
     Code::kInternal, "joins what is written elsewhere"},
    {"joined_columns", [](GraphBuilder& b, ValueId x) { b.join(b.slice(x, 0, 4), b.features(8)); },
     Code::kInternal, "joins what is written elsewhere"},
    {"joined_with_itself",
     [](GraphBuilder& b, ValueId) {
       const ValueId given = b.features(8);
       b.join(given, given);
     },
     Code::kInternal, "joins what is written elsewhere"},
    {"joined_twice",
     [](GraphBuilder& b, ValueId x) {
       const std::vector<float> ones(8, 1.0F);
       b.join(b.join(b.features(8), b.rms_norm(x, ones, 1e-5F)), b.rms_norm(x, ones, 1e-5F));
     },
     Code::kInternal, "joins what is written elsewhere"},
    {"joined_some_rows",
     [](GraphBuilder& b, ValueId x) { b.join(b.features(8), b.select_rows(x)); }, Code::kInternal,
     "joins what is written elsewhere"},
    {"joined_queries",
     [](GraphBuilder& b, ValueId x) {
       const auto of = [&] { return b.linear(x, weight("w", 8, 8), {}, 0); };
       b.begin_block(0);
       b.join(b.features(8), b.rope_append(of(), of(), of(), 0, heads(2, 2, 4)));
     },
     Code::kInternal, "joins what is written elsewhere"},
    {"joined_and_read_elsewhere",
     [](GraphBuilder& b, ValueId) {
       const ValueId given = b.features(8);
       b.join(given, b.embed(weight("places", 10, 8), 1.0F, Lookup::kPositions));
       b.tap(0, given);
     },
     Code::kInternal, "what is joined has another use"},
    {"columns_beyond_the_value", [](GraphBuilder& b, ValueId x) { b.slice(x, 3, 6); },
     Code::kFormat, "columns 3 + 6 of rows of 8"},
    {"scan_heads",
     [](GraphBuilder& b, ValueId x) { selective(b, x, b.slice(x, 0, 3), b.slice(x, 3, 4), 3); },
     Code::kFormat, "a selective scan of rows of 8, 3, 4 and 4 in 1 groups"},
    {"scan_groups", [](GraphBuilder& b, ValueId x) { selective(b, x, b.slice(x, 0, 4), x, 4, 3); },
     Code::kFormat, "a selective scan of rows of 8, 4, 8 and 8 in 3 groups"},
    {"scan_parameters", [](GraphBuilder& b, ValueId x) { selective(b, x, b.slice(x, 0, 4), x, 5); },
     Code::kFormat, "a selective scan of 4 heads with 5, 5 and 5 parameters"},
    {"scan_size",
     [](GraphBuilder& b, ValueId x) {
       const ValueId wide = b.linear(x, weight("wide", 257, 8), {}, 0);
       selective(b, x, b.slice(x, 0, 4), wide, 4);
     },
     Code::kUnsupported, "a state of 257 numbers per channel, above 256"},
    {"scan_of_some_rows",
     [](GraphBuilder& b, ValueId x) {
       const ValueId some = b.select_rows(x);
       selective(b, some, b.slice(some, 0, 4), some, 4);
     },
     Code::kInternal, "a scan takes all rows"},
    {"no_columns", [](GraphBuilder& b, ValueId x) { b.slice(x, 3, 0); }, Code::kFormat,
     "columns 3 + 0 of rows of 8"},
    {"columns_from_below", [](GraphBuilder& b, ValueId x) { b.slice(x, -1, 2); }, Code::kFormat,
     "columns -1 + 2 of rows of 8"},
    {"turned_columns",
     [](GraphBuilder& b, ValueId x) {
       const ValueId q = b.slice(b.linear(x, weight("w", 16, 8), {}, 0), 0, 8);
       b.attention(b.rope_append(q, x, x, 0, heads(2, 2, 4)), 0);
     },
     Code::kInternal, "q is rotated in place"},
    {"no_experts_used",
     [](GraphBuilder& b, ValueId x) {
       routes_of(b, x, {{}, 5, 0});
     },
     Code::kFormat, "0 of 5 experts are chosen by 5 logits"},
    {"experts_without_logits",
     [](GraphBuilder& b, ValueId x) {
       routes_of(b, x, {{}, 6, 2});
     },
     Code::kFormat, "2 of 6 experts are chosen by 5 logits"},
    {"uneven_expert_groups",
     [](GraphBuilder& b, ValueId x) {
       routes_of(b, x, {{}, 5, 2, 2, 1});
     },
     Code::kFormat, "from 1 of 2 groups"},
    {"groups_too_small",
     [](GraphBuilder& b, ValueId x) {
       routes_of(b, x, {{}, 5, 2, 5, 1});
     },
     Code::kFormat, "from 1 of 5 groups"},
    {"long_choice_bias",
     [](GraphBuilder& b, ValueId x) {
       b.route(b.linear(x, weight("router", 5, 8), {}, 0), {{}, 5, 2}, std::vector<float>(6));
     },
     Code::kFormat, "a bias of 6 values for 5 experts"},
    {"routes_as_rows",
     [](GraphBuilder& b, ValueId x) { b.linear(routes_of(b, x), weight("w", 4, 4), {}, 0); },
     Code::kInternal, "cannot read what a router makes"},
    {"rows_as_routes", [](GraphBuilder& b, ValueId x) { b.experts(x, x, stack("w", 4, 8)); },
     Code::kInternal, "needs what a router makes"},
    {"a_matrix_as_experts",
     [](GraphBuilder& b, ValueId x) { b.experts(x, routes_of(b, x), weight("w", 4, 8)); },
     Code::kFormat, "w: 1 matrices of 4 x 8 do not take rows of 8 to 5 experts"},
    {"narrow_experts",
     [](GraphBuilder& b, ValueId x) { b.experts(x, routes_of(b, x), stack("w", 4, 9)); },
     Code::kFormat, "w: 5 matrices of 4 x 9 do not take rows of 8"},
    {"short_expert_bias",
     [](GraphBuilder& b, ValueId x) {
       b.experts(x, routes_of(b, x), stack("w", 4, 8), std::vector<float>(4));
     },
     Code::kFormat, "w: bias of 4 values for 4 outputs of 5 experts"},
    {"rows_of_experts_as_rows",
     [](GraphBuilder& b, ValueId x) {
       b.rms_norm(b.experts(x, routes_of(b, x), stack("w", 8, 8)), std::vector<float>(8), 1e-5F);
     },
     Code::kInternal, "cannot read rows of experts"},
    {"rows_of_other_experts",
     [](GraphBuilder& b, ValueId x) {
       const ValueId y = b.experts(x, routes_of(b, x), stack("w", 8, 8));
       b.experts(y, routes_of(b, x, {{}, 5, 3}), stack("w", 8, 8));
     },
     Code::kInternal, "2 rows for each row where 3 experts are"},
    {"one_row_combined", [](GraphBuilder& b, ValueId x) { b.combine(x, routes_of(b, x)); },
     Code::kInternal, "one row of 2 experts is combined"},
    {"rows_of_experts_added_to_rows",
     [](GraphBuilder& b, ValueId x) { b.add(x, b.experts(x, routes_of(b, x), stack("w", 8, 8))); },
     Code::kInternal, "add of 1 and 2 rows for each row"},
    {"rows_of_experts_read_twice",
     [](GraphBuilder& b, ValueId x) {
       const ValueId routes = routes_of(b, x);
       const ValueId y = b.experts(x, routes, stack("w", 8, 8));
       b.combine(y, routes);
       b.combine(y, routes);
     },
     Code::kInternal, "rows of experts have 2 readers"},
    {"routes_of_all_and_selected_rows",
     [](GraphBuilder& b, ValueId x) {
       b.experts(b.select_rows(x), routes_of(b, x), stack("w", 8, 8));
     },
     Code::kInternal, "1 rows for each row where 2 experts are"},
    {"short_norm", [](GraphBuilder& b, ValueId x) { b.rms_norm(x, std::vector<float>(7), 1e-5F); },
     Code::kFormat, "7 values for rows of 8"},
    {"short_layer_norm",
     [](GraphBuilder& b, ValueId x) { b.layer_norm(x, std::vector<float>(7), {}, 1e-5F); },
     Code::kFormat, "norm weight of 7 values for rows of 8"},
    {"long_norm_bias",
     [](GraphBuilder& b, ValueId x) { b.layer_norm(x, {}, std::vector<float>(9), 1e-5F); },
     Code::kFormat, "norm bias of 9 values for rows of 8"},
    {"uneven_groups", [](GraphBuilder& b, ValueId x) { b.layer_norm(x, {}, {}, 1e-5F, 3); },
     Code::kInternal, "layer norm of 8 columns in 3 groups"},
    {"narrow_weight", [](GraphBuilder& b, ValueId x) { b.linear(x, weight("w", 4, 9), {}, 0); },
     Code::kFormat, "w: 4 x 9 does not take rows of 8"},
    {"empty_weight", [](GraphBuilder& b, ValueId x) { b.linear(x, weight("w", 0, 8), {}, 0); },
     Code::kFormat, "w: 0 x 8"},
    {"long_bias",
     [](GraphBuilder& b, ValueId x) { b.linear(x, weight("w", 4, 8), std::vector<float>(5), 0); },
     Code::kFormat, "bias of 5 values for 4"},
    {"uneven_sum",
     [](GraphBuilder& b, ValueId x) { b.add(x, b.linear(x, weight("w", 4, 8), {}, 0)); },
     Code::kFormat, "add of rows of 8 and rows of 4"},
    {"sum_of_all_and_selected", [](GraphBuilder& b, ValueId x) { b.add(x, b.select_rows(x)); },
     Code::kFormat, "add of rows of 8 and selected rows of 8"},
    {"uneven_gate",
     [](GraphBuilder& b, ValueId x) {
       b.apply(engine::Op::kGated, {x, b.linear(x, weight("w", 4, 8), {}, 0)});
     },
     Code::kFormat, "gated of rows of 8 and rows of 4"},
    {"uneven_runs_of_a_gate",
     [](GraphBuilder& b, ValueId x) {
       b.apply(engine::Op::kGated, {b.linear(x, weight("w", 3, 8), {}, 0), x});
     },
     Code::kFormat, "gated of rows of 3 and rows of 8"},
    {"gate_without_up", [](GraphBuilder& b, ValueId x) { b.apply(engine::Op::kGated, {x}); },
     Code::kInternal, "gated of 1 values"},
    {"norm_as_row_of_equal_width",
     [](GraphBuilder& b, ValueId x) { b.apply(engine::Op::kRmsNorm, {x}); }, Code::kInternal,
     "rms_norm of 1 values"},
    {"clamped_without_gate",
     [](GraphBuilder& b, ValueId x) {
       b.apply(engine::Op::kActivate, {x}, {engine::Act::kClampedSwiglu});
     },
     Code::kInternal, "activate of 1 values"},
    {"cut_without_gate",
     [](GraphBuilder& b, ValueId x) {
       b.apply(engine::Op::kActivate, {x}, {engine::Act::kCutSwiglu});
     },
     Code::kInternal, "activate of 1 values"},
    {"unknown_value", [](GraphBuilder& b, ValueId x) { b.add(x, ValueId{77}); }, Code::kInternal,
     "not there"},
    {"odd_rotation",
     [](GraphBuilder& b, ValueId) {
       b.rope_table({engine::RopeKind::kHalves, 3, {1.0F}, 1.0F});
     },
     Code::kInternal, "3 dimensions"},
    {"block_order",
     [](GraphBuilder& b, ValueId x) {
       b.rope_append(x, x, x, 3, heads(2, 2, 4));
       b.rope_append(x, x, x, 3, heads(2, 2, 4));
     },
     Code::kInternal, "block 3 attends after block 3"},
    {"shares_nothing",
     [](GraphBuilder& b, ValueId x) {
       b.rope_append(x, x, x, 0, heads(2, 2, 4));
       b.rope_append(x, {}, {}, 2, sharing(1));
     },
     Code::kInternal, "block 2 shares a layer of block 1, which has none"},
    {"shares_what_is_shared",
     [](GraphBuilder& b, ValueId x) {
       b.rope_append(x, x, x, 0, heads(2, 2, 4));
       b.rope_append(x, {}, {}, 1, sharing(0));
       b.rope_append(x, {}, {}, 2, sharing(1));
     },
     Code::kInternal, "block 2 shares a layer of block 1, which has none"},
    {"shares_another_window",
     [](GraphBuilder& b, ValueId x) {
       AttentionSpec spec = sharing(0);
       b.rope_append(x, x, x, 0, heads(2, 2, 4));
       spec.window = 5;
       b.rope_append(x, {}, {}, 1, spec);
     },
     Code::kInternal, "block 1 has window 5, block 0, whose layer it shares, has 0"},
    {"shares_other_angles",
     [](GraphBuilder& b, ValueId x) {
       AttentionSpec spec = sharing(0);
       b.rope_append(x, x, x, 0, heads(2, 2, 4));
       spec.rope = b.rope_table({engine::RopeKind::kHalves, 2, {1.0F}, 1.0F});
       b.rope_append(x, {}, {}, 1, spec);
     },
     Code::kInternal, "block 1 has rotary table 0, block 0, whose layer it shares, has -1"},
    {"shares_and_stores",
     [](GraphBuilder& b, ValueId x) {
       b.rope_append(x, x, x, 0, heads(2, 2, 4));
       b.rope_append(x, x, x, 1, sharing(0));
     },
     Code::kInternal, "block 1: k and v are given"},
    {"stores_nothing",
     [](GraphBuilder& b, ValueId x) { b.rope_append(x, x, {}, 0, heads(2, 2, 4)); },
     Code::kInternal, "block 0: k and v are given"},
    {"long_values_in_keys",
     [](GraphBuilder& b, ValueId x) {
       AttentionSpec spec = heads(2, 2, 4);
       spec.v_in_k = true;
       spec.v_dim = 5;
       b.rope_append(x, x, {}, 0, spec);
     },
     Code::kFormat, "block 0"},
    {"negative_window",
     [](GraphBuilder& b, ValueId x) {
       AttentionSpec spec = heads(2, 2, 4);
       spec.window = -1;
       b.rope_append(x, x, x, 0, spec);
     },
     Code::kFormat, "block 0"},
    {"uneven_heads", [](GraphBuilder& b, ValueId x) { b.rope_append(x, x, x, 0, heads(3, 2, 4)); },
     Code::kFormat, "block 0"},
    {"narrow_keys",
     [](GraphBuilder& b, ValueId x) {
       const ValueId k = b.linear(x, weight("k", 2, 8), {}, 0);
       b.rope_append(x, k, x, 0, heads(2, 1, 4));
     },
     Code::kFormat, "block 0: q, k, v of 8, 2, 8"},
    {"long_head_norm",
     [](GraphBuilder& b, ValueId x) {
       b.rope_append(x, x, x, 0, heads(2, 2, 4), std::vector<float>(8));
     },
     Code::kFormat, "head norms of 8"},
    {"wide_rotation",
     [](GraphBuilder& b, ValueId x) {
       AttentionSpec spec = heads(2, 2, 4);
       spec.rope = b.rope_table({engine::RopeKind::kHalves, 6, {1.0F, 1.0F, 1.0F}, 1.0F});
       b.rope_append(x, x, x, 0, spec);
     },
     Code::kInternal, "rotary table"},
    {"attention_without_rope", [](GraphBuilder& b, ValueId x) { b.attention(x, 0); },
     Code::kInternal, "block 0"},
    {"q_used_twice", [](GraphBuilder& b, ValueId x) { b.rope_append(x, x, x, 0, heads(2, 2, 4)); },
     Code::kInternal, "another use"},
    {"tap_order", [](GraphBuilder& b, ValueId x) { b.tap(1, x); }, Code::kInternal, "tap 1"},
    {"tap_of_selected", [](GraphBuilder& b, ValueId x) { b.tap(0, b.select_rows(x)); },
     Code::kInternal, "tap 0"},
    {"logits_of_all", [](GraphBuilder& b, ValueId x) { b.logits(x); }, Code::kInternal,
     "selected rows"},
};

INSTANTIATE_TEST_SUITE_P(All, GraphMistakes, testing::ValuesIn(kMistakes),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(GraphBuilder, NeedsLogits) {
  GraphBuilder builder;
  builder.embed(weight("table", 10, 8));
  EXPECT_EQ(builder.finish().status().code(), Code::kInternal);
}

}  // namespace
}  // namespace gen::graph

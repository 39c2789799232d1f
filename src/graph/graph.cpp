// SPDX-License-Identifier: Apache-2.0
// Building a graph: every shape is checked here, once, so that what comes later can rely on it.
// See graph.h.
#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/cache_layers.h"

namespace gen::graph {

using engine::Op;

namespace {

constexpr int32_t kAnySlots = INT32_MAX;

/// kFormat for numbers that no router has.
Status check_routing(const engine::Routing& of, int64_t logits) {
  if (of.n_experts < 1 || of.n_experts != logits || of.n_used < 1 || of.n_used > of.n_experts) {
    return error(Code::kFormat, "%d of %d experts are chosen by %lld logits", of.n_used,
                 of.n_experts, static_cast<long long>(logits));
  }
  const bool groups = of.n_groups >= 1 && of.n_experts % of.n_groups == 0 &&
                      of.n_groups_used >= 1 && of.n_groups_used <= of.n_groups;
  if (!groups || of.n_experts / of.n_groups * of.n_groups_used < of.n_used) {
    return error(Code::kFormat, "%d of %d experts are chosen from %d of %d groups", of.n_used,
                 of.n_experts, of.n_groups_used, of.n_groups);
  }
  return {};
}

}  // namespace

void GraphBuilder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool GraphBuilder::usable(ValueId x, int32_t most_slots) {
  if (!status_.ok()) return false;
  if (x.index >= 0 && static_cast<size_t>(x.index) < graph_.nodes.size()) {
    const Node& node = graph_.nodes[static_cast<size_t>(x.index)];
    const bool there = engine::op_info(node.op).effect != engine::Effect::kHost;
    if (there && !node.index && node.slots <= most_slots) return true;
    if (there) {
      fail(error(Code::kInternal, "graph node %zu cannot read %s", graph_.nodes.size(),
                 node.index ? "what a router makes" : "rows of experts"));
      return false;
    }
  }
  fail(
      error(Code::kInternal, "graph node %zu uses a value that is not there", graph_.nodes.size()));
  return false;
}

ValueId GraphBuilder::push(Node node) {
  if (node.block < 0) node.block = block_;
  graph_.nodes.push_back(node);
  return {static_cast<int32_t>(graph_.nodes.size() - 1)};
}

int32_t GraphBuilder::keep(std::span<const float> vector) {
  if (vector.empty()) return -1;
  graph_.vectors.emplace_back(vector.begin(), vector.end());
  return static_cast<int32_t>(graph_.vectors.size() - 1);
}

ValueId GraphBuilder::embed(const engine::WeightSource& table, float scale, Lookup lookup) {
  if (!status_.ok()) return {};
  if (graph_.nodes.empty() && lookup != Lookup::kTokens) {
    fail(error(Code::kInternal, "a graph begins with the embedding of its tokens"));
    return {};
  }
  if (table.rows <= 0 || table.cols <= 0) {
    fail(error(Code::kFormat, "%s: empty embedding", table.name));
    return {};
  }
  if (graph_.nodes.empty()) {
    graph_.vocab = table.rows;
    graph_.hidden = table.cols;
  }
  if (lookup == Lookup::kTokens && table.rows < graph_.vocab) {
    fail(error(Code::kFormat, "%s: %lld rows for a vocabulary of %lld", table.name,
               static_cast<long long>(table.rows), static_cast<long long>(graph_.vocab)));
    return {};
  }
  graph_.weights.push_back(table);
  Node node;
  node.op = Op::kEmbed;
  node.lookup = lookup;
  node.cols = table.cols;
  node.weight = static_cast<int32_t>(graph_.weights.size() - 1);
  node.factor = scale * table.scale;
  return push(node);
}

ValueId GraphBuilder::embed_row(engine::WeightSource table, int64_t row, float scale) {
  if (!status_.ok()) return {};
  if (row < 0 || row >= table.rows) {
    fail(error(Code::kFormat, "%s: row %lld of %lld", table.name, static_cast<long long>(row),
               static_cast<long long>(table.rows)));
    return {};
  }
  const size_t bytes = table.data.size() / static_cast<size_t>(table.rows);
  table.data = table.data.subspan(static_cast<size_t>(row) * bytes, bytes);
  table.rows = 1;
  return embed(table, scale, Lookup::kConstant);
}

ValueId GraphBuilder::slice(ValueId x, int64_t first, int64_t cols) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (first < 0 || cols <= 0 || first > input.cols || cols > input.cols - first) {
    fail(error(Code::kFormat, "columns %lld + %lld of rows of %lld", static_cast<long long>(first),
               static_cast<long long>(cols), static_cast<long long>(input.cols)));
    return {};
  }
  Node node;
  node.op = Op::kSlice;
  node.inputs[0] = x.index;
  node.cols = cols;
  node.selected = input.selected;
  node.first = first;
  return push(node);
}

ValueId GraphBuilder::rms_norm(ValueId x, std::span<const float> weight, float eps) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (std::cmp_not_equal(weight.size(), input.cols)) {
    fail(error(Code::kFormat, "norm weight of %zu values for rows of %lld", weight.size(),
               static_cast<long long>(input.cols)));
    return {};
  }
  Node node;
  node.op = Op::kRmsNorm;
  node.inputs[0] = x.index;
  node.cols = input.cols;
  node.selected = input.selected;
  node.vector = keep(weight);
  node.factor = eps;
  return push(node);
}

ValueId GraphBuilder::layer_norm(ValueId x, std::span<const float> weight,
                                 std::span<const float> bias, float eps, int32_t groups) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (groups < 1 || input.cols % groups != 0) {
    fail(error(Code::kInternal, "layer norm of %lld columns in %d groups",
               static_cast<long long>(input.cols), groups));
    return {};
  }
  for (const std::span<const float> each : {weight, bias}) {
    if (each.empty() || std::cmp_equal(each.size(), input.cols)) continue;
    fail(error(Code::kFormat, "norm %s of %zu values for rows of %lld",
               each.data() == weight.data() ? "weight" : "bias", each.size(),
               static_cast<long long>(input.cols)));
    return {};
  }
  Node node;
  node.op = Op::kLayerNorm;
  node.inputs[0] = x.index;
  node.cols = input.cols;
  node.selected = input.selected;
  node.vector = keep(weight);
  node.vector2 = keep(bias);
  node.factor = eps;
  node.groups = groups;
  return push(node);
}

ValueId GraphBuilder::linear(ValueId x, const engine::WeightSource& weight,
                             std::span<const float> bias, int32_t site) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (weight.cols != input.cols || weight.rows <= 0) {
    fail(error(Code::kFormat, "%s: %lld x %lld does not take rows of %lld", weight.name,
               static_cast<long long>(weight.rows), static_cast<long long>(weight.cols),
               static_cast<long long>(input.cols)));
    return {};
  }
  if (!bias.empty() && std::cmp_not_equal(bias.size(), weight.rows)) {
    fail(error(Code::kFormat, "%s: bias of %zu values for %lld outputs", weight.name, bias.size(),
               static_cast<long long>(weight.rows)));
    return {};
  }
  graph_.weights.push_back(weight);
  Node node;
  node.op = Op::kLinear;
  node.inputs[0] = x.index;
  node.cols = weight.rows;
  node.selected = input.selected;
  node.weight = static_cast<int32_t>(graph_.weights.size() - 1);
  if (weight.scale == 1.0F) {
    node.vector = keep(bias);
    node.site = site;
    return push(node);
  }
  // The end of a product takes the bias before the factor, so it gets its share of that back.
  std::vector<float> divided(bias.begin(), bias.end());
  for (float& value : divided) {
    value /= weight.scale;
    if (std::isfinite(value)) continue;
    fail(error(Code::kFormat, "%s: a scale of %g beside a bias that it cannot divide", weight.name,
               static_cast<double>(weight.scale)));
    return {};
  }
  node.vector = keep(divided);
  return apply(Op::kActivate, {push(node)}, {.kind = engine::Act::kScaled, .alpha = weight.scale});
}

ValueId GraphBuilder::apply(Op op, std::initializer_list<ValueId> inputs,
                            engine::Activation activation) {
  const engine::OpInfo& info = engine::op_info(op);
  if (!std::all_of(inputs.begin(), inputs.end(), [&](ValueId x) { return usable(x, kAnySlots); })) {
    return {};
  }
  const bool gated_only = activation.kind == engine::Act::kClampedSwiglu && op != Op::kGated;
  if (!info.same_width || inputs.size() != info.n_in || gated_only) {
    fail(error(Code::kInternal, "%s of %zu values cannot be applied", info.name, inputs.size()));
    return {};
  }
  const Node& first = graph_.nodes[static_cast<size_t>(inputs.begin()->index)];
  Node node;
  node.op = op;
  node.cols = first.cols;
  node.selected = first.selected;
  node.slots = first.slots;
  node.activation = activation;
  size_t n = 0;
  for (const ValueId input : inputs) {
    const Node& other = graph_.nodes[static_cast<size_t>(input.index)];
    if (other.slots != first.slots) {
      fail(error(Code::kInternal, "%s of %d and %d rows for each row", info.name, first.slots,
                 other.slots));
      return {};
    }
    if (other.cols != first.cols || other.selected != first.selected) {
      fail(error(Code::kFormat, "%s of %srows of %lld and %srows of %lld", info.name,
                 first.selected ? "selected " : "", static_cast<long long>(first.cols),
                 other.selected ? "selected " : "", static_cast<long long>(other.cols)));
      return {};
    }
    node.inputs[n++] = input.index;
  }
  return push(node);
}

ValueId GraphBuilder::route(ValueId logits, const engine::Routing& routing,
                            std::span<const float> bias) {
  if (!usable(logits)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(logits.index)];
  if (Status status = check_routing(routing, input.cols); !status.ok()) {
    fail(std::move(status));
    return {};
  }
  if (!bias.empty() && std::cmp_not_equal(bias.size(), routing.n_experts)) {
    fail(error(Code::kFormat, "a bias of %zu values for %d experts", bias.size(),
               routing.n_experts));
    return {};
  }
  Node node;
  node.op = Op::kRoute;
  node.inputs[0] = logits.index;
  node.cols = 2 * int64_t{routing.n_used};
  node.index = true;
  node.selected = input.selected;
  node.routing = routing;
  node.vector = keep(bias);
  return push(node);
}

/// Whether these are the routes of the rows of `of`.
bool GraphBuilder::usable_routes(ValueId routes, ValueId of) {
  if (!status_.ok()) return false;
  const bool there = routes.index >= 0 && static_cast<size_t>(routes.index) < graph_.nodes.size();
  if (!there || !graph_.nodes[static_cast<size_t>(routes.index)].index) {
    fail(error(Code::kInternal, "graph node %zu needs what a router makes", graph_.nodes.size()));
    return false;
  }
  const Node& router = graph_.nodes[static_cast<size_t>(routes.index)];
  const Node& rows = graph_.nodes[static_cast<size_t>(of.index)];
  if (rows.selected != router.selected ||
      (rows.slots != 1 && rows.slots != router.routing.n_used)) {
    fail(error(Code::kInternal, "%d rows for each row where %d experts are", rows.slots,
               router.routing.n_used));
    return false;
  }
  return true;
}

ValueId GraphBuilder::experts(ValueId x, ValueId routes, const engine::WeightSource& stack,
                              std::span<const float> bias) {
  if (!usable(x, kAnySlots) || !usable_routes(routes, x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  const engine::Routing& routing = graph_.nodes[static_cast<size_t>(routes.index)].routing;
  if (stack.cols != input.cols || stack.rows <= 0 || stack.count != routing.n_experts) {
    fail(error(
        Code::kFormat, "%s: %lld matrices of %lld x %lld do not take rows of %lld to %d experts",
        stack.name, static_cast<long long>(stack.count), static_cast<long long>(stack.rows),
        static_cast<long long>(stack.cols), static_cast<long long>(input.cols), routing.n_experts));
    return {};
  }
  if (!bias.empty() && std::cmp_not_equal(bias.size(), stack.count * stack.rows)) {
    fail(error(Code::kFormat, "%s: bias of %zu values for %lld outputs of %lld experts", stack.name,
               bias.size(), static_cast<long long>(stack.rows),
               static_cast<long long>(stack.count)));
    return {};
  }
  graph_.weights.push_back(stack);
  Node node;
  node.op = Op::kExperts;
  node.inputs = {x, routes};
  node.cols = stack.rows;
  node.slots = routing.n_used;
  node.selected = input.selected;
  node.routing = routing;
  node.weight = static_cast<int32_t>(graph_.weights.size() - 1);
  node.vector = keep(bias);
  return push(node);
}

ValueId GraphBuilder::combine(ValueId x, ValueId routes) {
  if (!usable(x, kAnySlots) || !usable_routes(routes, x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  const engine::Routing& routing = graph_.nodes[static_cast<size_t>(routes.index)].routing;
  if (input.slots != routing.n_used) {
    fail(error(Code::kInternal, "one row of %d experts is combined", routing.n_used));
    return {};
  }
  Node node;
  node.op = Op::kCombine;
  node.inputs = {x, routes};
  node.cols = input.cols;
  node.selected = input.selected;
  node.routing = routing;
  return push(node);
}

int32_t GraphBuilder::rope_table(RopeSpec spec) {
  if (!status_.ok()) return -1;
  if (spec.n_dims <= 0 || spec.n_dims % 2 != 0 ||
      std::cmp_not_equal(spec.inv_freq.size(), spec.n_dims / 2)) {
    fail(error(Code::kInternal, "rotary table of %zu frequencies for %d dimensions",
               spec.inv_freq.size(), spec.n_dims));
    return -1;
  }
  graph_.ropes.push_back(std::move(spec));
  return static_cast<int32_t>(graph_.ropes.size() - 1);
}

/// Whether the three fit the geometry.
Status GraphBuilder::check_attention(ValueId q, ValueId k, ValueId v, int32_t block,
                                     const AttentionSpec& spec) const {
  const bool stores = spec.use != CacheUse::kShared;
  if (k.valid() != stores || v.valid() != (stores && !spec.v_in_k)) {
    return error(Code::kInternal, "block %d: k and v are given by blocks that keep them", block);
  }
  const bool heads = spec.n_heads > 0 && spec.n_kv_heads > 0 && spec.k_dim > 0 && spec.v_dim > 0 &&
                     spec.n_heads % spec.n_kv_heads == 0;
  const bool sizes =
      spec.window >= 0 && spec.chunk >= 0 && (!spec.v_in_k || spec.v_dim <= spec.k_dim);
  const auto width = [&](ValueId id, int64_t absent) {
    return id.valid() ? graph_.nodes[static_cast<size_t>(id.index)].cols : absent;
  };
  const int64_t k_cols = int64_t{spec.n_kv_heads} * spec.k_dim;
  const int64_t v_cols = int64_t{spec.n_kv_heads} * spec.v_dim;
  for (const ValueId id : {q, k, v}) {
    if (id.valid() && graph_.nodes[static_cast<size_t>(id.index)].selected) {
      return error(Code::kInternal, "block %d: attention takes all rows", block);
    }
  }
  if (!heads || !sizes || width(q, 0) != int64_t{spec.n_heads} * spec.k_dim ||
      width(k, k_cols) != k_cols || width(v, v_cols) != v_cols) {
    return error(Code::kFormat,
                 "block %d: q, k, v of %lld, %lld, %lld values for %d heads of %d and %d kv heads",
                 block, static_cast<long long>(width(q, 0)),
                 static_cast<long long>(width(k, k_cols)), static_cast<long long>(width(v, v_cols)),
                 spec.n_heads, spec.k_dim, spec.n_kv_heads);
  }
  if (spec.rope >= 0 && (std::cmp_greater_equal(spec.rope, graph_.ropes.size()) ||
                         graph_.ropes[static_cast<size_t>(spec.rope)].n_dims > spec.k_dim)) {
    return error(Code::kInternal, "block %d: rotary table %d does not fit", block, spec.rope);
  }
  return {};
}

/// The layer that the block looks at: a new one, an earlier block's, or -1 for none.
Result<int32_t> GraphBuilder::cache_layer_of(int32_t block, const AttentionSpec& spec) {
  if (spec.use == CacheUse::kStep) return -1;
  if (spec.use == CacheUse::kOwn) return static_cast<int32_t>(stores_.size());
  for (const int32_t store : stores_) {
    const Node& owner = graph_.nodes[static_cast<size_t>(store)];
    if (owner.block != spec.shared) continue;
    cache::ShapeDifference found =
        cache::shape_difference(cache_layer(spec, nullptr), cache_layer(owner.attention, nullptr));
    if (spec.rope != owner.attention.rope) {
      found = {"rotary table", spec.rope, owner.attention.rope};
    }
    if (!found && spec.v_in_k == owner.attention.v_in_k) return owner.layer;
    return error(Code::kInternal, "block %d has %s %d, block %d, whose layer it shares, has %d",
                 block, found ? found.what : "values in keys", found ? found.first : spec.v_in_k,
                 spec.shared, found ? found.second : owner.attention.v_in_k);
  }
  return error(Code::kInternal, "block %d shares a layer of block %d, which has none", block,
               spec.shared);
}

ValueId GraphBuilder::rope_append(ValueId q, ValueId k, ValueId v, int32_t block,
                                  const AttentionSpec& spec, std::span<const float> q_norm,
                                  std::span<const float> k_norm, float norm_eps) {
  if (!usable(q) || (k.valid() && !usable(k)) || (v.valid() && !usable(v))) return {};
  if (block <= last_block_) {
    fail(error(Code::kInternal, "block %d attends after block %d", block, last_block_));
    return {};
  }
  if (Status status = check_attention(q, k, v, block, spec); !status.ok()) {
    fail(std::move(status));
    return {};
  }
  const auto k_dim = static_cast<size_t>(spec.k_dim);
  if ((!q_norm.empty() && q_norm.size() != k_dim) || (!k_norm.empty() && k_norm.size() != k_dim)) {
    fail(error(Code::kFormat, "block %d: head norms of %zu and %zu values for heads of %d", block,
               q_norm.size(), k_norm.size(), spec.k_dim));
    return {};
  }
  const Result<int32_t> layer = cache_layer_of(block, spec);
  if (!layer.ok()) {
    fail(layer.status());
    return {};
  }
  Node node;
  node.op = Op::kRopeAppend;
  node.inputs = {q, k, v};
  node.cols = graph_.nodes[static_cast<size_t>(q.index)].cols;
  node.vector = keep(q_norm);
  node.vector2 = keep(k_norm);
  node.block = block;
  node.layer = layer.value();
  node.factor = norm_eps;
  node.attention = spec;
  last_block_ = block;
  const ValueId made = push(node);
  if (spec.use == CacheUse::kOwn) stores_.push_back(made.index);
  return made;
}

ValueId GraphBuilder::attention(ValueId q, int32_t block) {
  if (!usable(q)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(q.index)];
  if (input.op != Op::kRopeAppend || input.block != block) {
    fail(error(Code::kInternal, "attention of block %d needs what rope_append made for it", block));
    return {};
  }
  Node node;
  node.op = Op::kAttention;
  node.inputs[0] = q.index;
  node.cols = int64_t{input.attention.n_heads} * input.attention.v_dim;
  node.block = block;
  node.layer = input.layer;
  node.attention = input.attention;
  return push(node);
}

ValueId GraphBuilder::scan(ValueId a, ValueId b, ValueId x) {
  if (!usable(a) || !usable(b) || !usable(x)) return {};
  const auto input = [this](ValueId id) { return graph_.nodes[static_cast<size_t>(id.index)]; };
  const int64_t cols = input(x).cols;
  if (input(a).cols != cols || input(b).cols != cols) {
    fail(error(Code::kFormat, "a scan of rows of %lld, %lld and %lld",
               static_cast<long long>(input(a).cols), static_cast<long long>(input(b).cols),
               static_cast<long long>(cols)));
    return {};
  }
  if (input(a).selected || input(b).selected || input(x).selected) {
    fail(error(Code::kInternal, "a scan takes all rows"));
    return {};
  }
  Node node;
  node.op = Op::kScan;
  node.inputs = {a, b, x};
  node.cols = cols;
  node.layer = static_cast<int32_t>(graph_.states.size());
  graph_.states.push_back({cols, 2 * cols});
  return push(node);
}

ValueId GraphBuilder::select_rows(ValueId x) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (input.selected) return x;
  Node node;
  node.op = Op::kSelectRows;
  node.inputs[0] = x.index;
  node.cols = input.cols;
  node.selected = true;
  return push(node);
}

ValueId GraphBuilder::mean_rows(ValueId x) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (input.selected) {
    fail(error(Code::kInternal, "a mean takes all rows"));
    return {};
  }
  Node node;
  node.op = Op::kMeanRows;
  node.inputs[0] = x.index;
  node.cols = input.cols;
  node.selected = true;
  return push(node);
}

void GraphBuilder::last_hidden(ValueId x) {
  if (!usable(x)) return;
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (graph_.last_hidden >= 0 || input.selected || input.cols != graph_.hidden) {
    fail(error(Code::kInternal, "a graph names one value of whole hidden rows as its last"));
    return;
  }
  graph_.last_hidden = x.index;
}

void GraphBuilder::result(ValueId x) {
  logits(x);
  graph_.scores = false;
}

void GraphBuilder::tap(int32_t layer, ValueId x) {
  if (!usable(x)) return;
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (layer != graph_.n_taps || input.selected || input.cols != graph_.hidden) {
    fail(error(Code::kInternal, "tap %d does not follow %d taps of whole hidden rows", layer,
               graph_.n_taps));
    return;
  }
  graph_.n_taps = layer + 1;
  Node node;
  node.op = Op::kTap;
  node.inputs[0] = x.index;
  node.layer = layer;
  push(node);
}

void GraphBuilder::logits(ValueId x) {
  if (!usable(x)) return;
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (!input.selected || graph_.logits != 0) {
    fail(error(Code::kInternal, "a graph ends with one value of selected rows"));
    return;
  }
  graph_.logits = input.cols;
  Node node;
  node.op = Op::kLogits;
  node.inputs[0] = x.index;
  node.selected = true;
  push(node);
}

Result<Graph> GraphBuilder::finish() {
  if (!status_.ok()) return status_;
  if (graph_.logits == 0) return error(Code::kInternal, "a graph without a result");
  std::vector<int32_t> uses(graph_.nodes.size(), 0);
  for (const Node& node : graph_.nodes) {
    for (const int32_t input : node.inputs) {
      if (input >= 0) ++uses[static_cast<size_t>(input)];
    }
  }
  for (const Node& node : graph_.nodes) {
    if (node.op != Op::kRopeAppend) continue;
    const auto q = static_cast<size_t>(node.inputs[0]);
    if (uses[q] != 1 || graph_.nodes[q].op == Op::kSlice) {
      return error(Code::kInternal, "block %d: q is rotated in place but has another use",
                   node.block);
    }
  }
  // So that what is selected of them is never asked for apart from the rest.
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (graph_.nodes[n].slots > 1 && uses[n] > 1) {
      return error(Code::kInternal, "graph node %zu: rows of experts have %d readers", n, uses[n]);
    }
  }
  return std::move(graph_);
}

}  // namespace gen::graph

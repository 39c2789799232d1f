// SPDX-License-Identifier: Apache-2.0
// Building a graph. Every shape is checked here, once, so that later passes can rely on it.
// See graph.h.
#include "graph/graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/batch.h"

namespace gen::graph {

using engine::Op;

void GraphBuilder::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

bool GraphBuilder::usable(ValueId x, int32_t max_slots) {
  if (!status_.ok()) return false;
  if (x.index >= 0 && static_cast<size_t>(x.index) < graph_.nodes.size()) {
    const Node& node = graph_.nodes[static_cast<size_t>(x.index)];
    const bool there = engine::op_info(node.op).effect != engine::Effect::kHost;
    if (there && !node.index && node.slots <= max_slots) return true;
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

Node GraphBuilder::node_on(Op op, ValueId x) const {
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  Node node;
  node.op = op;
  node.inputs[0] = x.index;
  node.cols = input.cols;
  node.selected = input.selected;
  return node;
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

ValueId GraphBuilder::embed(const engine::WeightSource& table, float scale, Lookup lookup,
                            int32_t site) {
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
  node.site = site;
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

ValueId GraphBuilder::features(int64_t cols) {
  if (!status_.ok()) return {};
  if (cols <= 0 || graph_.features > 0 || graph_.nodes.empty()) {
    fail(error(Code::kInternal, "features of %lld columns: a graph has them once, after its tokens",
               static_cast<long long>(cols)));
    return {};
  }
  graph_.features = cols;
  Node node;
  node.op = Op::kFeatures;
  node.cols = cols;
  return push(node);
}

ValueId GraphBuilder::only_features(int64_t cols, int64_t vocab) {
  if (!status_.ok()) return {};
  if (cols <= 0 || vocab <= 0 || !graph_.nodes.empty()) {
    fail(error(Code::kInternal, "features of %lld columns for %lld tokens do not begin a graph",
               static_cast<long long>(cols), static_cast<long long>(vocab)));
    return {};
  }
  graph_.vocab = vocab;
  graph_.hidden = graph_.features = cols;
  Node node;
  node.op = Op::kFeatures;
  node.cols = cols;
  return push(node);
}

ValueId GraphBuilder::join(ValueId a, ValueId b) {
  if (!usable(a) || !usable(b)) return {};
  int64_t cols = 0;
  for (const ValueId each : {a, b}) {
    const Node& input = graph_.nodes[static_cast<size_t>(each.index)];
    const bool product = input.op == Op::kLinear || input.op == Op::kExperts;
    // A slice, a joined value, and queries, which are rotated where they were written.
    const bool placed =
        input.op == Op::kSlice || input.op == Op::kJoin || input.op == Op::kRopeAppend;
    if (input.selected || product || placed || a == b) {
      fail(error(Code::kInternal, "graph node %zu joins what is written elsewhere",
                 graph_.nodes.size()));
      return {};
    }
    cols += input.cols;
  }
  Node node;
  node.op = Op::kJoin;
  node.inputs = NodeInputs({a, b});
  node.cols = cols;
  return push(node);
}

ValueId GraphBuilder::slice(ValueId x, int64_t first, int64_t cols) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (first < 0 || cols <= 0 || first > input.cols || cols > input.cols - first) {
    fail(error(Code::kFormat, "columns %lld + %lld of rows of %lld", static_cast<long long>(first),
               static_cast<long long>(cols), static_cast<long long>(input.cols)));
    return {};
  }
  Node node = node_on(Op::kSlice, x);
  node.cols = cols;
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
  Node node = node_on(Op::kRmsNorm, x);
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
  Node node = node_on(Op::kLayerNorm, x);
  node.vector = keep(weight);
  node.vector2 = keep(bias);
  node.factor = eps;
  node.groups = groups;
  return push(node);
}

ValueId GraphBuilder::rms_norm_in_groups(ValueId x, std::span<const float> weight, float eps,
                                         int32_t groups) {
  const ValueId y = layer_norm(x, weight, {}, eps, groups);
  if (y.valid()) graph_.nodes[static_cast<size_t>(y.index)].uncentred = true;
  return y;
}

ValueId GraphBuilder::position_scale(ValueId x, std::span<const float> factors, int32_t every) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  if (factors.empty() || every < 1 || input.selected || input.slots != 1) {
    fail(error(Code::kInternal, "%zu factors of %d positions each", factors.size(), every));
    return {};
  }
  Node node = node_on(Op::kPositionScale, x);
  node.vector = keep(factors);
  node.n_factors = static_cast<int32_t>(factors.size());
  node.every = every;
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
  Node node = node_on(Op::kLinear, x);
  node.cols = weight.rows;
  node.weight = static_cast<int32_t>(graph_.weights.size() - 1);
  node.site = site;
  if (weight.scale == 1.0F) {
    node.vector = keep(bias);
    return push(node);
  }
  // A product's epilogue adds the bias before it multiplies by the factor, so divide the bias by
  // it.
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
  const bool gated_only = engine::is_gated_only(activation.kind) && op != Op::kGated;
  if (!info.same_width || inputs.size() != info.n_in || gated_only) {
    fail(error(Code::kInternal, "%s of %zu values cannot be applied", info.name, inputs.size()));
    return {};
  }
  const Node& first = graph_.nodes[static_cast<size_t>(inputs.begin()->index)];
  const Node& last = graph_.nodes[static_cast<size_t>((inputs.end() - 1)->index)];
  const bool spread = op == Op::kGated && last.cols % first.cols == 0;
  Node node;
  node.op = op;
  node.cols = last.cols;
  node.selected = first.selected;
  node.slots = first.slots;
  node.activation = activation;
  node.by_expert = true;
  size_t n = 0;
  for (const ValueId input : inputs) {
    const Node& other = graph_.nodes[static_cast<size_t>(input.index)];
    if (other.slots != first.slots) {
      fail(error(Code::kInternal, "%s of %d and %d rows for each row", info.name, first.slots,
                 other.slots));
      return {};
    }
    if ((other.cols != first.cols && !spread) || other.selected != first.selected) {
      fail(error(Code::kFormat, "%s of %srows of %lld and %srows of %lld", info.name,
                 first.selected ? "selected " : "", static_cast<long long>(first.cols),
                 other.selected ? "selected " : "", static_cast<long long>(other.cols)));
      return {};
    }
    node.inputs[n++] = input.index;
    node.by_expert = node.by_expert && other.by_expert && other.op != Op::kCombine;
  }
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
  return push(recurrent_node(Op::kScan, {a, b, x}, cols, "scan", {1, cols, 1}, 2 * cols));
}

Node GraphBuilder::recurrent_node(Op op, const NodeInputs& inputs, int64_t cols, const char* kind,
                                  const std::array<int64_t, 3>& dims, int64_t state_inputs) {
  Node node;
  node.op = op;
  node.inputs = inputs;
  node.cols = cols;
  node.layer = static_cast<int32_t>(graph_.states.size());
  graph_.states.push_back({dims[0] * dims[1] * dims[2], state_inputs});
  cache::StateFacts& facts = graph_.facts.emplace_back();
  facts.kind = kind;
  facts.block = block_;
  std::transform(dims.begin(), dims.end(), facts.dims.begin(),
                 [](int64_t n) { return static_cast<int32_t>(n); });
  return node;
}

ValueId GraphBuilder::causal_conv(ValueId x, std::span<const float> w, std::span<const float> bias,
                                  engine::Act act) {
  if (!usable(x)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(x.index)];
  const auto cols = static_cast<size_t>(input.cols);
  const size_t taps = w.size() / cols;
  if (taps < 2 || taps > engine::kMaxTaps || w.size() != taps * cols ||
      (!bias.empty() && bias.size() != cols)) {
    fail(error(Code::kFormat, "a convolution of %zu weights and %zu biases for rows of %zu",
               w.size(), bias.size(), cols));
    return {};
  }
  if (input.selected || (act != engine::Act::kNone && act != engine::Act::kSilu)) {
    fail(error(Code::kInternal, "a convolution takes all rows, and no function but silu"));
    return {};
  }
  std::vector<float> turned(w.size());
  for (size_t c = 0; c < cols; ++c) {
    for (size_t j = 0; j < taps; ++j) turned[j * cols + c] = w[c * taps + j];
  }
  const auto rows = static_cast<int64_t>(taps) - 1;
  Node node = recurrent_node(Op::kCausalConv, {x}, input.cols, "convolution", {1, rows, input.cols},
                             input.cols);
  node.taps = static_cast<int32_t>(taps);
  node.vector = keep(turned);
  node.vector2 = bias.empty() ? -1 : keep(bias);
  node.activation.kind = act;
  return push(node);
}

ValueId GraphBuilder::delta_net(ValueId qkv, ValueId alpha, ValueId beta, std::span<const float> dt,
                                std::span<const float> a, const engine::DeltaShape& shape) {
  if (!usable(qkv) || !usable(alpha) || !usable(beta)) return {};
  const auto input = [this](ValueId id) { return graph_.nodes[static_cast<size_t>(id.index)]; };
  const bool whole = shape.k_heads > 0 && shape.v_heads % shape.k_heads == 0 && shape.k_dim > 0 &&
                     shape.k_dim % 16 == 0 && shape.v_dim > 0 && shape.v_dim % 16 == 0;
  if (!whole || input(qkv).cols != 2 * shape.k_cols() + shape.v_cols() ||
      input(alpha).cols != shape.v_heads || input(beta).cols != shape.v_heads ||
      std::cmp_not_equal(dt.size(), shape.v_heads) || a.size() != dt.size()) {
    fail(error(Code::kFormat,
               "a delta net of %d heads of %d values and %d of %d keys, which must be multiples of "
               "16, for rows of %lld",
               shape.v_heads, shape.v_dim, shape.k_heads, shape.k_dim,
               static_cast<long long>(input(qkv).cols)));
    return {};
  }
  if (input(qkv).selected || input(alpha).selected || input(beta).selected) {
    fail(error(Code::kInternal, "a delta net takes all rows"));
    return {};
  }
  const int64_t inputs = shape.k_cols() + shape.v_cols() + 2 * int64_t{shape.v_heads};
  Node node = recurrent_node(Op::kDeltaNet, {qkv, alpha, beta}, shape.v_cols(), "delta net",
                             {shape.v_heads, shape.k_dim, shape.v_dim}, inputs);
  node.delta = shape;
  node.vector = keep(dt);
  node.vector2 = keep(a);
  return push(node);
}

ValueId GraphBuilder::selective_scan(ValueId x, ValueId dt, ValueId b, ValueId c,
                                     const SelectiveParams& params) {
  if (!usable(x) || !usable(dt) || !usable(b) || !usable(c)) return {};
  const auto input = [this](ValueId id) -> const Node& {
    return graph_.nodes[static_cast<size_t>(id.index)];
  };
  const int64_t channels = input(x).cols;
  const int64_t heads = input(dt).cols;
  const int64_t groups = params.n_groups;
  if (groups < 1 || heads % groups != 0 || channels % heads != 0 || input(b).cols % groups != 0 ||
      input(c).cols != input(b).cols) {
    fail(error(Code::kFormat,
               "a selective scan of rows of %lld, %lld, %lld and %lld in %lld groups",
               static_cast<long long>(channels), static_cast<long long>(heads),
               static_cast<long long>(input(b).cols), static_cast<long long>(input(c).cols),
               static_cast<long long>(groups)));
    return {};
  }
  const int64_t n = input(b).cols / groups;
  if (n > engine::kMaxStateSize) {
    fail(error(Code::kUnsupported, "a state of %lld numbers per channel, above %d",
               static_cast<long long>(n), engine::kMaxStateSize));
    return {};
  }
  const bool own_rows = channels == heads;
  const bool spread = own_rows && n > 1 && std::cmp_equal(params.a.size(), heads);
  if (std::cmp_not_equal(params.dt_bias.size(), heads) ||
      std::cmp_not_equal(params.d.size(), heads) ||
      (!spread && std::cmp_not_equal(params.a.size(), own_rows ? heads * n : heads))) {
    fail(error(Code::kFormat, "a selective scan of %lld heads with %zu, %zu and %zu parameters",
               static_cast<long long>(heads), params.dt_bias.size(), params.a.size(),
               params.d.size()));
    return {};
  }
  for (const ValueId each : {x, dt, b, c}) {
    if (!input(each).selected) continue;
    fail(error(Code::kInternal, "a scan takes all rows"));
    return {};
  }
  std::vector<float> all(params.dt_bias.begin(), params.dt_bias.end());
  all.insert(all.end(), params.d.begin(), params.d.end());
  for (const float a : params.a) all.insert(all.end(), spread ? static_cast<size_t>(n) : 1, a);
  Node node = recurrent_node(Op::kSelectiveScan, {x, dt, b, c}, channels, "selective scan",
                             {heads, channels / heads, n}, channels + heads + groups * n);
  node.groups = params.n_groups;
  node.vector = keep(all);
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
  Node node;
  node.op = Op::kTap;
  node.inputs[0] = x.index;
  node.layer = kNormedTap;
  push(node);
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
  for (const Node& node : graph_.nodes) {
    if (node.op != Op::kJoin) continue;
    for (const int32_t input : node.inputs) {
      if (input < 0 || uses[static_cast<size_t>(input)] == 1) continue;
      return error(Code::kInternal, "block %d: what is joined has another use", node.block);
    }
  }
  // Their rows must not be selected separately from the others.
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (graph_.nodes[n].slots > 1 && uses[n] > 1) {
      return error(Code::kInternal, "graph node %zu: rows of experts have %d readers", n, uses[n]);
    }
  }
  for (cache::LayerShape& layer : graph_.given) layer.rope_table = nullptr;  // another graph's
  return std::move(graph_);
}

}  // namespace gen::graph

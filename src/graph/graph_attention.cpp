// SPDX-License-Identifier: Apache-2.0
// Attention, the cache layers that it has or shares, and rotary tables, see graph.h.
#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/cache_layers.h"
#include "graph/graph.h"

namespace gen::graph {

using engine::Op;

namespace {

/// Whether queries that `rope` turns fit keys that `keys` has turned. Files may round differently.
bool turns_alike(const RopeSpec& rope, const engine::RopeTable& keys) {
  constexpr float kRounding = 1e-3F;
  const auto close = [](float a, float b) { return std::abs(a - b) <= kRounding * std::abs(b); };
  return close(rope.magnitude, keys.magnitude) &&
         std::equal(rope.inv_freq.begin(), rope.inv_freq.end(), keys.inv_freq, close);
}

}  // namespace

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
  const bool stores = spec.use != CacheUse::kShared && spec.use != CacheUse::kGiven;
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

/// The layer that the block attends to: a new one, an earlier block's, or -1 for none.
Result<int32_t> GraphBuilder::cache_layer_of(int32_t block, const AttentionSpec& spec) {
  if (spec.use == CacheUse::kStep) return -1;
  if (spec.use == CacheUse::kGiven) return given_layer_of(block, spec);
  if (spec.use == CacheUse::kOwn && !graph_.given.empty()) {
    return error(Code::kInternal, "block %d keeps keys and values where caches are only read",
                 block);
  }
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

Result<int32_t> GraphBuilder::given_layer_of(int32_t block, const AttentionSpec& spec) const {
  if (spec.shared < 0 || std::cmp_greater_equal(spec.shared, graph_.given.size())) {
    return error(Code::kInternal, "block %d reads cache layer %d of %zu", block, spec.shared,
                 graph_.given.size());
  }
  engine::RopeTable table;
  const RopeSpec* const rope =
      spec.rope >= 0 ? &graph_.ropes[static_cast<size_t>(spec.rope)] : nullptr;
  if (rope != nullptr) {
    table.kind = rope->kind;
    table.n_dims = rope->n_dims;
  }
  const cache::LayerShape& layer = graph_.given[static_cast<size_t>(spec.shared)];
  const auto found =
      cache::shape_difference(cache_layer(spec, rope != nullptr ? &table : nullptr), layer);
  if (found) {
    return error(Code::kFormat, "block %d has %s %d, cache layer %d, which it reads, has %d", block,
                 found.what, found.first, spec.shared, found.second);
  }
  if (rope != nullptr && layer.rope_table != nullptr && !turns_alike(*rope, *layer.rope_table)) {
    return error(Code::kFormat,
                 "block %d turns by other angles than cache layer %d, which it reads", block,
                 spec.shared);
  }
  // The row behind the last entry would see itself, or itself alone.
  if (layer.window == 1 || layer.chunk > 0) {
    return error(Code::kUnsupported, "block %d reads cache layer %d, which has %s", block,
                 spec.shared, layer.chunk > 0 ? "chunks of positions" : "a window of 1");
  }
  return spec.shared;
}

void GraphBuilder::read_cache(std::span<const cache::LayerShape> layers) {
  if (!status_.ok()) return;
  if (layers.empty() || !graph_.given.empty() || last_block_ >= 0) {
    fail(error(Code::kInternal, "a graph reads a cache of %zu layers, once and before it attends",
               layers.size()));
    return;
  }
  graph_.given.assign(layers.begin(), layers.end());
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

ValueId GraphBuilder::attention(ValueId q, int32_t block, std::span<const float> sinks) {
  if (!usable(q)) return {};
  const Node& input = graph_.nodes[static_cast<size_t>(q.index)];
  if (input.op != Op::kRopeAppend || input.block != block) {
    fail(error(Code::kInternal, "attention of block %d needs what rope_append made for it", block));
    return {};
  }
  if (!sinks.empty() && std::cmp_not_equal(sinks.size(), input.attention.n_heads)) {
    fail(error(Code::kFormat, "block %d: sinks of %zu values for %d heads", block, sinks.size(),
               input.attention.n_heads));
    return {};
  }
  Node node;
  node.op = Op::kAttention;
  node.inputs[0] = q.index;
  node.cols = int64_t{input.attention.n_heads} * input.attention.v_dim;
  node.vector = keep(sinks);
  node.block = block;
  node.layer = input.layer;
  node.attention = input.attention;
  return push(node);
}

}  // namespace gen::graph

// SPDX-License-Identifier: Apache-2.0
// See tracing_store.h.
#include "cache/tensor/tracing_store.h"

#include <tuple>
#include <utility>

namespace gen::cache {
namespace {

using engine::TracedOp;
using engine::TraceShape;

/// Reserves its tensors, so that nothing after the call can fail.
TracedOp make_op(const char* name, int32_t layer, size_t inputs) {
  TracedOp op;
  op.name = name;
  op.layer = layer;
  op.inputs.reserve(inputs);
  op.outputs.reserve(1);
  return op;
}

TraceShape traced(const TensorShape& shape) { return {shape.batch, shape.seq, shape.dim}; }

}  // namespace

const TracingStore::Sides& TracingStore::name_sides(int32_t layer) const {
  Sides& sides = sides_[static_cast<size_t>(layer)];
  // Written before tracing began, or not through this object.
  if (sides.k == 0 || sides.changes != changes(layer)) {
    const TraceShape shape = traced(real_->shape(layer));
    const int64_t k = log_->add_tensor(shape);
    sides = {k, log_->add_tensor(shape), changes(layer)};
  }
  return sides;
}

Status TracingStore::update(int32_t layer, const float* k, const float* v,
                            const TensorShape& shape) {
  const bool is_layer = layer >= 0 && layer < num_layers();
  if (!is_layer || shape.seq == 0) return real_->update(layer, k, v, shape);
  log_->reserve(6, 2);
  TracedOp keys = make_op("KVCacheAppendK", layer, 2);
  TracedOp values = make_op("KVCacheAppendV", layer, 2);
  const bool had_some = layer_seq_len(layer) > 0;
  // Named now, because the layer cannot be read afterwards. A failure only wastes a number.
  const Sides before = had_some ? name_sides(layer) : Sides();
  GEN_TRY(real_->update(layer, k, v, shape));
  const int64_t k_rows = log_->add_tensor(traced(shape));
  const int64_t v_rows = log_->add_tensor(traced(shape));
  sides_[static_cast<size_t>(layer)] = {};
  const Sides& after = name_sides(layer);
  for (auto& [op, old, rows, now] : {std::tuple{&keys, before.k, k_rows, after.k},
                                     std::tuple{&values, before.v, v_rows, after.v}}) {
    if (old != 0) op->inputs.push_back(old);
    op->inputs.push_back(rows);
    op->outputs.push_back(now);
    log_->add_op(std::move(*op));
  }
  return {};
}

Status TracingStore::get(int32_t layer, float* k, float* v) const {
  const TensorShape shape = real_->shape(layer);
  if (shape.seq == 0) return real_->get(layer, k, v);
  log_->reserve(4, 2);
  TracedOp keys = make_op("KVCacheGetK", layer, 1);
  TracedOp values = make_op("KVCacheGetV", layer, 1);
  GEN_TRY(real_->get(layer, k, v));
  const Sides& sides = name_sides(layer);
  for (auto& [op, out, from] : {std::tuple{&keys, k, sides.k}, std::tuple{&values, v, sides.v}}) {
    if (out == nullptr) continue;
    op->inputs.push_back(from);
    op->outputs.push_back(log_->add_tensor(traced(shape)));
    log_->add_op(std::move(*op));
  }
  return {};
}

}  // namespace gen::cache

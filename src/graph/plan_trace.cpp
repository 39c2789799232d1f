// SPDX-License-Identifier: Apache-2.0
// See plan_trace.h. An instruction is recorded when it begins and taken back if it fails.
#include "graph/plan_trace.h"

namespace gen::graph {
namespace {

using engine::TraceCache;
using engine::TracedOp;
using engine::TraceEvent;
using engine::TraceShape;
using engine::TraceValue;

TraceShape shape_of(const TraceValue& value) {
  return {1, static_cast<int32_t>(value.rows), static_cast<int32_t>(value.cols)};
}

}  // namespace

void PlanTrace::record(const TraceEvent& event) noexcept {
  before_ = log_->ops().size();
  try {
    add(event);
  } catch (...) {  // memory
    log_->keep_ops(before_);
    log_->set_incomplete();
  }
}

int64_t PlanTrace::tensor(const TraceValue& value) {
  const auto index = static_cast<size_t>(value.value);
  const bool made = value.value >= 0 && index < tensors_.size() && tensors_[index] != 0;
  return made ? tensors_[index] : make(value);
}

int64_t PlanTrace::make(const TraceValue& value) {
  const int64_t made = log_->add_tensor(shape_of(value));
  if (value.value < 0) return made;
  const auto index = static_cast<size_t>(value.value);
  if (index >= tensors_.size()) tensors_.resize(index + 1);
  tensors_[index] = made;
  return made;
}

PlanTrace::Sides& PlanTrace::sides(const TraceCache& cache, int32_t layer, int32_t length) {
  Sides& held = sides_[{cache.sequence, layer}];
  // A sequence without a name may be any.
  if (held.k == 0 || held.length != length || cache.sequence == 0) {
    held = new_sides(cache, length);
  }
  return held;
}

PlanTrace::Sides PlanTrace::new_sides(const TraceCache& cache, int32_t length) {
  Sides sides;
  sides.k = log_->add_tensor({cache.kv_heads, length, cache.k_dim});
  sides.v = log_->add_tensor({cache.kv_heads, length, cache.v_dim});
  sides.length = length;
  return sides;
}

void PlanTrace::add(const TraceEvent& event) {
  const bool appends = event.appends;
  TracedOp op;
  op.name = event.op;
  if (!event.caches.empty()) op.layer = event.layer;  // other operations, as taps, number others
  op.weight = event.detail;
  for (const TraceValue& value : event.inputs) op.inputs.push_back(tensor(value));
  if (!appends) {
    for (const TraceCache& cache : event.caches) {
      const Sides held = sides(cache, event.layer, cache.entries + cache.rows);
      op.inputs.push_back(add_read("KVCacheGetK", event.layer, held.k));
      op.inputs.push_back(add_read("KVCacheGetV", event.layer, held.v));
    }
  }
  for (const TraceValue& value : event.outputs) op.outputs.push_back(make(value));
  int64_t k_rows = 0;
  int64_t v_rows = 0;
  if (appends && !event.caches.empty()) {
    const TraceCache& any = event.caches.front();
    const auto rows = static_cast<int32_t>(event.rows);
    k_rows = log_->add_tensor({any.kv_heads, rows, any.k_dim});
    v_rows = log_->add_tensor({any.kv_heads, rows, any.v_dim});
    op.outputs.insert(op.outputs.end(), {k_rows, v_rows});
  }
  log_->add_op(std::move(op));
  if (appends) add_appends(event, k_rows, v_rows);
}

void PlanTrace::add_appends(const TraceEvent& event, int64_t k_rows, int64_t v_rows) {
  for (const TraceCache& cache : event.caches) {
    Sides before;
    if (cache.entries > 0) before = sides(cache, event.layer, cache.entries);
    Sides& after = sides_[{cache.sequence, event.layer}];
    after = new_sides(cache, cache.entries + cache.rows);
    add_append("KVCacheAppendK", event.layer, before.k, k_rows, after.k);
    add_append("KVCacheAppendV", event.layer, before.v, v_rows, after.v);
  }
}

void PlanTrace::add_append(const char* name, int32_t layer, int64_t before, int64_t rows,
                           int64_t after) {
  TracedOp op;
  op.name = name;
  op.layer = layer;
  if (before != 0) op.inputs.push_back(before);
  op.inputs.push_back(rows);
  op.outputs.push_back(after);
  log_->add_op(std::move(op));
}

int64_t PlanTrace::add_read(const char* name, int32_t layer, int64_t side) {
  TracedOp op;
  op.name = name;
  op.layer = layer;
  op.inputs.push_back(side);
  op.outputs.push_back(log_->add_tensor(log_->shape(side)));
  const int64_t read = op.outputs.front();
  log_->add_op(std::move(op));
  return read;
}

}  // namespace gen::graph

// SPDX-License-Identifier: Apache-2.0
// See custom_trace.h. Layer l is numbered like instructions 2 l and 2 l + 1 of a plan, which make
// the values of the same numbers. The call and its results follow all layers.
#include "model/custom_trace.h"

#include <algorithm>
#include <vector>

#include "graph/traced_caches.h"

namespace gen::model {
namespace {

using engine::TraceCache;
using engine::TraceEvent;
using engine::TraceValue;

TraceValue outside(const graph::Batch& batch, int64_t cols) { return {-1, batch.rows(), cols}; }

/// The queries when keys and values are stored, and the results of attention.
TraceValue queries(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer) {
  return {2 * layer, batch.rows(), int64_t{spec.n_heads} * spec.k_dim};
}
TraceValue attended(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer) {
  return {2 * layer + 1, batch.rows(), int64_t{spec.n_heads} * spec.v_dim};
}

void record(const graph::Batch& batch, TraceEvent event, std::span<const TraceValue> inputs,
            const TraceValue& output, const graph::AttentionSpec& spec) {
  std::vector<TraceCache> caches;
  graph::list_caches(spec, batch.sequences, &caches);
  event.index = output.value;
  event.rows = output.rows;
  event.cols = output.cols;
  event.inputs = inputs;
  event.outputs = {&output, 1};
  event.caches = caches;
  batch.tracer->record(event);
}

}  // namespace

void trace_append(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer) {
  TraceEvent event;
  event.op = engine::op_info(engine::Op::kRopeAppend).name;
  event.appends = true;
  event.layer = layer;
  const TraceValue inputs[] = {outside(batch, int64_t{spec.n_heads} * spec.k_dim),
                               outside(batch, int64_t{spec.n_kv_heads} * spec.k_dim),
                               outside(batch, int64_t{spec.n_kv_heads} * spec.v_dim)};
  record(batch, event, inputs, queries(batch, spec, layer), spec);
}

void trace_attention(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer,
                     const engine::OpCost& cost) {
  TraceEvent event;
  event.op = engine::op_info(engine::Op::kAttention).name;
  event.layer = layer;
  event.bytes = cost.bytes;
  event.products = cost.products;
  const TraceValue inputs[] = {queries(batch, spec, layer)};
  record(batch, event, inputs, attended(batch, spec, layer), spec);
}

void trace_forward(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layers,
                   int32_t vocab, int32_t hidden) {
  std::vector<TraceValue> inputs = {outside(batch, 1)};
  for (int32_t layer = 0; layer < layers; ++layer) inputs.push_back(attended(batch, spec, layer));
  std::vector<TraceValue> outputs;
  const auto wanted = static_cast<int64_t>(batch.wanting(graph::kWantsLogits));
  if (wanted > 0) outputs.push_back({2 * layers, wanted, vocab});
  if (!batch.taps.empty()) outputs.push_back({2 * layers + 1, batch.rows(), hidden});
  TraceEvent event;
  event.index = 2 * layers;
  event.op = "forward";
  event.rows = batch.rows();
  event.cols = vocab;
  event.inputs = inputs;
  event.outputs = outputs;
  batch.tracer->leave(event);
}

}  // namespace gen::model

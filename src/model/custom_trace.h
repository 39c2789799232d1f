// SPDX-License-Identifier: Apache-2.0
// The operations that a batch's tracer sees of a custom model: one for a call of the function, and
// the usual two for each attention. The function's own computation is unknown; keys, values and
// queries come from outside.
#pragma once

#include <cstdint>

#include "engine/trace/op_cost.h"
#include "graph/batch.h"
#include "graph/graph.h"

namespace gen::model {

/// Called before keys and values of a layer are stored.
void trace_append(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer);

/// Called before attention of a layer.
void trace_attention(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer,
                     const engine::OpCost& cost);

/// Called after a successful call, in which each of that many layers was run. `hidden` is the width
/// of features.
void trace_forward(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layers,
                   int32_t vocab, int32_t hidden);

}  // namespace gen::model

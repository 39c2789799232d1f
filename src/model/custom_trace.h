// SPDX-License-Identifier: Apache-2.0
// What a batch's tracer is told of a model that is a function of the caller's: one operation for a
// call of the function, and the same two for each attention as of any model. What the function
// computes by itself is not known; keys, values and queries come from outside.
#pragma once

#include <cstdint>

#include "engine/trace/op_cost.h"
#include "graph/batch.h"
#include "graph/graph.h"

namespace gen::model {

/// Keys and values of a layer are about to be kept.
void trace_append(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer);

/// Attention of a layer is about to begin.
void trace_attention(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layer,
                     const engine::OpCost& cost);

/// A call has succeeded, in which each of so many layers was run. `hidden` is the width of
/// features.
void trace_forward(const graph::Batch& batch, const graph::AttentionSpec& spec, int32_t layers,
                   int32_t vocab, int32_t hidden);

}  // namespace gen::model

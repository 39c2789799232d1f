// SPDX-License-Identifier: Apache-2.0
// What tracers are told of attention and of the caches that it goes to, by plans and by models
// without one alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/tracer.h"
#include "graph/batch.h"
#include "graph/graph.h"

namespace gen::graph {

/// Adds to the event what these rows' attention multiplies and reads: rows see themselves and what
/// came before them, within the window; trees see less.
void count_attention(const AttentionSpec& spec, std::span<const engine::SequenceRows> sequences,
                     engine::TraceEvent* event);

/// What a layer of each sequence's cache holds, and gets.
void list_caches(const AttentionSpec& spec, std::span<const BatchSequence> sequences,
                 std::vector<engine::TraceCache>* out);

}  // namespace gen::graph

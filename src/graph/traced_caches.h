// SPDX-License-Identifier: Apache-2.0
// What tracers are told of the caches that attention goes to, by plans and by models without one
// alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/trace/tracer.h"
#include "graph/batch.h"
#include "graph/graph.h"

namespace gen::graph {

/// What a layer of each sequence's cache holds, and gets.
void list_caches(const AttentionSpec& spec, std::span<const BatchSequence> sequences,
                 std::vector<engine::TraceCache>* out);

}  // namespace gen::graph

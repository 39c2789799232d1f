// SPDX-License-Identifier: Apache-2.0
// The description of caches for tracers, shared by plans and models without a plan.
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

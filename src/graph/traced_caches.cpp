// SPDX-License-Identifier: Apache-2.0
// See traced_caches.h.
#include "graph/traced_caches.h"

namespace gen::graph {

void list_caches(const AttentionSpec& spec, std::span<const BatchSequence> sequences,
                 std::vector<engine::TraceCache>* out) {
  out->clear();
  for (const BatchSequence& sequence : sequences) {
    engine::TraceCache traced;
    traced.sequence = sequence.trace_id;
    traced.entries = sequence.plan.start;
    traced.rows = sequence.n_rows;
    traced.kv_heads = spec.n_kv_heads;
    traced.k_dim = spec.k_dim;
    traced.v_dim = spec.v_dim;
    out->push_back(traced);
  }
}

}  // namespace gen::graph

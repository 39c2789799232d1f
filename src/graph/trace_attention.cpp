// SPDX-License-Identifier: Apache-2.0
// See trace_attention.h.
#include "graph/trace_attention.h"

#include <algorithm>
#include <limits>

#include "engine/kv/codec.h"

namespace gen::graph {
namespace {

int64_t head_bytes(const engine::KvSide& side) {
  const size_t tile =
      engine::kv_codec(side.format).tile_bytes(side.order, static_cast<size_t>(side.head_dim));
  return static_cast<int64_t>(tile) / engine::kKvTile;
}

}  // namespace

void count_attention(const AttentionSpec& spec, std::span<const engine::SequenceRows> sequences,
                     engine::TraceEvent* event) {
  for (const engine::SequenceRows& rows : sequences) {
    int64_t window = rows.view.window > 0 ? rows.view.window : std::numeric_limits<int64_t>::max();
    if (rows.view.chunk > 0) window = std::min<int64_t>(window, rows.view.chunk);
    int64_t seen = 0;
    for (int64_t i = 0; i < rows.n_rows; ++i) {
      seen += std::min(rows.first_entry + i + 1, window);
    }
    event->products += seen * spec.n_heads * (spec.k_dim + spec.v_dim);
    // The first row looks back furthest, the last one is the newest: all between are read once.
    const int64_t entries = rows.n_rows + std::min<int64_t>(rows.first_entry, window - 1);
    event->bytes +=
        entries * rows.view.kv_heads * (head_bytes(rows.view.k) + head_bytes(rows.view.v));
  }
}

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

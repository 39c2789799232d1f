// SPDX-License-Identifier: Apache-2.0
// The input of a model in one step: rows of tokens, the sequences they belong to, and where the
// results go (row_query.h). Everything is borrowed for the duration of the call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/sequence_state.h"
#include "engine/engine_ptr.h"
#include "engine/trace/tracer.h"
#include "graph/adapter_table.h"
#include "graph/product_observer.h"
#include "graph/row_query.h"

namespace gen::graph {

/// The number of rows that a step has room for, unless a plan is made for another.
inline constexpr int32_t kStepRows = 512;
/// The largest number of rows that an engine may prefer.
inline constexpr int32_t kMaxStepRows = 2048;

/// One sequence of the step; its rows are contiguous.
struct BatchSequence {
  cache::KvCache* cache = nullptr;
  cache::SequenceState* state = nullptr;  // null for models that have none
  // Made by the caller for n_rows rows, and committed or dropped by it afterwards; for none where
  // caches are only read (GraphBuilder::read_cache).
  cache::CachePlan plan;
  cache::StatePlan state_plan;
  int32_t adapter = -1;  // a mix of Batch::adapters, -1 for none
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t planned_before = 0;  // rows of the plan that come before these
  int64_t trace_id = 0;        // names the sequence to tracers
};

/// The layer of a Tap for the hidden state after the final norm, which heads read.
inline constexpr int32_t kNormedTap = std::numeric_limits<int32_t>::max();

/// Asks for the hidden states after `layer` (0 is the embedding, L the last layer), or kNormedTap.
struct Tap {
  int32_t layer = 0;
  float* out = nullptr;              // [T, D] in host memory, or
  engine::EnginePtr<float> at = {};  // [T, D] in the engine's
};

struct Batch {
  std::span<const int32_t> tokens;     // [T]; -1 - i means row i of `embeddings`
  std::span<const float> embeddings;   // [E, D]
  std::span<const float> features;     // [T, F] for a graph with features(), otherwise empty
  std::span<const int32_t> positions;  // [T]; separate from the entry a row is stored in
  std::span<const int32_t> parents;    // [T] the row's parent, or empty: the previous row (trees)
  std::span<const uint8_t> wants;      // [T] of Wants
  std::span<const BatchSequence> sequences;
  float* logits = nullptr;  // [rows that want logits, V], host memory
  size_t logits_rows = 0;   // capacity of `logits` in rows
  BestRows best;
  std::span<const RowExtras> extras;  // ascending by row, at most one per row
  /// Called once in a pass, unless it fails earlier: when everything before the first choice of a
  /// best token has been enqueued, and before any wait. Until it returns, the bits of masks may be
  /// written, but not their number.
  During during;
  std::span<const Tap> taps;
  const AdapterTable* adapters = nullptr;  // the adapters of sequences; null: no sequence has any
  const CancelFlag* cancel = nullptr;      // polled between layers
  engine::Tracer* tracer = nullptr;
  ProductObserver* observer = nullptr;  // for plans that are compiled for one

  [[nodiscard]] int64_t rows() const noexcept { return static_cast<int64_t>(positions.size()); }
  [[nodiscard]] size_t wanting(Wants what) const noexcept {
    return static_cast<size_t>(std::count(wants.begin(), wants.end(), uint8_t{what}));
  }
  /// Logits of a row depend on its sequence alone to the bit, not on the other rows, in engines
  /// where this costs time; in the CPU engine they always do.
  bool deterministic = false;
  /// Above 0: the number of rows of each sequence, which run one after another. The token of each
  /// row after the first is the best token of the row before it, and its entry in `tokens` is
  /// ignored: the engine does not wait for the host in between. Each row wants the best token;
  /// results come row by row, [multi_steps, sequences]. Plans may be of more rows. Parents, taps,
  /// extras, a tracer or observer, states and the like are not supported.
  int32_t multi_steps = 0;
};

}  // namespace gen::graph

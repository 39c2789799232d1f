// SPDX-License-Identifier: Apache-2.0
// All that reaches a model in one step: rows of tokens, the sequences they belong to, and where the
// results go (row_query.h). Everything is borrowed for the duration of the call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/sequence_state.h"
#include "engine/engine_ptr.h"
#include "engine/trace/tracer.h"
#include "graph/adapter_table.h"
#include "graph/row_query.h"

namespace gen::graph {

/// Rows that a step has room for, unless a plan is made for another number.
inline constexpr int32_t kStepRows = 512;
/// And the most that an engine may like to have.
inline constexpr int32_t kMaxStepRows = 2048;

/// One sequence of the step; its rows are contiguous.
struct BatchSequence {
  cache::KvCache* cache = nullptr;
  cache::SequenceState* state = nullptr;  // null for models that have none
  // Made by the caller for n_rows rows, and committed or dropped by it afterwards.
  cache::CachePlan plan;
  cache::StatePlan state_plan;
  int32_t adapter = -1;  // a mix of Batch::adapters, -1 for none
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t planned_before = 0;  // rows of the plan that come before these
  int64_t trace_id = 0;        // names the sequence to tracers
};

/// Asks for the hidden states after `layer` (0 is the embedding, L the last layer).
struct Tap {
  int32_t layer = 0;
  float* out = nullptr;              // [T, D] in host memory, or
  engine::EnginePtr<float> at = {};  // [T, D] in the engine's
};

struct Batch {
  std::span<const int32_t> tokens;     // [T]; -1 - i stands for row i of `embeddings`
  std::span<const float> embeddings;   // [E, D]
  std::span<const int32_t> positions;  // [T]; separate from the entry a row is stored in
  std::span<const int32_t> parents;    // [T] row looked back at, or empty: the previous row (trees)
  std::span<const uint8_t> wants;      // [T] of Wants
  std::span<const BatchSequence> sequences;
  float* logits = nullptr;  // [rows that want logits, V], host memory
  size_t logits_rows = 0;   // capacity of `logits` in rows
  BestRows best;
  std::span<const RowExtras> extras;  // ascending by row, one for a row at most
  /// Called once in a pass that does not fail before: when all has been enqueued that comes before
  /// the first choice of a best token, and nothing has been waited for. The bits of masks, but not
  /// how many they are, may be written until it returns.
  During during;
  std::span<const Tap> taps;
  const AdapterTable* adapters = nullptr;  // that sequences name; null: none of them names one
  const CancelFlag* cancel = nullptr;      // polled between layers
  engine::Tracer* tracer = nullptr;

  [[nodiscard]] int64_t rows() const noexcept { return static_cast<int64_t>(positions.size()); }
  [[nodiscard]] size_t wanting(Wants what) const noexcept {
    return static_cast<size_t>(std::count(wants.begin(), wants.end(), uint8_t{what}));
  }
  /// Logits of a row depend on its sequence alone to the bit, not on the rows beside it, in engines
  /// where that has a price; in the CPU engine they always do.
  bool deterministic = false;
  /// Above 0: rows run one after another, so many of each sequence, and the token of a row behind
  /// the first is what the row before it has found best, whatever `tokens` has there: the engine
  /// does not wait for the host in between. Each row wants the best one; results come row by row,
  /// [multi_steps, sequences]. Plans may be of more rows. What rows are looked at by, and what goes
  /// with them, is left out: parents, taps, extras, a tracer, states and their like.
  int32_t multi_steps = 0;
};

}  // namespace gen::graph

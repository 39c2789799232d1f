// SPDX-License-Identifier: Apache-2.0
// All that reaches a model in one step: rows of tokens, the sequences they belong to, and where the
// results go. Everything is borrowed for the duration of the call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "engine/tracer.h"

namespace gen::graph {

/// State beside a KV cache (recurrent layers, a caller's own model). Owned by the session. A pass
/// takes it past its sequence's rows; one that fails takes it back, or loses it.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
  /// A state of its own with the same content. kUnsupported where there is no copying.
  [[nodiscard]] virtual Result<std::unique_ptr<SequenceState>> clone() const {
    return error(Code::kUnsupported, "the model has a state of its own that cannot be copied");
  }
  /// Back to what it was after the first `n` positions. A failure loses it.
  virtual Status truncate(int32_t n) {
    return error(Code::kUnsupported, "the model has a state that cannot go back to %d tokens", n);
  }
  /// Of no further use: to be made anew, and its tokens run again.
  [[nodiscard]] virtual bool lost() const noexcept { return false; }
};

/// One sequence of the step; its rows are contiguous.
struct BatchSequence {
  cache::KvCache* cache = nullptr;
  SequenceState* state = nullptr;  // null for models without recurrent layers
  cache::CachePlan plan;  // made by the caller for n_rows entries, committed by it afterwards
  int32_t adapter = -1;   // index of a loaded adapter, -1 for none
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int64_t trace_id = 0;  // names the sequence to tracers
};

/// Asks for the hidden states after `layer` (0 is the embedding, L the last layer).
struct Tap {
  int32_t layer = 0;
  float* out = nullptr;  // [T, D]
};

struct Batch {
  std::span<const int32_t> tokens;     // [T]
  const float* embeddings = nullptr;   // [T, D] instead of tokens, or null
  std::span<const int32_t> positions;  // [T]; separate from the entry a row is stored in
  std::span<const int32_t> parents;    // [T] row looked back at, or empty: the previous row (trees)
  std::span<const uint8_t> wants_logits;  // [T]
  std::span<const BatchSequence> sequences;
  float* logits = nullptr;  // [rows that want logits, V], host memory
  size_t logits_rows = 0;   // capacity of `logits` in rows
  std::span<const Tap> taps;
  const CancelFlag* cancel = nullptr;  // polled between layers
  engine::Tracer* tracer = nullptr;

  [[nodiscard]] int64_t rows() const noexcept { return static_cast<int64_t>(positions.size()); }
};

}  // namespace gen::graph

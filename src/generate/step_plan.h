// SPDX-License-Identifier: Apache-2.0
// What sessions want of the model and which of it one step does. Planning is a pure function, so
// the rules of fairness test without threads or a model. Read next: scheduler.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/kv_cache.h"
#include "graph/batch.h"

namespace gen::generate {

/// One sequence's rows in one step: a decode token or a chunk of a prompt. Borrowed by the
/// scheduler until its step has run.
struct StepRequest {
  cache::KvCache* cache = nullptr;
  graph::SequenceState* state = nullptr;
  int32_t adapter = -1;
  std::span<const int32_t> tokens;        // [T]
  int32_t first_position = 0;             // of tokens[0]; the others follow
  std::span<const uint8_t> wants_logits;  // [T]
  float* logits = nullptr;                // [wanted rows, V]
  const CancelFlag* cancel = nullptr;
  int64_t trace_id = 0;  // names the sequence to tracers

  Status status;  // out: OK when the rows are committed, else nothing has changed
  bool done = false;

  [[nodiscard]] int32_t rows() const noexcept { return static_cast<int32_t>(tokens.size()); }
};

/// What a step may hold.
struct StepLimits {
  int32_t max_sequences = 1;
  int32_t max_rows = 512;
};

/// The requests of one step, in the order of their rows in the batch.
struct StepPlan {
  std::vector<StepRequest*> requests;
  int32_t rows = 0;
};

/// Chooses from `waiting` (oldest first). The oldest is always taken, so nobody waits for more than
/// one step per session before it; what room is left goes to single rows (decoding) first, then to
/// chunks that still fit, oldest first within both.
void plan_step(std::span<StepRequest* const> waiting, const StepLimits& limits, StepPlan* plan);

}  // namespace gen::generate

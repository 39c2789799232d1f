// SPDX-License-Identifier: Apache-2.0
// What sessions want of the model and which of it one step does. Planning is a pure function, so
// the rules of fairness test without threads or a model. Read next: scheduler.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "generate/draft/drafter.h"
#include "graph/batch.h"

namespace gen::generate {

using SteadyClock = std::chrono::steady_clock;

/// Who is served first and until when. Priorities only decide who goes into a step that not all
/// fit into; a higher one is first.
struct Urgency {
  int32_t priority = 0;
  SteadyClock::time_point deadline = SteadyClock::time_point::max();
};

class Participant;

/// Something idle that can make room in a pool it shares with what runs: a session between calls.
class Evictable {
 public:
  virtual ~Evictable() = default;
  /// Lets go of what its cache holds, to be computed anew when it is next used. False if it came
  /// into use meanwhile. Called by the leader of a step, who holds the scheduler's mutex.
  virtual bool evict() noexcept = 0;
  /// When it was last in use, in any unit; kNothing while it is in use or evict() would not help.
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
  [[nodiscard]] virtual int64_t last_used() const noexcept = 0;
};

/// One sequence's rows: a decode token, alone or with drafts behind it, or what is left of a
/// prompt. A step may run only the first of them. Borrowed by the scheduler until it is done.
struct StepRequest {
  cache::KvCache* cache = nullptr;
  cache::SequenceState* state = nullptr;
  int32_t adapter = -1;
  std::span<const int32_t> tokens;  // [T]
  /// [T]: the row that each looks back at, -1 for the first; empty: each the one before it.
  std::span<const int32_t> parents;
  int32_t first_position = 0;          // of tokens[0]
  std::span<const int32_t> positions;  // [T]; empty: they count up
  std::span<const uint8_t> wants;      // [T] of graph::Wants
  graph::RowQuery query;               // what comes with what they want
  /// For a single token: drafts are welcome. What a drafter adds in a step become rows behind the
  /// token, and the spans above those of the job; they want what the token does, and there is room
  /// for all of it. Without a drafter rows are added that the model fills by itself. Null: none.
  DraftJob* draft = nullptr;
  const CancelFlag* cancel = nullptr;
  Urgency urgency;
  Participant* participant = nullptr;  // the call it belongs to, or null
  int64_t trace_id = 0;                // names the sequence to tracers
  /// Entries that the cache needs until this is of use, at least rows(): what begins with less
  /// would only have to give it up again.
  int32_t room = 0;

  Status status;      // out: OK when rows have run, else nothing has changed
  int32_t taken = 0;  // out: rows that have run, from the first on; above 0 `plan` is theirs
  /// Out: what the rows were reserved as. Who owns the cache commits what it keeps of them before
  /// it does anything else with it; no step does.
  cache::CachePlan plan;
  cache::StatePlan state_plan;  // of the state, if there is one
  bool evicted = false;  // out: OK, but the cache has been emptied for others; nothing is taken
  bool done = true;      // out: false from submit() until its step is over

  // The scheduler's own.
  int32_t passed_over = 0;  // steps that left it out
  bool running = false;     // in the current step
  bool starved = false;     // the pool had nothing for it in the current step; `status` says so
  SteadyClock::time_point starved_since;  // the first time in a row since an older call got on
  SteadyClock::time_point submitted;      // set if somebody wants to know how long it waits

  [[nodiscard]] int32_t rows() const noexcept { return static_cast<int32_t>(tokens.size()); }
};

/// A request that has been left out this often goes before every priority, unless one says
/// otherwise.
constexpr int32_t kMaxPassedOver = 16;

/// What a step may hold, and how long one may wait for it.
struct StepLimits {
  int32_t max_sequences = 1;
  int32_t max_rows = graph::kStepRows;
  int32_t prompt_rows =
      graph::kStepRows;  // of these, rows of prompts: requests that have more than one
  int32_t max_passed_over = kMaxPassedOver;
  bool deterministic = false;  // graph::Batch
  /// A step waits for its sessions to come back for at most a quarter of what the last one took,
  /// which is soon won back by running them together, between these.
  SteadyClock::duration least_patience = std::chrono::microseconds(50);
  SteadyClock::duration max_patience = std::chrono::milliseconds(5);
};

/// The requests of one step, in the order of their rows in the batch.
struct StepPlan {
  /// Decoding: one row. Verification: one row, and drafts behind it. Prefill: several rows.
  struct Slice {
    StepRequest* request;
    int32_t rows;        // its first ones
    int32_t drafts = 0;  // rows that a drafter may add
  };
  std::vector<Slice> slices;
  std::vector<StepRequest*> order;  // scratch
};

/// Chooses from `waiting` (oldest first). Whoever is first, by priority and then age, is always
/// taken, so that nobody waits for ever. Room for the others goes to single rows (decoding), then
/// to prompts, cut to what `prompt_rows` leaves: a prompt delays a decoding session by no more rows
/// than that a step. Drafts get what is left of `max_rows` then, so they keep nobody waiting.
void plan_step(std::span<StepRequest* const> waiting, const StepLimits& limits, StepPlan* plan);

}  // namespace gen::generate

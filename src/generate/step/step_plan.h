// SPDX-License-Identifier: Apache-2.0
// Requests of the sessions and the plan of one step. Planning is a pure function, so its fairness
// rules are tested without threads or a model. Read next: scheduler.h.
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
#include "model/adapter_registry.h"

namespace gen::generate {

using SteadyClock = std::chrono::steady_clock;

/// Priority and deadline of a call. Priorities matter only if a step cannot hold all requests; the
/// higher one goes first.
struct Urgency {
  int32_t priority = 0;
  SteadyClock::time_point deadline = SteadyClock::time_point::max();
};

class Participant;

/// An idle object that can free blocks of a pool shared with running calls: a session between
/// calls.
class Evictable {
 public:
  virtual ~Evictable() = default;
  /// Frees its cache blocks; the tokens are evaluated again when it is next used. False if it has
  /// come into use. Called by the leader of a step, who holds the scheduler's mutex.
  virtual bool evict() noexcept = 0;
  /// When it was last used, in any unit; kNothing while it is in use or evict() would free nothing.
  static constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
  [[nodiscard]] virtual int64_t last_used() const noexcept = 0;
  /// At most so many positions more are free for others once it is evicted.
  [[nodiscard]] virtual int64_t most_freed() const noexcept = 0;
};

/// Rows of one sequence: a decode token, with or without drafts after it, or the rest of a prompt.
/// A step may run only the first of them. Borrowed by the scheduler until it is done.
struct StepRequest {
  cache::KvCache* cache = nullptr;
  cache::SequenceState* state = nullptr;
  const model::AdapterMix* adapters = nullptr;  // of all rows; null: none
  std::span<const int32_t> tokens;              // [T]
  /// [T]: the parent row of each row, -1 for the first; empty: each row's parent is the row before.
  std::span<const int32_t> parents;
  int32_t first_position = 0;          // of tokens[0]
  std::span<const int32_t> positions;  // [T]; empty: consecutive
  std::span<const uint8_t> wants;      // [T] of graph::Wants
  graph::RowQuery query;               // what the rows return, and where
  /// For a single token: drafts may follow. The rows that a drafter adds in a step come after the
  /// token, and the spans above become those of the job; they return what the token does, and there
  /// is memory for all of it. Without a drafter, rows are added that the model fills itself. Null:
  /// none.
  DraftJob* draft = nullptr;
  DraftState* observer = nullptr;  // is given the rows that have run (Drafter::observe), or null
  /// The chunk's rows from this one on are kept beside the state, so that snapshots can be made
  /// before and between them; by default none.
  int32_t kept_from = std::numeric_limits<int32_t>::max();
  const CancelFlag* cancel = nullptr;
  Urgency urgency;
  Participant* participant = nullptr;  // the call it belongs to, or null
  int64_t trace_id = 0;                // identifies the sequence to tracers
  /// Without a free block it fails with kPoolExhausted at once: its owner leaves a block that it
  /// shares, and needs no copy then.
  bool leaves_block = false;
  /// Cache entries needed until the evaluation is complete, at least rows(). Starting with fewer
  /// would only lead to eviction.
  int32_t room = 0;

  Status status;      // out: OK when rows have run, otherwise nothing has changed
  int32_t taken = 0;  // out: number of first rows that have run; if above 0, `plan` is theirs
  /// Out: the plan of the rows. The owner of the cache commits the rows that it keeps before any
  /// other use of the cache; no step does.
  cache::CachePlan plan;
  cache::StatePlan state_plan;  // plan of the state, if there is one
  bool evicted = false;         // out: OK, but the cache was emptied for others; `taken` is 0
  bool done = true;             // out: false from submit() until its step is over

  // Used by the scheduler.
  int32_t passed_over = 0;  // steps that left it out
  bool running = false;     // in the current step
  bool starved = false;     // the pool had no block for it in the current step; see `status`
  SteadyClock::time_point starved_since;  // reset by progress of an older call
  SteadyClock::time_point submitted;      // set if its waiting time is measured

  [[nodiscard]] int32_t rows() const noexcept { return static_cast<int32_t>(tokens.size()); }
};

/// Default number of times that a request may be left out before it goes before every priority.
constexpr int32_t kMaxPassedOver = 16;

constexpr SteadyClock::duration kMaxStarving = std::chrono::seconds(1);
constexpr SteadyClock::duration kLeastStarving = std::chrono::milliseconds(20);
constexpr SteadyClock::duration kMaxYielding = std::chrono::milliseconds(500);

/// Limits on the size of a step and on waiting for it.
struct StepLimits {
  int32_t max_sequences = 1;
  int32_t max_rows = graph::kStepRows;
  int32_t prompt_rows =
      graph::kStepRows;  // of these, rows of prompts: requests that have more than one
  int32_t max_passed_over = kMaxPassedOver;
  bool deterministic = false;  // graph::Batch
  /// Bounds on how long a step waits for its sessions to return. Within them it waits for a quarter
  /// of the last step's duration, which running them together soon regains.
  SteadyClock::duration least_patience = std::chrono::microseconds(50);
  SteadyClock::duration max_patience = std::chrono::milliseconds(5);
  /// How long the oldest request waits for blocks held by calls between two steps, counted from the
  /// last progress of an older call; and how long if no such call exists: a session may be in use
  /// for a moment or about to be freed.
  SteadyClock::duration max_starving = kMaxStarving;
  SteadyClock::duration least_starving = kLeastStarving;
  /// How long a request that starts leaves those behind it their blocks, if all that it may take
  /// would not be enough. Then it takes what there is, and none behind it starts.
  SteadyClock::duration max_yielding = kMaxYielding;
};

/// The requests of one step, in the order of their rows in the batch.
struct StepPlan {
  /// Decoding: one row. Verification: one row with drafts after it. Prefill: several rows.
  struct Slice {
    StepRequest* request;
    int32_t rows;        // number of its first rows in the step
    int32_t drafts = 0;  // rows that a drafter may add
  };
  std::vector<Slice> slices;
  std::vector<StepRequest*> order;  // scratch
};

/// Chooses from `waiting` (oldest first). The first request by priority, then age, is always taken,
/// so none waits for ever. The remaining room goes to single rows (decoding), then to prompts, cut
/// to what `prompt_rows` leaves: so a prompt delays a decoding session by at most that many rows
/// per step. Drafts get what is then left of `max_rows`, so they delay no request.
void plan_step(std::span<StepRequest* const> waiting, const StepLimits& limits, StepPlan* plan);

}  // namespace gen::generate

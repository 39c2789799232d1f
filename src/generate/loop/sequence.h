// SPDX-License-Identifier: Apache-2.0
// Sequence: the tokens of a session and the cache of their keys and values. The cache always covers
// a prefix: the first evaluated() tokens; the rest is pending. That number is read from the cache
// alone, so the two cannot disagree. A sampled token is pending until the next step needs it. Not
// synchronised; the session guards it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
#include "cache/state/snapshot_list.h"
#include "cache/state/state_file.h"
#include "generate/step/step_plan.h"
#include "graph/batch.h"

namespace gen::cache {
class PrefixCache;
}  // namespace gen::cache

namespace gen::generate {

class Generator;

class Sequence {
 public:
  /// `generator` must outlive the sequence.
  static Result<Sequence> create(const Generator& generator);

  [[nodiscard]] std::span<const int32_t> tokens() const noexcept { return tokens_; }
  [[nodiscard]] int32_t length() const noexcept { return static_cast<int32_t>(tokens_.size()); }
  /// 0 if the cache must be made anew.
  [[nodiscard]] int32_t evaluated() const noexcept { return stale_ ? 0 : cache_->length(); }
  [[nodiscard]] const cache::KvCache& cache() const noexcept { return *cache_; }
  /// Null for a model without snapshots of its state.
  [[nodiscard]] cache::StateSnapshots* snapshots() const noexcept {
    return state_ != nullptr ? state_->snapshots() : nullptr;
  }

  /// Adds pending tokens. Changes nothing on failure: kOutOfRange for a token outside the
  /// vocabulary, kContextFull naming both numbers. With `make_room` it calls make_room() first;
  /// tokens dropped by that stay dropped.
  Status extend(std::span<const int32_t> tokens, bool make_room = false);
  /// For a generator that shifts contexts: if `n` more tokens do not fit, drops the oldest tokens
  /// after the kept ones, at least half of them. The cache entries after those are shifted if the
  /// cache can, otherwise their tokens become pending. kContextFull if the kept tokens leave too
  /// little room; kOutOfMemory or std::bad_alloc. A failure changes nothing.
  Status make_room(size_t n);
  /// What rows have from the next evaluation on; null: no adapters. An activated adapter is for the
  /// rows from the last occurrence of its invocation tokens in the present text on. The evaluation
  /// drops entries that others made and evaluates their tokens again.
  void set_adapters(std::shared_ptr<const model::AdapterMix> adapters) noexcept;
  [[nodiscard]] const std::shared_ptr<const model::AdapterMix>& adapters() const noexcept {
    return adapters_;
  }
  /// Drops entries that other adapters made than those of the next evaluation, which does the same.
  void settle_adapters() noexcept;
  /// Raises the number of first tokens that make_room() keeps above the generator's. Marks from
  /// before a shift are invalid afterwards.
  void set_keep(int32_t n) noexcept { more_kept_ = n; }
  /// True if cache entries after dropped tokens are kept and shifted.
  [[nodiscard]] bool shifts() const noexcept;
  /// Tokens dropped so far.
  [[nodiscard]] int64_t dropped() const noexcept { return dropped_; }
  /// Reserves memory for `more` tokens, so that push() does not allocate.
  void reserve(int32_t more);
  /// Whether the model has a state of which snapshots are kept. Constant.
  [[nodiscard]] bool keeps_snapshots() const noexcept { return snapshot_budget_ > 0; }
  /// Whether it keeps those, or copies of windows. Constant.
  [[nodiscard]] bool keeps_points() const noexcept { return keeps_snapshots() || keeps_windows_; }
  /// Where messages begin and end among the tokens that the next evaluation adds, ascending: if the
  /// sequence keeps points there will be some there. Until that evaluation ends.
  void set_borders(std::vector<int32_t> borders) noexcept { borders_ = std::move(borders); }
  /// Keeps a point after what is evaluated, if any are kept, so that going back to here costs
  /// nothing. Without memory there is none.
  void remember_here(cache::SnapshotPlace place) noexcept;
  /// Adds one sampled token; the context must have room.
  void push(int32_t token) { tokens_.push_back(token); }

  /// What an evaluation writes and what may stop it.
  struct Pass {
    /// Rows in [results_from, end) return what `query` asks, if anything.
    int32_t results_from = 0;
    graph::RowQuery query;
    const CancelFlag* cancel = nullptr;      // checked before every chunk and inside the model
    std::atomic<float>* progress = nullptr;  // share done, 0 to 1
    Urgency urgency;
    Participant* participant = nullptr;  // the call that it belongs to, or null
    int32_t count_from = 0;              // reused() counts tokens from this position on
    /// If a single row with results is left, drafts may follow it, at most draft->most; there is
    /// memory for their results. Null: none.
    DraftJob* draft = nullptr;
    DraftState* observer = nullptr;  // StepRequest
    /// Nothing is reused, and the state takes in all rows.
    bool plain = false;
  };
  /// Evaluates pending tokens up to `end`, chunk by chunk. Each chunk that ran is committed here
  /// and nowhere else. Cuts the cache first if results are requested for rows that it already
  /// holds. With a prefix cache it reuses blocks for tokens without results and adds every full
  /// block to it. Errors: kCancelled, those of the cache and the model; chunks before the failure
  /// stay.
  Status evaluate(int32_t end, const Pass& pass);

  /// The same in steps, for a caller with other work meanwhile: start(); then, until done(), let
  /// the scheduler run next() and call take(). From next() to take() or withdraw() the sequence
  /// must neither move nor change.
  Status start(int32_t end, const Pass& pass);
  [[nodiscard]] bool done() const noexcept { return open_ || evaluated() >= end_; }
  StepRequest* next();
  Status take();
  /// After an evaluation with drafts their rows have run but do not count as evaluated. This keeps
  /// the rows of a path through the tree, row 0 first, whose tokens the sequence has. Does nothing
  /// if no drafts are open. It must come before any other change of the sequence.
  void keep(std::span<const int32_t> path) noexcept;
  /// Ends the evaluation: takes a pending request back from the scheduler; if a step has run it,
  /// its rows are kept. Does nothing if none is pending.
  void withdraw() noexcept;
  /// Tokens of this evaluation that came from the prefix cache.
  [[nodiscard]] int32_t reused() const noexcept { return reused_; }

  /// A length to rewind to.
  struct Mark {
    int32_t length = 0;
    int32_t evaluated = 0;
    int64_t dropped = 0;
  };
  [[nodiscard]] Mark mark() const noexcept { return {length(), evaluated(), dropped_}; }
  /// The mark adjusted for the tokens dropped since.
  [[nodiscard]] Mark moved(const Mark& mark) const noexcept;
  /// Returns the cache's blocks to their pool; all tokens become pending. A state stays until the
  /// sequence is used again. False if there is no pool or nothing to return.
  bool evict() noexcept;
  [[nodiscard]] bool evictable() const noexcept;

  /// Drops everything after the mark. Cannot fail: if the cache cannot be cut, the tokens are
  /// evaluated again in a new cache when they are needed.
  void rewind(const Mark& mark) noexcept;
  /// Keeps the first `n` tokens. kInvalidArgument for n < 0; kUnsupported if the model cannot be
  /// cut, except to 0.
  Status truncate(int32_t n);
  /// A new sequence with the same tokens and a copy of the cache that shares blocks if it can.
  /// kUnsupported for a model with a state that cannot be copied; kOutOfMemory and the like.
  [[nodiscard]] Result<Sequence> fork() const;
  /// Writes tokens, cache, the identity of the model and what `drafts` (may be null) keeps.
  /// kUnsupported for a model with a sequence state.
  Status save(cache::StateWriter& to, const DraftState* drafts) const;
  /// Restores what save() wrote; the sequence must be empty. `*drafts` receives what the
  /// generator's drafter kept, or null. Changes nothing on failure: kFormat
  /// for damaged data; kInvalidArgument for another model or another kind of cache; kContextFull;
  /// errors of the cache.
  Status restore(cache::StateReader& from, std::unique_ptr<DraftState>* drafts);
  // sequence_points.cpp: the state as somebody else sees it.
  /// What layers the model's state has; none for a model without a state. Constant.
  [[nodiscard]] std::vector<cache::StateFacts> state_facts() const;
  [[nodiscard]] bool has_state() const noexcept { return state_ != nullptr; }
  /// The dims of a layer of the state after the evaluated tokens and, unless `to` is null, its
  /// numbers. A state that keeps rows beside it takes them in first, which runs them again, in a
  /// copy of the cache: `participant` is the call that waits for it. Tokens and cache stay as they
  /// are, but for rows that other adapters made than the sequence has: they are made anew.
  /// kOutOfRange for another layer or a `capacity` that is too small; errors of fork(), of the
  /// model and its functions. After a failure `to` is untouched.
  Status read_state(int32_t layer, std::array<int32_t, 3>* dims, float* to, size_t capacity,
                    Participant* participant);
  /// Which adapters made a sequence's entries. Those of rows before `from` are the base's.
  struct Adapted {
    uint64_t by = 0;  // identity of the mix; 0: none
    int32_t from = 0;

    /// The first row that a mix is part of.
    [[nodiscard]] int32_t first() const noexcept {
      return by != 0 ? from : std::numeric_limits<int32_t>::max();
    }
    /// The number of first rows that are the same by both.
    [[nodiscard]] int32_t common(const Adapted& other) const noexcept;
  };
  /// What a sequence held, and its state then.
  struct Point {
    std::vector<int32_t> tokens;
    int32_t evaluated = 0;  // the first ones of them
    bool genuine = true;    // the state is that of a fresh evaluation
    Adapted adapted;
    std::unique_ptr<cache::SequenceState> state;
  };
  /// kUnsupported for a state that cannot be copied; kOutOfMemory.
  [[nodiscard]] Result<Point> point() const;
  /// Makes the sequence hold what it held at a point, which stays. Nothing is evaluated: if the
  /// cache has fewer of the point's tokens, the others are pending. kState if the evaluated tokens
  /// of the point are not the first ones of the sequence, and if other adapters made its state. A
  /// failure changes nothing.
  Status go_back(const Point& point);
  /// Drops pending tokens, but keeps at least `n` tokens.
  void drop_pending(int32_t n) noexcept;

 private:
  [[nodiscard]] int32_t first_kept() const noexcept;
  Sequence(const Generator* generator, std::unique_ptr<cache::KvCache> cache,
           std::unique_ptr<cache::SequenceState> state) noexcept;
  void forget(int32_t n) noexcept;
  /// Commits rows that have run to cache and state. What fails is made anew later.
  void commit(cache::Kept kept) noexcept;
  Status cut_to(int32_t n);
  Status settle_state(Participant* participant);
  Status rebuild();
  /// True if the blocks were evicted while the state remains; it is useless without them.
  [[nodiscard]] bool state_is_left() const noexcept;
  /// Resets the state in that case.
  Status renew_state();
  /// Whether a short window of the row after `left` evaluated tokens has some of the first ones.
  [[nodiscard]] bool windows_reach(int32_t first, int32_t left) const noexcept;
  Status drop(int32_t first, int32_t n);
  /// End of the tokens without results.
  [[nodiscard]] int32_t quiet_end() const noexcept {
    return pass_.query.wants() != graph::kWantsNothing ? std::min(end_, pass_.results_from) : end_;
  }
  /// What keys and values depend on besides the tokens.
  [[nodiscard]] uint64_t prefix_domain() const noexcept;
  /// Finds the first row that the adapters are for.
  void find_invocation() noexcept;
  /// The number of first ones of `n` tokens that other sequences may share entries of. An activated
  /// adapter shares those of the base before it.
  [[nodiscard]] int32_t shareable(int32_t n) const noexcept {
    return made_.by != 0 && made_.from > 0 ? std::min(n, made_.from) : n;
  }
  /// The prefix cache, if there is one and this sequence can share with it: its cache uses blocks,
  /// and its state supports snapshots. Otherwise null.
  [[nodiscard]] cache::PrefixCache* prefixes() const noexcept;
  /// Continues from the blocks that the prefix cache has for the tokens before `end`, if these are
  /// more than the sequence has; with a state, from a place that also has a snapshot. On a failure
  /// nothing is reused.
  void reuse(int32_t end) noexcept;
  /// Adds the full blocks to the prefix cache.
  void remember() noexcept;
  /// A state of the model, with the budget of its snapshots; null for a model without.
  static Result<std::unique_ptr<cache::SequenceState>> new_state(const Generator& generator);

  // sequence_snapshots.cpp: where snapshots are made, and windows are kept.
  /// A place for one: in the state's list, if it is listed, and in the prefix cache, if it is the
  /// end of a block.
  struct Stop {
    int32_t at = 0;
    bool listed = false;
    cache::SnapshotPlace place = cache::SnapshotPlace::kPlain;
  };
  /// Chooses those of this evaluation.
  void choose_stops();
  /// The first one behind `at`: chosen, or a multiple of what the options say, or the block border
  /// where a known text parts from this one.
  [[nodiscard]] Stop stop_after(int32_t at) const noexcept;
  /// As many last rows as a pass may keep beside the state, so that it need not end at each stop.
  [[nodiscard]] int32_t most_kept() const noexcept;
  /// Where a pass that starts at `at` must end. `kept_from` is the row from which on they are kept,
  /// unless it is left unchanged.
  [[nodiscard]] int32_t pass_end(int32_t at, int32_t* kept_from) const noexcept;
  /// Keeps the windows of the rows since `before`.
  void remember_windows(int32_t before) noexcept;
  /// Takes the snapshots of the rows since `before`.
  void remember_states(int32_t before) noexcept;
  /// Adds the blocks of the first `n` tokens to the prefix cache, and the state after them; it may
  /// be one that the text passes (cache::SnapshotTerms). std::bad_alloc.
  void share_state(cache::PrefixCache& prefixes, int32_t n, bool passes);
  /// Cuts back to the start of a block that others hold, such as the prefix cache, or further if
  /// the state requires it: with no block left to copy it to, the row is written to one of its own.
  void leave_shared_block() noexcept;
  [[nodiscard]] Status check_savable() const;
  Result<std::unique_ptr<cache::SequenceState>> fork_state() const;
  static Status cannot_be_copied();
  /// Reads the tokens of a saved state and how many of them its cache holds.
  Result<std::vector<int32_t>> read_tokens(cache::StateReader& from, int32_t* evaluated) const;

  const Generator* generator_;
  std::unique_ptr<cache::KvCache> cache_;
  std::unique_ptr<cache::SequenceState> state_;
  std::vector<int32_t> tokens_;
  std::shared_ptr<const model::AdapterMix> adapters_;  // set by set_adapters()
  int32_t adapted_from_ = 0;      // the first row that they are for, or beyond all rows
  Adapted made_;                  // what made the entries
  int32_t remembered_ = 0;        // evaluated blocks that were given to the prefix cache
  int32_t parting_ = 0;           // end of the blocks that it has but perhaps without a snapshot
  bool genuine_ = true;           // the cache equals a fresh evaluation: not shifted, not loaded
  int64_t trace_id_ = 0;          // identifies the cache's contents to tracers
  bool stale_ = false;            // the cache does not match the tokens and must be made anew
  int64_t dropped_ = 0;           // tokens dropped by make_room()
  int32_t more_kept_ = 0;         // set by set_keep()
  size_t snapshot_budget_ = 0;    // bytes; 0: no snapshots
  bool keeps_windows_ = false;    // KvCache::wants_points
  std::vector<int32_t> borders_;  // set by set_borders()
  int32_t passing_ = 0;           // where the prefix cache has a snapshot that the text passes

  // The current evaluation.
  Pass pass_;
  std::vector<Stop> stops_;  // ascending
  int32_t begin_ = 0;        // where it started
  int32_t end_ = 0;
  int32_t reused_ = 0;
  int32_t most_reused_ = 0;     // after a cut to the start of a block, for lack of a free one
  bool evicted_ = false;        // evicted for other sequences during the evaluation
  StepRequest request_;         // the chunk returned by next()
  bool out_ = false;            // that request is pending
  bool open_ = false;           // draft rows have run; keep() has not chosen among them yet
  std::vector<uint8_t> wants_;  // [rows of a chunk]
};

/// The end of a session's last generating call; the next prompt begins after it.
struct Answered {
  Sequence::Mark mark;       // contents of the session at that time
  int32_t cached_since = 0;  // tokens appended since that a prefix cache had
  /// Text held back as a possible stop string when a callback or a closed stream ended the call. No
  /// event had it; a call that continues there emits it first.
  std::string unsaid = {};
};

}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Sequence: the tokens that a session holds and the cache that holds what the model made of them.
// The cache always covers a prefix: the first evaluated() tokens are in it, the rest is pending.
// How many these are is read from the cache alone, so that nothing can disagree with it. A sampled
// token is pending until the next step needs it. Not synchronised; the session guards it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "cache/sequence/kv_cache.h"
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
  /// A cache that is to be made anew holds none of them.
  [[nodiscard]] int32_t evaluated() const noexcept { return stale_ ? 0 : cache_->length(); }
  [[nodiscard]] const cache::KvCache& cache() const noexcept { return *cache_; }

  /// Adds pending tokens. Changes nothing on failure: kOutOfRange for a token outside the
  /// vocabulary, kContextFull naming both numbers. With `make_room`, make_room() comes first, and
  /// what it drops stays dropped.
  Status extend(std::span<const int32_t> tokens, bool make_room = false);
  /// For a generator that shifts contexts: if `n` more tokens do not fit, drops the oldest after
  /// the kept ones, half of them or more if it takes more. What the cache holds of those behind
  /// moves up where it can shift, else it is pending. kContextFull where the kept tokens leave too
  /// little, and kOutOfMemory or std::bad_alloc; then nothing has changed.
  Status make_room(size_t n);
  /// First tokens that make_room() keeps, if that is more than the generator says. Marks of before
  /// a shift are then not to be used.
  void set_keep(int32_t n) noexcept { more_kept_ = n; }
  /// Entries behind dropped tokens stay, moved.
  [[nodiscard]] bool shifts() const noexcept;
  /// Tokens dropped so far.
  [[nodiscard]] int64_t dropped() const noexcept { return dropped_; }
  /// Makes room for `more` tokens beforehand, so that push() does not allocate.
  void reserve(int32_t more);
  /// Adds one sampled token; the context must have room.
  void push(int32_t token) { tokens_.push_back(token); }

  /// What a pass writes and who may stop it.
  struct Pass {
    /// Rows in [results_from, end) answer with what the query wants, if anything.
    int32_t results_from = 0;
    graph::RowQuery query;
    const CancelFlag* cancel = nullptr;      // polled before every chunk and inside the model
    std::atomic<float>* progress = nullptr;  // share done, 0 to 1
    Urgency urgency;
    Participant* participant = nullptr;  // the call it is for, or null
    int32_t count_from = 0;              // reused() counts tokens from here on
    /// Where a single row is left and it writes something: drafts that may come behind it, at most
    /// draft->most; there is room for what they write. Null: none.
    DraftJob* draft = nullptr;
  };
  /// Evaluates pending tokens up to `end`, chunk by chunk; each chunk that ran is committed, here
  /// and by nobody else. Steps the cache back first if something is wanted of rows that it already
  /// holds. Where the generator has a prefix cache, takes from it what it has of tokens of which
  /// nothing is wanted, and gives it every block that is full. Errors: kCancelled, what the cache
  /// or the model says; chunks before the failure stay.
  Status evaluate(int32_t end, const Pass& pass);

  /// The same in parts, for who has other things to do meanwhile: start, then, until done(), have
  /// the scheduler run next() and account for it with take(). The sequence stays where it is and as
  /// it is while a request is out: from next() until take() or withdraw().
  Status start(int32_t end, const Pass& pass);
  [[nodiscard]] bool done() const noexcept { return open_ || evaluated() >= end_; }
  StepRequest* next();
  Status take();
  /// After an evaluation that had drafts their rows have run, but none is evaluated; this keeps
  /// those of a path through the tree, row 0 first, whose tokens the sequence has. Nothing happens
  /// where none are left from it. Whatever changes the sequence in another way comes after it.
  void keep(std::span<const int32_t> path) noexcept;
  /// Ends the evaluation: takes a request that is out back from the scheduler, and accounts for it
  /// where a step has run it all the same. Nothing happens where none is out.
  void withdraw() noexcept;
  /// Tokens of this evaluation that the prefix cache had.
  [[nodiscard]] int32_t reused() const noexcept { return reused_; }

  /// A point to come back to.
  struct Mark {
    int32_t length = 0;
    int32_t evaluated = 0;
    int64_t dropped = 0;
  };
  [[nodiscard]] Mark mark() const noexcept { return {length(), evaluated(), dropped_}; }
  /// The same point after what was dropped since.
  [[nodiscard]] Mark moved(const Mark& mark) const noexcept;
  /// Gives the cache's blocks back to the pool they are from; all tokens are then pending. A state
  /// stays as it is until the sequence goes on. False where there is no pool, or nothing to give.
  bool evict() noexcept;
  [[nodiscard]] bool evictable() const noexcept;

  /// Forgets everything after the mark. Cannot fail: entries that the cache cannot let go are
  /// evaluated again, in a new cache, when they are next needed.
  void rewind(const Mark& mark) noexcept;
  /// Keeps the first `n` tokens. kInvalidArgument for n < 0, kUnsupported where the model cannot go
  /// back, except to 0.
  Status truncate(int32_t n);
  /// A sequence of its own with the same tokens and cache, which shares blocks where it can.
  /// kUnsupported for a model with a state that cannot be copied; kOutOfMemory and the like.
  [[nodiscard]] Result<Sequence> fork() const;
  /// Writes tokens and cache, and which model they are of. kUnsupported for a model with a
  /// state of its own.
  Status save(cache::StateWriter& to) const;
  /// Takes what save() wrote into an empty sequence. Changes nothing on failure: kFormat for
  /// damage; kInvalidArgument for another model's or another kind of cache's; kContextFull; what
  /// the cache says.
  Status restore(cache::StateReader& from);
  /// Cuts tokens only as far as they are evaluated, at least to `n`.
  void drop_pending(int32_t n) noexcept;

 private:
  [[nodiscard]] int32_t first_kept() const noexcept;
  Sequence(const Generator* generator, std::unique_ptr<cache::KvCache> cache,
           std::unique_ptr<cache::SequenceState> state) noexcept;
  void forget(int32_t n) noexcept;
  /// Keeps rows that have run, in cache and state; what is lost on the way is made anew.
  void commit(cache::Kept kept) noexcept;
  Status cut_to(int32_t n);
  Status rebuild();
  /// Whether the blocks were taken and the state is still there, and of no use without them.
  [[nodiscard]] bool state_is_left() const noexcept;
  /// Begins the state anew then.
  Status renew_state();
  Status drop(int32_t first, int32_t n);
  /// Where the tokens end whose logits nobody wants.
  [[nodiscard]] int32_t quiet_end() const noexcept {
    return pass_.query.wants() != graph::kWantsNothing ? std::min(end_, pass_.results_from) : end_;
  }
  /// The prefix cache, if there is one and this sequence can go on from what others had, and they
  /// from what it has: its cache has blocks, and a state snapshots. Else null.
  [[nodiscard]] cache::PrefixCache* prefixes() const noexcept;
  /// Goes on from the blocks that the prefix cache has of the tokens before `end`, if that is more
  /// than there is; with a state, from where there is a snapshot of it, too. What fails is not
  /// taken.
  void reuse(int32_t end) noexcept;
  /// Gives it the blocks that are full, and what the state is at the end of one.
  void remember() noexcept;
  /// Where a pass from `at` on is to end. For a state that is where others may want to begin: at
  /// the border where a text that is known parts from this one, and at the last one of tokens of
  /// which nothing is wanted.
  [[nodiscard]] int32_t pass_end(int32_t at) const noexcept;
  /// A point to which the state can go back, at the end of a prompt.
  void remember_state() noexcept;
  /// Steps back to the beginning of a block that it shares with the prefix cache, or as far as a
  /// state does, so that the block may go if there is no other left to copy it to. False if there
  /// is none.
  bool leave_shared_block() noexcept;
  [[nodiscard]] Status check_savable() const;
  Result<std::unique_ptr<cache::SequenceState>> fork_state() const;
  /// The tokens of a state and how many of them its cache holds.
  Result<std::vector<int32_t>> read_tokens(cache::StateReader& from, int32_t* evaluated) const;

  const Generator* generator_;
  std::unique_ptr<cache::KvCache> cache_;
  std::unique_ptr<cache::SequenceState> state_;
  std::vector<int32_t> tokens_;
  int32_t remembered_ = 0;  // evaluated blocks that the prefix cache was given
  int32_t parting_ = 0;     // up to where it has the blocks but may have no snapshot
  bool genuine_ = true;     // evaluating the tokens would give what it holds: not moved, not loaded
  int64_t trace_id_ = 0;    // names what the cache holds to tracers
  bool stale_ = false;      // the cache holds something else and must be made anew
  int64_t dropped_ = 0;     // tokens that make_room() took away
  int32_t more_kept_ = 0;   // of set_keep()

  // The evaluation under way.
  Pass pass_;
  int32_t begin_ = 0;  // where it started
  int32_t end_ = 0;
  int32_t reused_ = 0;
  bool stepped_back_ = false;   // to the beginning of a block, for lack of another
  bool evicted_ = false;        // on the way, for others
  StepRequest request_;         // the chunk that next() gave
  bool out_ = false;            // it has not been accounted for
  bool open_ = false;           // its rows have run, which of them are kept is open
  std::vector<uint8_t> wants_;  // [rows of a chunk]
};

/// What a session's last generating call has answered: its prompt begins behind that.
struct Answered {
  Sequence::Mark mark;       // what the session held at its end
  int32_t cached_since = 0;  // of the tokens appended since, what a prefix cache had
  /// Text at its end that was held back as a possible stop string when a callback or a closed
  /// stream ended it. No piece had it; a call that goes on from there says it first.
  std::string unsaid = {};
};

}  // namespace gen::generate

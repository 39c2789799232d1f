// SPDX-License-Identifier: Apache-2.0
// Drafts: cheap guesses at the next tokens of a text, so that one pass of the model verifies
// several. The token of a row is always sampled from that row's logits, and the next row is used
// only if it drafted that token: drafts never change a result, whatever a drafter returns. A new
// way of drafting is a Drafter in a file of its own that GeneratorOptions::drafter holds; the
// library's drafters are beside this file. Read next: generate/loop/draft_controller.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/sequence/kv_cache.h"
#include "generate/draft/draft_policy.h"

namespace gen::grammar {
class Matcher;
}  // namespace gen::grammar

namespace gen::cache {
class StateWriter;
}  // namespace gen::cache

namespace gen::generate {

struct SavedHead;

/// Most rows of a tree, including the first.
constexpr int32_t kMaxDraftRows = cache::kMaxTreeRows;
/// Limits of a run of steps without the host (see StepRunner): the number of steps, and their
/// seconds; a single step may take longer. Longer runs would save little and would delay new and
/// cancelled calls.
constexpr int32_t kMaxMultiSteps = 4;
constexpr double kMaxMultiStepSeconds = 0.01;

/// Row 0 is the pending token, the last one of the text. Every other row drafts the token after its
/// parent, an earlier row. A tree in which each row's parent is the row before it is a chain.
class DraftTree {
 public:
  /// Reserves memory for `rows` rows; without it add() may throw std::bad_alloc.
  void reserve(int32_t rows);
  /// Resets the tree to the pending token.
  void begin(int32_t pending);
  /// Adds a row and returns its index. `grade`, below kDraftGrades, is the drafter's confidence
  /// class: tokens of one grade are accepted about equally often.
  int32_t add(int32_t token, int32_t parent, int32_t grade = 0);
  /// Sets the token of a row.
  void set(int32_t row, int32_t token) noexcept { tokens_[static_cast<size_t>(row)] = token; }
  /// Keeps the first `rows` rows.
  void cut(int32_t rows) noexcept;

  [[nodiscard]] int32_t rows() const noexcept { return static_cast<int32_t>(tokens_.size()); }
  [[nodiscard]] std::span<const int32_t> tokens() const noexcept { return tokens_; }
  /// The parent of each row; -1 for row 0.
  [[nodiscard]] std::span<const int32_t> parents() const noexcept { return parents_; }
  [[nodiscard]] std::span<const uint8_t> grades() const noexcept { return grades_; }
  /// The first child of `row` with this token, or -1.
  [[nodiscard]] int32_t child(int32_t row, int32_t token) const noexcept;
  [[nodiscard]] bool is_chain() const noexcept;
  /// Number of leading rows that are valid: tokens below `vocab`, parents before their children
  /// and, for a `chain`, each parent the row before.
  [[nodiscard]] int32_t valid_rows(int32_t vocab, bool chain) const noexcept;

 private:
  std::vector<int32_t> tokens_;
  std::vector<int32_t> parents_;
  std::vector<uint8_t> grades_;
};

/// What a drafter keeps of one session. A call takes it from its session and returns it. It is not
/// told of changes to the text (except forks): each job has the whole text, and the state finds out
/// how much of what it holds still matches. So truncating, resetting, loading or shifting a session
/// needs no call here.
class DraftState {
 public:
  virtual ~DraftState() = default;
  /// The rows of `path` of the last proposal, from row 0 on, were accepted. After them the model
  /// sampled another token, or the text ended.
  virtual void accepted(std::span<const int32_t> /*path*/) noexcept {}
  /// Of the rows of a tree that observe() was given last, those of `path`, from row 0 on, are of
  /// the text. Only the first call after observe() counts. Without one, row 0 is.
  virtual void settle(std::span<const int32_t> /*path*/) noexcept {}
  /// Writes what Drafter::restore needs with the session's text; nothing by default.
  virtual Status save(std::span<const int32_t> /*text*/, cache::StateWriter& /*to*/) const {
    return {};
  }
  /// A call has ended with this text.
  virtual void ended(std::span<const int32_t> /*text*/) noexcept {}
  /// The caches that it has by now, for memory figures.
  [[nodiscard]] virtual std::vector<const cache::KvCache*> own_caches() const { return {}; }
  /// The state for a fork of the session, which begins with the same text; null: it begins empty.
  /// May throw std::bad_alloc.
  [[nodiscard]] virtual std::unique_ptr<DraftState> fork() const { return nullptr; }
};

class DraftDraw;

/// The draft of one sequence. Its owner fills it in and keeps it until the step is over.
struct DraftJob {
  DraftState* state = nullptr;      // null without a drafter: several steps run, see StepRunner
  std::span<const int32_t> tokens;  // the text, including its pending token
  /// The cache of the text, for drafters that read it. It has all rows but the pending one's. Of
  /// what changes a cache they may call plan(0) and what reading needs. Null for models without
  /// one.
  cache::KvCache* cache = nullptr;
  int32_t most = 0;                // most rows to add; a step may lower it
  bool branches = false;           // rows may have several children
  std::span<const int32_t> stops;  // tokens that end the text; see ends_here()
  /// The grammar state of the text, or null. A drafter may accept tokens with it and takes them
  /// back before it returns.
  grammar::Matcher* matcher = nullptr;
  /// How the call samples, for drafts that are sampled as well; null: the call is greedy.
  DraftDraw* draw = nullptr;
  DraftTree tree;  // in: the pending token; out: with the draft tokens

  int32_t failures = 0;  // out: failures of the drafter, for metrics
  DraftRecord record;    // statistics, used by the planner and the call

  // Derived from the tree for the step.
  std::vector<int32_t> positions;
  std::vector<uint8_t> wants;
};

/// The token ends the text at the job's matcher state, or at any place without a matcher. No
/// matcher accepts such a token, and nothing follows it.
bool ends_here(const DraftJob& job, int32_t token);

/// Cuts a chain at the first token that the job's grammar does not allow, and after a token that
/// ends the text. Trees are left alone. Tokens that the grammar's limits leave undecided are cut.
void cut_to_rule(DraftJob* job);

/// Rows of one sequence that a step has run, and the hidden states that a drafter asked for.
struct ObservedRows {
  DraftState* state = nullptr;
  std::span<const int32_t> tokens;         // [T]
  int32_t first_position = 0;              // of the first row in the text
  bool drafted = false;                    // all but the first are a tree of drafts; see settle()
  std::span<const float* const> features;  // by tap: [T, D] of the model
};

/// A drafter looks up, proposes, or does both. Threads: the leader of a step calls look_up() and
/// propose(), one at a time and without a lock; begin() may be called from any thread.
class Drafter {
 public:
  virtual ~Drafter() = default;
  /// Most rows that it adds to one pending token; below kMaxDraftRows.
  [[nodiscard]] virtual int32_t max_rows() const noexcept = 0;
  /// Most rows that propose() adds; 0: none.
  [[nodiscard]] virtual int32_t max_proposed() const noexcept { return max_rows(); }
  /// Called for the first call of a session. On a failure, std::bad_alloc or null, the call runs
  /// without drafts.
  virtual std::unique_ptr<DraftState> begin() = 0;
  /// The state of a saved session with this text; null if it is not this drafter's. Any thread.
  virtual Result<std::unique_ptr<DraftState>> restore(std::span<const int32_t> /*text*/,
                                                      const SavedHead& /*saved*/) {
    return std::unique_ptr<DraftState>();
  }
  /// Adds drafts of negligible cost to the trees of all jobs of a step, before the step decides how
  /// many rows it verifies. If it throws, the step uses no drafts of it; the same holds for
  /// propose().
  virtual void look_up(std::span<DraftJob* const> /*jobs*/) {}
  /// Adds drafts to the jobs selected by the step for which look_up() found nothing.
  virtual void propose(std::span<DraftJob* const> /*jobs*/) {}
  /// Static text that names what made the last proposal of a session, for people.
  [[nodiscard]] virtual const char* name(const DraftState&) const noexcept { return "drafter"; }
  /// The hidden states of the model that observe() needs, see graph::Tap; none: it is not called.
  [[nodiscard]] virtual std::span<const int32_t> taps() const noexcept { return {}; }
  /// Called by the leader after each step, with all rows of sequences that have a state. If it
  /// throws, states may lack these rows, and drafts are worse.
  virtual void observe(std::span<const ObservedRows> /*rows*/) {}
};

}  // namespace gen::generate

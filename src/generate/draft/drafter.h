// SPDX-License-Identifier: Apache-2.0
// Drafts: tokens with which a text may go on, guessed at little cost, so that one pass of the model
// looks at several. A row's token is drawn from that row's logits whatever was guessed, and the
// next row is looked at only if it is that token's: so drafts show in no result, whatever a drafter
// says. A new way of guessing is a Drafter in a file of its own, which GeneratorOptions::drafter
// holds; those of the library lie beside this file. Read next: generate/loop/draft_controller.h.
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

namespace gen::generate {

/// Most rows of a tree, its first included.
constexpr int32_t kMaxDraftRows = cache::kMaxTreeRows;
/// Steps that run without the host (see StepRunner): more would save little and keep those waiting
/// longer that come or are cancelled meanwhile. And the seconds that they may take; a single one is
/// none of them.
constexpr int32_t kMaxMultiSteps = 4;
constexpr double kMaxMultiStepSeconds = 0.01;

/// Row 0 is the pending token, the last of the text; every other row is a guess at what follows the
/// row that it names, one before it. Where each follows the row before it the tree is a chain.
class DraftTree {
 public:
  /// Makes room for so many rows; without it adding may throw std::bad_alloc.
  void reserve(int32_t rows);
  /// Only the pending token.
  void begin(int32_t pending);
  /// Adds a row; its number. `grade`, below kDraftGrades, is a class of guesses that are right
  /// about equally often, which the drafter chooses.
  int32_t add(int32_t token, int32_t parent, int32_t grade = 0);
  /// Says what a row guesses.
  void set(int32_t row, int32_t token) noexcept { tokens_[static_cast<size_t>(row)] = token; }
  /// Drops all but the first rows.
  void cut(int32_t rows) noexcept;

  [[nodiscard]] int32_t rows() const noexcept { return static_cast<int32_t>(tokens_.size()); }
  [[nodiscard]] std::span<const int32_t> tokens() const noexcept { return tokens_; }
  /// Of row 0: -1.
  [[nodiscard]] std::span<const int32_t> parents() const noexcept { return parents_; }
  [[nodiscard]] std::span<const uint8_t> grades() const noexcept { return grades_; }
  /// The first row that guesses `token` after `row`, or -1.
  [[nodiscard]] int32_t child(int32_t row, int32_t token) const noexcept;
  [[nodiscard]] bool is_chain() const noexcept;
  /// How many of the first rows are as they should be: tokens below `vocab`, parents before them,
  /// and with `chain` the row before.
  [[nodiscard]] int32_t valid_rows(int32_t vocab, bool chain) const noexcept;

 private:
  std::vector<int32_t> tokens_;
  std::vector<int32_t> parents_;
  std::vector<uint8_t> grades_;
};

/// What a drafter keeps of one session. A call takes it from its session and gives it back. What
/// happens to the text meanwhile (forks aside) it is not told: each job has the whole text, and a
/// state finds out how far what it has is still of use. So a session that was cut, reset, loaded or
/// whose context has shifted needs nothing done to it.
class DraftState {
 public:
  virtual ~DraftState() = default;
  /// Of the last proposal these rows, from row 0 down, were what the text says; then the model said
  /// something else, or the text ended.
  virtual void accepted(std::span<const int32_t> /*path*/) noexcept {}
  /// A call has ended with this text.
  virtual void ended(std::span<const int32_t> /*text*/) noexcept {}
  /// For a fork of the session, which begins with the same text; null: it begins anew. May throw
  /// std::bad_alloc.
  [[nodiscard]] virtual std::unique_ptr<DraftState> fork() const { return nullptr; }
};

class DraftDraw;

/// One sequence's part of a proposal. Its owner fills it in and keeps it until the step is over.
struct DraftJob {
  DraftState* state = nullptr;  // null where there is no drafter: several steps run, see StepRunner
  std::span<const int32_t> tokens;  // the text, with its pending token
  int32_t most = 0;                 // rows to add; a step may lower it
  bool branches = false;            // a row may have several that follow it
  std::span<const int32_t> stops;   // tokens that end the text, but see ends_here()
  /// Where the text stands in its grammar, or null. A drafter may accept tokens with it, and takes
  /// them back before it returns.
  grammar::Matcher* matcher = nullptr;
  /// How the call draws its tokens, for guesses that are drawn, too; null: it takes the best.
  DraftDraw* draw = nullptr;
  DraftTree tree;  // in: the pending token; out: what is guessed, too

  int32_t failures = 0;  // out: what the drafter could not do, for metrics
  DraftRecord record;    // what came of it so far; the planner's and the call's

  // Of the tree, for the step.
  std::vector<int32_t> positions;
  std::vector<uint8_t> wants;
};

/// The token ends the text where the job's matcher stands, or where there is none; nothing follows
/// it then. No matcher takes it.
bool ends_here(const DraftJob& job, int32_t token);

/// Keeps the first rows of a chain that can come in the job's grammar, and none behind a token that
/// ends the text. Nothing happens to a tree. What the grammar cannot say in its limits is cut.
void cut_to_rule(DraftJob* job);

/// A drafter looks up, proposes, or does both. Threads: both from one at a time, the leader of a
/// step, which holds no lock; begin() from any.
class Drafter {
 public:
  virtual ~Drafter() = default;
  /// Rows that it may add to one pending token, below kMaxDraftRows.
  [[nodiscard]] virtual int32_t max_rows() const noexcept = 0;
  /// Of these, those that propose() may add; 0: it adds none.
  [[nodiscard]] virtual int32_t max_proposed() const noexcept { return max_rows(); }
  /// For the first call of a session. A failure, std::bad_alloc or null mean a call without drafts.
  virtual std::unique_ptr<DraftState> begin() = 0;
  /// Adds guesses that cost next to nothing to the trees of all jobs of a step, before the step
  /// decides how many of them it looks at. What throws has guessed nothing, here and below.
  virtual void look_up(std::span<DraftJob* const> /*jobs*/) {}
  /// Adds guesses to the trees of those jobs that are to have some and for which nothing was found.
  virtual void propose(std::span<DraftJob* const> /*jobs*/) {}
};

}  // namespace gen::generate

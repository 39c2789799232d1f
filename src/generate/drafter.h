// SPDX-License-Identifier: Apache-2.0
// Drafts: tokens with which a text may go on, guessed at little cost, so that one pass of the model
// looks at several. A row's token is drawn from that row's logits whatever was guessed, and the
// next row is looked at only if it is that token's: so drafts show in no result, whatever a drafter
// says. A new way of guessing is a Drafter in a file of its own, which GeneratorOptions::drafter
// holds; no option of the C API makes one yet. Read next: verification in generation.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/sequence/kv_cache.h"

namespace gen::generate {

/// Most rows of a tree, its first included.
constexpr int32_t kMostDraftRows = cache::kMostTreeRows;

/// Row 0 is the pending token, the last of the text; every other row is a guess at what follows the
/// row that it names, one before it. Where each follows the row before it the tree is a chain.
class DraftTree {
 public:
  /// Makes room for so many rows; without it adding may throw std::bad_alloc.
  void reserve(int32_t rows);
  /// Only the pending token.
  void begin(int32_t pending);
  /// Adds a row; its number.
  int32_t add(int32_t token, int32_t parent);
  /// Drops all but the first rows.
  void cut(int32_t rows) noexcept;

  [[nodiscard]] int32_t rows() const noexcept { return static_cast<int32_t>(tokens_.size()); }
  [[nodiscard]] std::span<const int32_t> tokens() const noexcept { return tokens_; }
  /// Of row 0: -1.
  [[nodiscard]] std::span<const int32_t> parents() const noexcept { return parents_; }
  /// The first row that guesses `token` after `row`, or -1.
  [[nodiscard]] int32_t child(int32_t row, int32_t token) const noexcept;
  [[nodiscard]] bool is_chain() const noexcept;
  /// How many of the first rows are as they should be: tokens below `vocab`, parents before them,
  /// and with `chain` the row before.
  [[nodiscard]] int32_t valid_rows(int32_t vocab, bool chain) const noexcept;

 private:
  std::vector<int32_t> tokens_;
  std::vector<int32_t> parents_;
};

/// What a drafter keeps of one call. It may be told of nothing but its jobs, each of which has the
/// whole text. State that outlives calls, and so forks, goes back and is saved with sessions, is to
/// come with the first drafter that has any.
class DraftState {
 public:
  virtual ~DraftState() = default;
  /// Of the last proposal these rows, from row 0 down, were what the text says; then the model said
  /// something else, or the text ended.
  virtual void accepted(std::span<const int32_t> path) noexcept = 0;
};

/// One sequence's part of a proposal. Its owner fills it in and keeps it until the step is over.
struct DraftJob {
  DraftState* state = nullptr;
  std::span<const int32_t> tokens;  // the text, with its pending token
  int32_t most = 0;                 // rows to add; a step may lower it
  bool branches = false;            // a row may have several that follow it
  DraftTree tree;                   // in: the pending token; out: what is guessed, too

  // Of the tree, for the step.
  std::vector<int32_t> positions;
  std::vector<uint8_t> wants;
};

/// Threads: propose() from one at a time, the leader of a step, which holds no lock; begin() from
/// any.
class Drafter {
 public:
  virtual ~Drafter() = default;
  /// Rows that it may add to one pending token, below kMostDraftRows.
  [[nodiscard]] virtual int32_t most_rows() const noexcept = 0;
  /// For a call that begins. A failure, std::bad_alloc or null mean a call without drafts.
  virtual std::unique_ptr<DraftState> begin() = 0;
  /// Adds guesses to the trees of all jobs of a step. What throws has guessed nothing.
  virtual void propose(std::span<DraftJob* const> jobs) = 0;
};

}  // namespace gen::generate

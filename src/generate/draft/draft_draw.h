// SPDX-License-Identifier: Apache-2.0
// DraftDraw: how a drafter that knows how likely each token is draws its guesses for a call that
// draws. It draws as the call will: with the same parameters, seed and number of the token, so that
// where the two models agree in what is likely they mostly agree in what is drawn. Under rejection
// (sampling/acceptance.h) it draws with numbers of its own and keeps what it drew from.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "generate/draft/drafter.h"
#include "sampling/chain.h"
#include "sampling/params.h"

namespace gen::generate {

/// Threads: one at a time: the leader of a step, or the call between steps.
class DraftDraw {
 public:
  /// Of a call that draws; `rows` is the most that a tree of it has. May throw std::bad_alloc.
  DraftDraw(const sampling::SamplingParams& params, bool rejects, int32_t rows);
  DraftDraw(const DraftDraw&) = delete;
  DraftDraw& operator=(const DraftDraw&) = delete;

  /// Makes room for a text of so many tokens. A longer one makes more. May throw std::bad_alloc.
  void reserve(size_t tokens);
  /// For a new proposal: the session's tokens, the last `said` of which the call has drawn.
  void begin(std::span<const int32_t> held, size_t said);
  /// Draws the token after the last row of a chain; `logits`, [V of the draft], are overwritten.
  /// The mask may be null. -1 where nothing can be drawn.
  int32_t draw(const DraftTree& tree, std::span<float> logits, const sampling::TokenMask* mask);

  /// Where calls judge by rejection: the guess behind a row of a tree, and what it was drawn from.
  [[nodiscard]] std::optional<sampling::Proposal> proposal(const DraftTree& tree,
                                                           int32_t row) const noexcept;

 private:
  const sampling::SamplingParams params_;
  const bool rejects_;
  const bool looks_back_;  // penalties count tokens
  sampling::Chain chain_;
  std::vector<int32_t> counted_;  // tokens that penalties count
  size_t before_ = 0;             // of these, those before the proposal
  uint64_t step_ = 0;             // tokens drawn before the proposal
  /// By row, what the token of the row was drawn from; empty: it was not drawn.
  std::vector<std::vector<sampling::Candidate>> from_;
};

}  // namespace gen::generate

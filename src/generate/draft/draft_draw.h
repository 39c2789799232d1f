// SPDX-License-Identifier: Apache-2.0
// DraftDraw: samples draft tokens for a call that samples. It uses the call's parameters, seed and
// token index, so that two models with similar distributions mostly draw the same token. With
// rejection sampling (sampling/acceptance.h) it uses random numbers of its own and keeps the
// distribution of each draw.
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
  /// For a call that samples; `rows` is the most rows that its tree can have. May throw
  /// std::bad_alloc.
  DraftDraw(const sampling::SamplingParams& params, bool rejects, int32_t rows);
  DraftDraw(const DraftDraw&) = delete;
  DraftDraw& operator=(const DraftDraw&) = delete;

  /// Reserves memory for a text of `tokens` tokens; a longer text allocates. May throw
  /// std::bad_alloc.
  void reserve(size_t tokens);
  /// Begins a new proposal. `held` are the session's tokens; the call sampled the last `said` of
  /// them.
  void begin(std::span<const int32_t> held, size_t said);
  /// Draws the token after the last row of a chain. `logits`, [V of the draft], are overwritten;
  /// the mask may be null. Returns -1 if nothing can be drawn.
  int32_t draw(const DraftTree& tree, std::span<float> logits, const sampling::TokenMask* mask);

  /// For rejection sampling: the draft token after `row` and the distribution it was drawn from.
  [[nodiscard]] std::optional<sampling::Proposal> proposal(const DraftTree& tree,
                                                           int32_t row) const noexcept;

 private:
  const sampling::SamplingParams params_;
  const bool rejects_;
  const bool looks_back_;  // penalties count tokens
  sampling::Chain chain_;
  std::vector<int32_t> counted_;  // tokens that penalties count
  size_t before_ = 0;             // of these, how many come before the proposal
  uint64_t step_ = 0;             // tokens drawn before the proposal
  /// By row: the distribution that its token was drawn from; empty if it was not drawn.
  std::vector<std::vector<sampling::Candidate>> from_;
};

}  // namespace gen::generate

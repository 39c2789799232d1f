// SPDX-License-Identifier: Apache-2.0
// Acceptance: speculative sampling by rejection (Leviathan, Kalman, Matias 2023; Chen et al. 2023).
// A guess drawn from q is accepted with probability min(1, p / q), where p is the model's
// distribution; otherwise a token is drawn from the positive part of p - q. The output has the
// distribution p, whatever q is. Which token it is depends on the guess, so a seed alone does not
// determine the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "sampling/candidates.h"

namespace gen::sampling {

/// A guessed token and the distribution it was drawn from: candidates ascending by token, whose
/// weights need not sum to 1. Empty: the token was certain.
struct Proposal {
  int32_t token = -1;
  std::span<const Candidate> from;
};

/// The proposal's token, or one drawn instead. `candidates` are the model's, at least one with a
/// positive weight; both numbers are in [0, 1) and independent of the proposal.
int32_t accept_or_draw(std::span<const Candidate> candidates, const Proposal& proposal,
                       double accepts, double draws) noexcept;

/// The random numbers of accept_tokens(): those of (seed, step + i) for guess i.
struct AcceptanceDraws {
  uint64_t seed = 0;
  uint64_t step = 0;
};

/// A whole proposal of K tokens: the accepted ones, and one more, which replaces the first rejected
/// token or follows the last. `draft_probs` is [K, V], `target_probs` [K + 1, V]; rows need not sum
/// to 1. Null `draws`: a token is accepted if it is the target's most probable one (the first of
/// equal ones), and the next token is the most probable one, too; `draft_probs` is not read. K = 0
/// gives nothing. `*accepted` receives the number of accepted tokens. kInvalidArgument for a
/// probability that is negative or not finite, or a target row of zeros; kOutOfRange for a token
/// outside [0, V).
Status accept_tokens(std::span<const int32_t> draft, std::span<const float> draft_probs,
                     std::span<const float> target_probs, size_t vocab,
                     const AcceptanceDraws* draws, std::vector<int32_t>* out, size_t* accepted);

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The stages that filter by probability: top-p (nucleus) and min-p.
#pragma once

#include <vector>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Keeps the shortest run of most probable candidates (ties: lower id first) whose share of all
/// weight reaches `p`, at least one. 0 < p < 1. In and out ascending by token. `border` is scratch.
void apply_top_p(double p, std::vector<Candidate>* candidates, std::vector<Candidate>* border);
/// The same if the candidates are only some of all tokens, whose total weight is `mass`.
void apply_top_p(double p, double mass, std::vector<Candidate>* candidates,
                 std::vector<Candidate>* border);

/// Keeps candidates at least `min_p` times as probable as the best of them. Keeps their order.
void apply_min_p(double min_p, std::vector<Candidate>* candidates);

/// A logit below which no candidate passes apply_min_p() at this temperature, -inf if `min_p` is 0.
/// Those above may still fail there.
float min_p_bar(double min_p, float max, double temperature) noexcept;

}  // namespace gen::sampling

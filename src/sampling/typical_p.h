// SPDX-License-Identifier: Apache-2.0
// The stage typical-p (locally typical sampling; Meister, Pimentel, Wiher, Cotterell, 2022).
#pragma once

#include <vector>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Keeps the candidates whose surprise, -log(probability), is closest to the expected one, the
/// entropy: the shortest run in this order whose share of all weight reaches `p`, at least one;
/// ties are broken by more_probable(). `max` and `temperature` are those of the weights; 0 < p < 1.
/// Keeps the order of `candidates`. `border` is scratch.
void apply_typical_p(double p, float max, double temperature, std::vector<Candidate>* candidates,
                     std::vector<Candidate>* border);

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The stage XTC ("exclude top choices"): where several tokens are good, the best ones are taken out
// now and then, so that texts leave the beaten track.
#pragma once

#include <vector>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Of the candidates whose share of all weight is at least `threshold` only the least probable one
/// stays (ties: the highest id), beside all others; nothing changes if there are fewer than two.
/// Candidates of no weight are no choice and never stay in the place of one. Keeps the order.
void apply_xtc(double threshold, std::vector<Candidate>* candidates);

}  // namespace gen::sampling

// SPDX-License-Identifier: Apache-2.0
// The stage XTC ("exclude top choices"): if several tokens are good, the best ones are sometimes
// removed, so that texts become less predictable.
#pragma once

#include <vector>

#include "sampling/candidates.h"

namespace gen::sampling {

/// Of the candidates whose share of all weight is at least `threshold`, only the least probable one
/// is kept (ties: the highest id); all others stay. Nothing changes if there are fewer than two.
/// Candidates without weight are not choices and never replace one. Keeps the order.
void apply_xtc(double threshold, std::vector<Candidate>* candidates);

}  // namespace gen::sampling

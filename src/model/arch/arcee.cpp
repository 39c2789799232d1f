// SPDX-License-Identifier: Apache-2.0
// Arcee's AFM (general.architecture "arcee"): a llama whose feed-forward squares and has no gate.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kArcee = {
    "arcee",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kRelu2},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Arcee's AFM (general.architecture "arcee"): a llama with an ungated squared ReLU feed-forward.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kArcee = {
    "arcee",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kRelu2},
};

}  // namespace gen::model::arch

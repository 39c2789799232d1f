// SPDX-License-Identifier: Apache-2.0
// Nemotron and Minitron, dense (general.architecture "nemotron"): layer norms whose weights files
// have with their 1 added, a feed-forward that squares and has no gate, heads of which a part is
// rotated.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kNemotron = {
    "nemotron",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norms = {.kind = NormStyle::Kind::kLayer, .bias = Bias::kRequired},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kRelu2},
};

}  // namespace gen::model::arch

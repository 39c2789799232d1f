// SPDX-License-Identifier: Apache-2.0
// Phi-1 to Phi-2 (general.architecture "phi2"): layer norms and biases everywhere, parallel
// attention and feed-forward, partial rotary embedding.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kPhi2 = {
    "phi2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norms = {.kind = NormStyle::Kind::kLayer, .bias = Bias::kRequired},
     .parallel = Parallel::kOneNorm,
     .input_bias = Bias::kRequired,
     .inner_bias = Bias::kRequired,
     .head_bias = Bias::kRequired,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kGelu},
};

}  // namespace gen::model::arch

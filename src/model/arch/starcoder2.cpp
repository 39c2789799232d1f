// SPDX-License-Identifier: Apache-2.0
// StarCoder 2 (general.architecture "starcoder2"): layer norms, biases everywhere, a feed-forward
// without gate.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kStarcoder2 = {
    "starcoder2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norms = {.kind = NormStyle::Kind::kLayer, .bias = Bias::kRequired},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kGelu},
};

}  // namespace gen::model::arch

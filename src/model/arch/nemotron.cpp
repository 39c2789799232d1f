// SPDX-License-Identifier: Apache-2.0
// Nemotron and Minitron, dense (general.architecture "nemotron"): layer norms, to whose weights
// files have already added 1, an ungated squared ReLU feed-forward, partial rotary embedding.
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

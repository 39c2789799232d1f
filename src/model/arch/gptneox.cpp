// SPDX-License-Identifier: Apache-2.0
// GPT-NeoX and Pythia (general.architecture "gptneox"): layer norms and biases everywhere, parallel
// attention and feed-forward with a norm each, partial rotary embedding.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGptNeoX = {
    "gptneox",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norms = {.kind = NormStyle::Kind::kLayer, .bias = Bias::kRequired},
     .parallel = Parallel::kTwoNorms,
     .input_bias = Bias::kRequired,
     .inner_bias = Bias::kRequired,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kGelu},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Apertus (general.architecture "apertus"): a llama that normalises each head of q and k, with an
// ungated xIELU feed-forward.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kApertus = {
    "apertus",
    {.rope = {.kind = engine::RopeKind::kHalves, .freq_factors = true},
     .head_norms = HeadNorms::kEachHead,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kXielu},
};

}  // namespace gen::model::arch

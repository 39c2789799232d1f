// SPDX-License-Identifier: Apache-2.0
// Gemma 3 (general.architecture "gemma3"): a Gemma 2 without caps, which normalises each head of q
// and k and has windows, with another rotary base, in five of six layers.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGemma3 = {
    "gemma3",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norm_after = true,
     .head_norms = HeadNorms::kEachHead,
     .activation = engine::Act::kGelu,
     .global_every = 6,
     .local_base = 10000.0,
     .local_unscaled = true,
     .root_embedding = true,
     .logit_cap = 0.0F,
     .share_scaled_layers = 62},
};

}  // namespace gen::model::arch

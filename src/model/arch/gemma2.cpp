// SPDX-License-Identifier: Apache-2.0
// Gemma 2 (general.architecture "gemma2"): norms around both halves of a block, caps of scores and
// logits, a window in every other layer, the embedding times the root of its length. Files have 1
// added to the weights of norms.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGemma2 = {
    "gemma2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .eps = 1e-6,
     .norm_after = true,
     .activation = engine::Act::kGelu,
     .window = 4096,
     .global_every = 2,
     .root_embedding = true,
     .score_cap = 50.0F,
     .logit_cap = 30.0F,
     .share_scaled_layers = 46},
};

}  // namespace gen::model::arch

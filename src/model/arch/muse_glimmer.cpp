// SPDX-License-Identifier: Apache-2.0
// Muse Glimmer (general.architecture "muse-glimmer"): a normalised embedding, norms around both
// halves of a block, those after with an epsilon of their own, a gate of what attends, windows in
// three of four layers, of which only these are rotated.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kMuseGlimmer = {
    "muse-glimmer",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .norm_after = true,
     .after_eps = 1e-8F,
     .norm_embedding = true,
     .head_norms = HeadNorms::kEachHead,
     .attention_gate = AttentionGate::kOwn,
     .window = 2048,
     .global_every = 4,
     .rotate_local = true,
     .logit_factor = true,
     .logit_cap = 0.0F},
};

}  // namespace gen::model::arch

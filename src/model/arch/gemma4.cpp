// SPDX-License-Identifier: Apache-2.0
// Gemma 4: E2B, E4B, 12B, 31B and 26B-A4B (general.architecture "gemma4"). A Gemma 3 whose scores
// have no divisor and whose values are normalised. Layers without a window have heads of another
// width and divisors of their angles, and may have no values but their keys. In the small models
// the last layers share the keys and values of earlier ones, and each layer has embeddings of its
// own. Where there are experts, they work beside the feed-forward.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGemma4 = {
    "gemma4",
    {.rope = {.kind = engine::RopeKind::kHalves, .freq_factors = true, .base = 1e6},
     .eps = 1e-6,
     .norm_after = true,
     .head_norms = HeadNorms::kEachHead,
     .activation = engine::Act::kGelu,
     .window_needed = true,
     .global_every = 6,
     .local_base = 10000.0,
     .local_unscaled = true,
     .undivided_scores = true,
     .shared_layers = true,
     .local_heads = true,
     .value_norm = true,
     .layer_inputs = true,
     .layer_scale = true,
     .root_embedding = true,
     .logit_cap = 0.0F,
     .experts = {.has = Experts::kOptional, .normalise = true, .beside = true}},
};

}  // namespace gen::model::arch

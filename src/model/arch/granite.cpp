// SPDX-License-Identifier: Apache-2.0
// Granite 3 and 4, dense (general.architecture "granite"): a llama with factors of the embedding,
// residuals, scores and logits; some models have no rotary embedding.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGranite = {
    "granite",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .rope_switch = true,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .factors = true},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// SmolLM3 (general.architecture "smollm3"): a llama without rotary embedding in every fourth layer.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kSmolLm3 = {
    "smollm3",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .unrotated_every = 4},
};

}  // namespace gen::model::arch

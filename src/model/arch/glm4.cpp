// SPDX-License-Identifier: Apache-2.0
// GLM-4, dense (general.architecture "glm4"): norms around both halves of a block, gate and up in
// one tensor, heads of which a part is rotated.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGlm4 = {
    "glm4",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .rope_sections = true,
     .norm_after = true,
     .input_bias = Bias::kOptional,
     .feed_forward = FeedForward::kFused,
     .draft_layers = true},
};

}  // namespace gen::model::arch

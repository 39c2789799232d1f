// SPDX-License-Identifier: Apache-2.0
// GLM-4.5, 4.6 and 4.7 with experts (general.architecture "glm4moe"): dense blocks, then experts
// chosen by sigmoids and a bias, with a shared one; heads of which a part is rotated, with norms in
// the large models. Files may end with blocks that draft.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGlm4Moe = {
    "glm4moe",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .rope_sections = true,
     .ffn_norm = "post_attention_norm",
     .head_norms = HeadNorms::kMayBeEach,
     .input_bias = Bias::kOptional,
     .draft_layers = true,
     .experts = {.has = Experts::kRequired,
                 .gating = engine::Gating::kSigmoid,
                 .shared = SharedExpert::kPlain}},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Command R7B, Command A, Tiny Aya (general.architecture "cohere2"): a Command-R with windows in
// three of four layers. Only these layers use rotary embedding.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kCohere2 = {
    "cohere2",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .norms = {.kind = NormStyle::Kind::kLayer},
     .eps = 1e-5,
     .parallel = Parallel::kOneNorm,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .window = 4096,
     .global_every = 4,
     .rotate_local = true,
     .logit_factor = true},
};

}  // namespace gen::model::arch

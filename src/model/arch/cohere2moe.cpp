// SPDX-License-Identifier: Apache-2.0
// Command A+ and North (general.architecture "cohere2moe"): a cohere2 with dense blocks and then
// experts chosen by sigmoids, of which and a shared one the mean counts. The first of four blocks
// has no window, and no rotation unless it is dense. Norms are of the kind whose epsilon the file
// has. Files may end with blocks that draft.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kCohere2Moe = {
    "cohere2moe",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .norms = {.kind = NormStyle::Kind::kEither},
     .parallel = Parallel::kOneNorm,
     .input_bias = Bias::kOptional,
     .window = 4096,
     .global_every = 4,
     .global_first = true,
     .rotate_local = true,
     .rotate_dense = true,
     .logit_factor = true,
     .draft_layers = true,
     .experts = {.has = Experts::kRequired,
                 .gating = engine::Gating::kSigmoid,
                 .shared = SharedExpert::kAveraged,
                 .unshared = true}},
};

}  // namespace gen::model::arch

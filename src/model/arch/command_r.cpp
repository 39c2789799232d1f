// SPDX-License-Identifier: Apache-2.0
// Command-R and Aya (general.architecture "command-r"): layer norms without bias, parallel
// attention and feed-forward, and in the largest models norms of each head of q and k.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kCommandR = {
    "command-r",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .norms = {.kind = NormStyle::Kind::kLayer},
     .parallel = Parallel::kOneNorm,
     .head_norms = HeadNorms::kOwnOfEach,
     .logit_factor = true},
};

}  // namespace gen::model::arch

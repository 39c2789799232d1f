// SPDX-License-Identifier: Apache-2.0
// Gemma (general.architecture "gemma"): a llama with GELU as gate and the embedding times the root
// of its length. Files have already added 1 to the weights of norms.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGemma = {
    "gemma",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .eps = 1e-6,
     .activation = engine::Act::kGelu,
     .root_embedding = true},
};

}  // namespace gen::model::arch

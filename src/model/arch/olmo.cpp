// SPDX-License-Identifier: Apache-2.0
// OLMo 1 (general.architecture "olmo"): a llama with layer norms that have no weights.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kOlmo = {
    "olmo",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .norms = {.kind = NormStyle::Kind::kLayer, .weight = false}},
};

}  // namespace gen::model::arch

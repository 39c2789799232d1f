// SPDX-License-Identifier: Apache-2.0
// InternLM2 (general.architecture "internlm2"): a llama without biases.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kInternLm2 = {
    "internlm2",
    {.rope = {.kind = engine::RopeKind::kAdjacent}},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Qwen3 with experts (general.architecture "qwen3moe"): Qwen3, whose experts' weights are a softmax
// over all, divided by their sum.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen3Moe = {
    "qwen3moe",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kEachHead,
     .experts = {.has = Experts::kRequired, .normalise = true}},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Qwen 1.5 and 2 with experts (general.architecture "qwen2moe"): Qwen2, with a softmax over all
// experts as their weights and a shared expert with a gate of its own.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen2Moe = {
    "qwen2moe",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .input_bias = Bias::kRequired,
     .experts = {.has = Experts::kRequired, .shared = SharedExpert::kGated}},
};

}  // namespace gen::model::arch

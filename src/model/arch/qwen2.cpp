// SPDX-License-Identifier: Apache-2.0
// Qwen2 and Qwen2.5 (general.architecture "qwen2"): rotary pairs half a head apart, biases on q, k
// and v.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen2 = {
    "qwen2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .input_bias = Bias::kRequired,
     .head_bias = Bias::kOptional},
};

}  // namespace gen::model::arch

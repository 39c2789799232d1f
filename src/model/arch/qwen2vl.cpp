// SPDX-License-Identifier: Apache-2.0
// Qwen2-VL and Qwen2.5-VL (general.architecture "qwen2vl"), as models of text: a Qwen2 whose
// rotation has several positions, which are one in texts.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen2Vl = {
    "qwen2vl",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .rope_sections = true,
     .input_bias = Bias::kRequired,
     .head_bias = Bias::kOptional},
};

}  // namespace gen::model::arch

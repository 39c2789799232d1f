// SPDX-License-Identifier: Apache-2.0
// Qwen3-VL (general.architecture "qwen3vl"), as a model of text: a Qwen3 whose rotation has several
// positions, which are one in texts. What pictures add to the first layers is nothing there.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen3Vl = {
    "qwen3vl",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .rope_sections = true,
     .head_norms = HeadNorms::kEachHead},
};

}  // namespace gen::model::arch

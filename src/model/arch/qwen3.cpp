// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense (general.architecture "qwen3"): like Qwen2 without biases, but each head of q and k
// is normalised before it is rotated, and the head's width is a number of its own.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen3 = {
    "qwen3",
    {.rope = {.kind = engine::RopeKind::kHalves}, .head_norms = HeadNorms::kEachHead},
};

}  // namespace gen::model::arch

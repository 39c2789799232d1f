// SPDX-License-Identifier: Apache-2.0
// ERNIE 4.5, dense (general.architecture "ernie4_5"): a llama with biases in some files.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kErnie45 = {
    "ernie4_5",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional},
};

}  // namespace gen::model::arch

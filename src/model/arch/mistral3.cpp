// SPDX-License-Identifier: Apache-2.0
// Ministral 3, Mistral Medium 3.5, Devstral 2 (general.architecture "mistral3"): a llama whose
// queries grow with the position, and whose YaRN has a multiplier.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kMistral3 = {
    "mistral3",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true, .long_factors = true},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .query_temperature = true},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Granite 3 with experts (general.architecture "granitemoe"): a granite with a softmax over the
// experts, divided by the sum of those chosen; some models have a shared expert.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGraniteMoe = {
    "granitemoe",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .rope_switch = true,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .factors = true,
     .experts = {.has = Experts::kRequired,
                 .normalise = true,
                 .shared = SharedExpert::kPlain,
                 .unshared = true}},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Granite 4 with recurrent blocks, dense and with experts (general.architecture "granitehybrid"): a
// granite of which most blocks, those without heads of keys, have a Mamba-2 in place of attention.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGraniteHybrid = {
    "granitehybrid",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .rope_switch = true,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .factors = true,
     .recurrence = Recurrence::kMamba2,
     .experts = {.has = Experts::kOptional,
                 .normalise = true,
                 .shared = SharedExpert::kPlain,
                 .unshared = true}},
};

}  // namespace gen::model::arch

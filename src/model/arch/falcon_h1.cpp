// SPDX-License-Identifier: Apache-2.0
// Falcon-H1 (general.architecture "falcon-h1"): each block has attention and a Mamba-2 side by
// side, then a feed-forward. Its converter multiplies the weights by the family's factors.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kFalconH1 = {
    "falcon-h1",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .recurrence = Recurrence::kMamba2,
     .recurs = Recurs::kBeside},
};

}  // namespace gen::model::arch

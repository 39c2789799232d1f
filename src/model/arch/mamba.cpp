// SPDX-License-Identifier: Apache-2.0
// Mamba and Falcon Mamba (general.architecture "mamba"): blocks of a norm and a recurrence, whose
// channels have a decay for each number of their state.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kMamba = {
    "mamba",
    {.rope = {}, .recurrence = Recurrence::kMamba, .recurs = Recurs::kOnly},
};

}  // namespace gen::model::arch

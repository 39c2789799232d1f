// SPDX-License-Identifier: Apache-2.0
// Mamba-2 and Codestral Mamba (general.architecture "mamba2"): blocks of a norm and a recurrence,
// whose heads of many channels have one decay each.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kMamba2 = {
    "mamba2",
    {.rope = {}, .recurrence = Recurrence::kMamba2, .recurs = Recurs::kOnly},
};

}  // namespace gen::model::arch

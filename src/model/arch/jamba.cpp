// SPDX-License-Identifier: Apache-2.0
// Jamba, dense and with experts in some blocks (general.architecture "jamba"): blocks without heads
// of keys have a Mamba-1, whose parts have norms, in place of attention, and no block a rotation.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kJamba = {
    "jamba",
    {.rope = {},
     .recurrence = Recurrence::kMamba,
     .recurrent_norms = true,
     .experts = {.has = Experts::kOptional, .some_blocks = true}},
};

}  // namespace gen::model::arch

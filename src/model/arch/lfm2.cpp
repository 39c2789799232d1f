// SPDX-License-Identifier: Apache-2.0
// LFM2 and LFM2.5, dense (general.architecture "lfm2"). Blocks without heads of keys have a gated
// convolution over few rows in place of attention.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kLfm2 = {
    "lfm2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kEachHead,
     .recurrence = Recurrence::kShortConvolution,
     .last_norm = "token_embd_norm"},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// OLMo 2 and 3 (general.architecture "olmo2"): norms only after attention and feed-forward, and of
// all heads of q and k together. OLMo 3 has windows in three of four layers, whose rotary embedding
// is not scaled.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kOlmo2 = {
    "olmo2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norm_before = false,
     .norm_after = true,
     .head_norms = HeadNorms::kAllHeads,
     .global_every = 4,
     .local_unscaled = true},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// OLMoE (general.architecture "olmoe"): norms of q and k over the whole width, a softmax over all
// experts as their weights.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kOlmoe = {
    "olmoe",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kAllHeads,
     .experts = {.has = Experts::kRequired}},
};

}  // namespace gen::model::arch

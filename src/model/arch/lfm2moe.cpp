// SPDX-License-Identifier: Apache-2.0
// LFM2 and LFM2.5 with experts (general.architecture "lfm2moe"): an lfm2 whose blocks after the
// first few have experts, chosen by sigmoids and a bias.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kLfm2Moe = {
    "lfm2moe",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kEachHead,
     .recurrence = Recurrence::kShortConvolution,
     .last_norm = "token_embd_norm",
     .experts = {.has = Experts::kRequired, .gating = engine::Gating::kSigmoid, .normalise = true}},
};

}  // namespace gen::model::arch

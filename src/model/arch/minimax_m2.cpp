// SPDX-License-Identifier: Apache-2.0
// MiniMax-M2 to M2.7 (general.architecture "minimax-m2"): norms of q and k over the whole width, a
// rotation of a part of each head, experts chosen by sigmoids and a bias.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kMiniMaxM2 = {
    "minimax-m2",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kAllHeads,
     .experts = {.has = Experts::kRequired, .gating = engine::Gating::kSigmoid, .normalise = true}},
};

}  // namespace gen::model::arch

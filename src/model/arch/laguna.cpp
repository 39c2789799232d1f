// SPDX-License-Identifier: Apache-2.0
// Laguna XS, S and M (general.architecture "laguna"): a gate of what attends, by elements or heads,
// with a softplus; dense blocks, then experts chosen by sigmoids and a bias, with a shared one.
// Some models have windows, but not in the first of four blocks, and rotate differently in them.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kLaguna = {
    "laguna",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .head_norms = HeadNorms::kEachHead,
     .attention_gate = AttentionGate::kOwn,
     .gate_activation = engine::Act::kSoftplus,
     .global_every = 4,
     .global_first = true,
     .local_unscaled = true,
     .local_heads = true,
     .experts = {.has = Experts::kRequired,
                 .gating = engine::Gating::kSigmoid,
                 .shared = SharedExpert::kPlain}},
};

}  // namespace gen::model::arch

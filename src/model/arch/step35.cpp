// SPDX-License-Identifier: Apache-2.0
// Step 3.5 and 3.7 Flash (general.architecture "step35"): windows in three of four blocks, which
// rotate twice as many elements as the others; a gate of each head; experts chosen by sigmoids and
// a bias in most blocks, with a shared one, and limits of their activations by block. Files may end
// with blocks that draft.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kStep35 = {
    "step35",
    {.rope = {.kind = engine::RopeKind::kHalves, .freq_factors = true},
     .head_norms = HeadNorms::kMayBeEach,
     .attention_gate = AttentionGate::kMayBeOwn,
     .swiglu_limits = true,
     .window_needed = true,
     .global_every = 4,
     .global_first = true,
     .local_unscaled = true,
     .global_half = true,
     .local_heads = true,
     .draft_layers = true,
     .draft_unnormed = true,
     .experts = {.has = Experts::kRequired,
                 .gating = engine::Gating::kSigmoid,
                 .shared = SharedExpert::kPlain,
                 .some_blocks = true}},
};

}  // namespace gen::model::arch

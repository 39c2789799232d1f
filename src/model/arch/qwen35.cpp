// SPDX-License-Identifier: Apache-2.0
// Qwen 3.5, 3.6 and 3.8, dense (general.architecture "qwen35"). Three of four blocks have a gated
// delta net in place of attention. Attention has gates among the rows of attn_q, normalised heads,
// and a rotation of a part of each head. Files may end with blocks that draft.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen35 = {
    "qwen35",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .rope_sections = true,
     .ffn_norm = "post_attention_norm",
     .head_norms = HeadNorms::kEachHead,
     .attention_gate = AttentionGate::kInQ,
     .recurrence = Recurrence::kDeltaNet,
     .attention_every = 4,
     .draft_layers = true},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// Qwen3-Next and Qwen3-Coder-Next (general.architecture "qwen3next"): a qwen35moe whose files have
// ssm_ba, the gates of the delta net by heads of keys, and a rotation by one position.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen3Next = {
    "qwen3next",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .ffn_norm = "post_attention_norm",
     .head_norms = HeadNorms::kEachHead,
     .attention_gate = AttentionGate::kInQ,
     .recurrence = Recurrence::kDeltaNet,
     .attention_every = 4,
     .draft_layers = true,
     .experts = {.has = Experts::kRequired, .normalise = true, .shared = SharedExpert::kGated}},
};

}  // namespace gen::model::arch

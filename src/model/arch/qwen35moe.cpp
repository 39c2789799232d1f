// SPDX-License-Identifier: Apache-2.0
// Qwen 3.5, 3.6 and 3.8 with experts (general.architecture "qwen35moe"): a qwen35 with a softmax
// over all experts, divided by the sum of those chosen, and a shared expert with a gate of its own.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kQwen35Moe = {
    "qwen35moe",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .rope_sections = true,
     .ffn_norm = "post_attention_norm",
     .head_norms = HeadNorms::kEachHead,
     .attention_gate = AttentionGate::kInQ,
     .recurrence = Recurrence::kDeltaNet,
     .attention_every = 4,
     .draft_layers = true,
     .experts = {.has = Experts::kRequired, .normalise = true, .shared = SharedExpert::kGated}},
};

}  // namespace gen::model::arch

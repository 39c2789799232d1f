// SPDX-License-Identifier: Apache-2.0
// Nemotron-H and Nemotron Nano 2, dense (general.architecture "nemotron_h"): each block is a norm
// and one of a Mamba-2, attention without rotation, and a feed-forward without a gate, as the
// widths of the file say.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kNemotronH = {
    "nemotron_h",
    {.rope = {},
     .ffn_norm = "attn_norm",
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kRelu2,
     .recurrence = Recurrence::kMamba2,
     .recurs = Recurs::kAlone},
};

constinit const Architecture kNemotronHMoe = {
    "nemotron_h_moe",
    {.rope = {},
     .ffn_norm = "attn_norm",
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .feed_forward = FeedForward::kPlain,
     .activation = engine::Act::kRelu2,
     .recurrence = Recurrence::kMamba2,
     .recurs = Recurs::kAlone,
     .experts = {.has = Experts::kRequired,
                 .gating = engine::Gating::kSigmoid,
                 .shared = SharedExpert::kPlain,
                 .latent = true}},
};

}  // namespace gen::model::arch

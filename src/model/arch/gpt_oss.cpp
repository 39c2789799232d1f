// SPDX-License-Identifier: Apache-2.0
// gpt-oss 20b and 120b (general.architecture "gpt-oss"): experts with clamped SwiGLU, chosen by
// logits; biases everywhere; a window in every other layer; and sinks, scores that each softmax of
// attention has besides.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kGptOss = {
    "gpt-oss",
    {.rope = {.kind = engine::RopeKind::kHalves, .base = 150000.0},
     .eps = 1e-5,
     .ffn_norm = "post_attention_norm",
     .sinks = true,
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .activation = engine::Act::kClampedSwiglu,
     .activation_alpha = 1.702F,
     .activation_limit = 7.0F,
     .window = 128,
     .global_every = 2,
     .experts = {.has = Experts::kRequired, .gating = engine::Gating::kSoftmaxChosen}},
};

}  // namespace gen::model::arch

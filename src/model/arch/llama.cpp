// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3.x, Mistral, TinyLlama and similar models (general.architecture "llama"): adjacent
// rotary pairs, biases only in some files, Llama 3's frequency factors as a tensor. Mixtral: files
// with experts.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kLlama = {
    "llama",
    {.rope = {.kind = engine::RopeKind::kAdjacent, .freq_factors = true},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .experts = {.has = Experts::kOptional, .normalise = true}},
};

}  // namespace gen::model::arch

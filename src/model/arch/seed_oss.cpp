// SPDX-License-Identifier: Apache-2.0
// Seed-OSS (general.architecture "seed_oss"): a Qwen2 with another name for the norm before the
// feed-forward.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kSeedOss = {
    "seed_oss",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .ffn_norm = "post_attention_norm",
     .input_bias = Bias::kOptional},
};

}  // namespace gen::model::arch

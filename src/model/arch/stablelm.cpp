// SPDX-License-Identifier: Apache-2.0
// StableLM (general.architecture "stablelm"): layer norms, partial rotary embedding, and in the
// larger models norms of each head and parallel attention and feed-forward.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kStableLm = {
    "stablelm",
    {.rope = {.kind = engine::RopeKind::kHalves},
     .norms = {.kind = NormStyle::Kind::kLayer, .bias = Bias::kOptional},
     .parallel = Parallel::kWithoutNorm,
     .head_norms = HeadNorms::kOwnOfEach,
     .input_bias = Bias::kOptional},
};

}  // namespace gen::model::arch

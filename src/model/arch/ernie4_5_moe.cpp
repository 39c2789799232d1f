// SPDX-License-Identifier: Apache-2.0
// ERNIE 4.5 with experts (general.architecture "ernie4_5-moe"): the first blocks are dense, of the
// others every n-th has experts, chosen by a softmax and a bias; some models have a shared one.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kErnie45Moe = {
    "ernie4_5-moe",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .input_bias = Bias::kOptional,
     .inner_bias = Bias::kOptional,
     .experts = {.has = Experts::kRequired,
                 .normalise = true,
                 .shared = SharedExpert::kPlain,
                 .unshared = true}},
};

}  // namespace gen::model::arch

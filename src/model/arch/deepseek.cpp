// SPDX-License-Identifier: Apache-2.0
// DeepSeek MoE, the first one (general.architecture "deepseek"): a llama with dense blocks, then
// experts, whose weights are a softmax over all, and a shared one. Later ones have other names.
#include "model/arch/registry.h"

namespace gen::model::arch {

constinit const Architecture kDeepSeek = {
    "deepseek",
    {.rope = {.kind = engine::RopeKind::kAdjacent},
     .experts = {.has = Experts::kRequired, .shared = SharedExpert::kPlain}},
};

}  // namespace gen::model::arch

// SPDX-License-Identifier: Apache-2.0
// The best tokens of a row where they are more than one and few.
#pragma once

#include "cuda/ops/logits/best.cuh"

namespace gen::cuda {

inline constexpr int32_t kBestMany = 128;

/// As run(), for k in [2, kBestMany], behind begin_parts().
Status best_many(const OpContext& context, const engine::BestArgs& args, const BestParts& parts);

}  // namespace gen::cuda

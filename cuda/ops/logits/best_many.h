// SPDX-License-Identifier: Apache-2.0
// The k best tokens of a row for small k above 1.
#pragma once

#include "cuda/ops/logits/best.cuh"

namespace gen::cuda {

inline constexpr int32_t kBestMany = 128;

/// As run(), for k in [2, kBestMany]; begin_parts() must precede it.
Status best_many(const OpContext& context, const engine::BestArgs& args, const BestParts& parts);

}  // namespace gen::cuda

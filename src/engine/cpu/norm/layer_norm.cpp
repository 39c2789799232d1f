// SPDX-License-Identifier: Apache-2.0
// layer_norm. norm_rows.h has the code shared by all norms.
#include "engine/cpu/norm/layer_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/norm/layer_norm-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/norm/layer_norm-inl.h"

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/norm/norm_rows.h"

namespace gen::engine::cpu {

const LayerNormKernels* layer_norm_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kLayerNorm);
}

Status run(CpuContext& context, const LayerNormArgs& args) {
  const auto kernel =
      args.centred ? context.kernels.layer_norm->row : context.kernels.layer_norm->uncentred_row;
  const float* const w = context.at(args.w);
  const float* const b = context.at(args.b);
  const int64_t group = args.x.cols / args.groups;
  return norm_rows(context, args, [&](const float* x, float* y) {
    for (int64_t d = 0; d < args.x.cols; d += group) {
      kernel(x + d, w != nullptr ? w + d : nullptr, b != nullptr ? b + d : nullptr, args.eps, y + d,
             group);
    }
  });
}

}  // namespace gen::engine::cpu

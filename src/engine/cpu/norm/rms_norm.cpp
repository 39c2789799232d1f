// SPDX-License-Identifier: Apache-2.0
// rms_norm. norm_rows.h has the code shared by all norms.
#include "engine/cpu/norm/rms_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/norm/rms_norm-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/norm/rms_norm-inl.h"

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/norm/norm_rows.h"

namespace gen::engine::cpu {

const RmsNormKernels* rms_norm_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kRmsNorm);
}

Status run(CpuContext& context, const RmsNormArgs& args) {
  const auto kernel = context.kernels.rms_norm->row;
  const float* const w = context.at(args.w);
  return norm_rows(context, args,
                   [&](const float* x, float* y) { kernel(x, w, args.eps, y, args.x.cols); });
}

}  // namespace gen::engine::cpu

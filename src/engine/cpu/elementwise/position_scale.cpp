// SPDX-License-Identifier: Apache-2.0
// position_scale: one multiplication an element, the same bits at every level.
#include <algorithm>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const PositionScaleArgs& args) {
  if (context.dry_run) return {};
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const int32_t* const positions = context.at(args.positions);
  const float* const factors = context.at(args.factors);
  const int64_t cols = args.y.cols;
  parallel_rows(context, args.y.rows, cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      const float factor = factors[std::min(positions[t] / args.every, args.n_factors - 1)];
      const float* const from = x.row(t);
      float* const to = y.row(t);
      for (int64_t d = 0; d < cols; ++d) to[d] = from[d] * factor;
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

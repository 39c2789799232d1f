// SPDX-License-Identifier: Apache-2.0
// pack: float rows into the forms that products read. See activations.h.
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/cpu/pack/activations.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const PackArgs& args) {
  if (context.dry_run) return {};
  const ConstRows x = context.at(args.x);
  const PackedView y = context.at(args.y);
  parallel_rows(context, args.x.rows, args.x.cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      pack_row(context.kernels, x.row(t), y, t);
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

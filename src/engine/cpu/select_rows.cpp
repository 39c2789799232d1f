// SPDX-License-Identifier: Apache-2.0
// select_rows: copies the rows that somebody wants, usually a few at the end of a forward pass.
#include <cstring>

#include "engine/cpu/ops_run.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const SelectRowsArgs& args) {
  if (context.dry_run) return {};
  const auto bytes = static_cast<size_t>(args.y.cols) * sizeof(float);
  for (size_t i = 0; i < args.rows.size(); ++i) {
    const float* from = args.x.data + args.rows[i] * args.x.stride;
    std::memcpy(args.y.data + static_cast<int64_t>(i) * args.y.stride, from, bytes);
  }
  return {};
}

}  // namespace gen::engine::cpu

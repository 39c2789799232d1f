// SPDX-License-Identifier: Apache-2.0
// select_rows: gathers rows, usually a few at the end of a forward pass.
#include <cstring>

#include "engine/cpu/base/ops_run.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const SelectRowsArgs& args) {
  if (context.dry_run) return {};
  const auto bytes = static_cast<size_t>(args.y.cols) * sizeof(float);
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const int32_t* const rows = context.at(args.rows);
  for (int64_t i = 0; i < y.rows; ++i) std::memcpy(y.row(i), x.row(rows[i]), bytes);
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// embed: rows of the embedding, decoded by the reference codecs. A step looks up few rows, so speed
// does not matter.
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/linear/weight.h"
#include "quant/format.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const EmbedArgs& args) {
  if (context.dry_run) return {};
  const auto& weight = static_cast<const CpuWeight&>(*args.weight);
  const quant::Format* format = quant::find_format(weight.rows_type());
  const int64_t cols = weight.in_features();
  const int32_t* const ids = context.at(args.ids);
  const Rows rows = context.at(args.y);
  const LowRankView low_rank(context, args.low_rank);
  parallel_rows(context, args.y.rows, cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      if (ids[t] < 0) continue;
      const auto id = static_cast<size_t>(ids[t]);
      float* y = rows.row(t);
      format->decode(weight.rows_data() + id * weight.row_bytes(), y, cols);
      if (low_rank.present()) low_rank.add_to_embedding(t, ids[t], y, cols);
      if (args.scale != 1.0F) {
        for (int64_t c = 0; c < cols; ++c) y[c] *= args.scale;
      }
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// mean_rows: means and runs of columns are split over threads; the rows of a mean are summed in
// order.
#include <algorithm>
#include <array>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {

Status run(CpuContext& context, const MeanRowsArgs& args) {
  if (context.dry_run) return {};
  constexpr int64_t kRun = 64;
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const int32_t* const first = context.at(args.first);
  const int32_t* const last = context.at(args.last);
  const int64_t cols = args.y.cols;
  const int64_t runs = (cols + kRun - 1) / kRun;
  const auto one = [&](int64_t item) {
    const int64_t i = item / runs;
    const int64_t begin = item % runs * kRun;
    const int64_t n = std::min(kRun, cols - begin);
    std::array<double, kRun> sums = {};
    for (int64_t t = first[i]; t <= last[i]; ++t) {
      const float* const row = x.row(t) + begin;
      for (int64_t c = 0; c < n; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(row[c]);
    }
    const double rows = last[i] - first[i] + 1;
    for (int64_t c = 0; c < n; ++c) {
      y.row(i)[begin + c] = static_cast<float>(sums[static_cast<size_t>(c)] / rows);
    }
  };
  const int64_t items = args.y.rows * runs;
  parallel_rows(context, items, kRun * std::max<int64_t>(args.x.rows, 1),
                [&](int64_t begin, int64_t end, int32_t) {
                  for (int64_t item = begin; item < end; ++item) one(item);
                });
  return {};
}

}  // namespace gen::engine::cpu

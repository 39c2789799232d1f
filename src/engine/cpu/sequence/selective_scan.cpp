// SPDX-License-Identifier: Apache-2.0
// selective_scan: sequences and runs of channels are split over threads; rows are processed in
// order.
#include "engine/cpu/sequence/selective_scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/sequence/selective_scan-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/sequence/selective_scan-inl.h"

#include <algorithm>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {

const SelectiveScanKernels* selective_scan_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kSelectiveScan);
}

Status run(CpuContext& context, const SelectiveScanArgs& args) {
  if (context.dry_run) return {};
  const ConstRows x = context.at(args.x);
  const ConstRows dt = context.at(args.dt);
  const ConstRows b = context.at(args.b);
  const ConstRows c = context.at(args.c);
  const Rows y = context.at(args.y);
  const StateRows* const sequences = context.at(args.sequences);
  const int64_t all = args.y.cols;
  SelectiveScanJob job = {};
  job.x_stride = x.stride;
  job.dt_stride = dt.stride;
  job.b_stride = b.stride;
  job.c_stride = c.stride;
  job.y_stride = y.stride;
  job.dt_bias = context.at(args.dt_bias);
  job.a = context.at(args.a);
  job.d = context.at(args.d);
  job.heads = args.dt.cols;
  job.channels = all / job.heads;
  job.groups = args.n_groups;
  job.size = args.b.cols / args.n_groups;
  const int64_t run = std::min(kScanChannels, kScanCells / job.size / kLanes * kLanes);
  const int64_t runs = (all + run - 1) / run;
  const auto one = [&](int64_t item) {
    const StateRows& rows = sequences[item / runs];
    const int64_t t = rows.first_row;
    SelectiveScanJob of = job;
    of.x = x.row(t);
    of.dt = dt.row(t);
    of.b = b.row(t);
    of.c = c.row(t);
    of.y = y.row(t);
    of.state = state_places(context, rows, args.layer);
    of.begin = item % runs * run;
    of.end = std::min(of.begin + run, all);
    context.kernels.selective_scan->scan(of);
  };
  const int64_t items = args.n_sequences * runs;
  const int64_t elements = args.y.rows * all * job.size / std::max<int64_t>(items, 1);
  parallel_rows(context, items, elements, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t item = begin; item < end; ++item) one(item);
  });
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// scan: sequences and runs of channels are split over threads; rows are processed in order.
#include "engine/cpu/sequence/scan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/sequence/scan-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/sequence/scan-inl.h"

#include <algorithm>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {
namespace {

constexpr int64_t kRunChannels = 64;

}  // namespace

const ScanKernels* scan_kernels(CpuLevel level) noexcept { return GEN_LANES_PICK(level, kScan); }

Status run(CpuContext& context, const ScanArgs& args) {
  if (context.dry_run) return {};
  const ConstRows a = context.at(args.a);
  const ConstRows b = context.at(args.b);
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const StateRows* const sequences = context.at(args.sequences);
  const int64_t channels = args.y.cols;
  const int64_t runs = (channels + kRunChannels - 1) / kRunChannels;
  const auto one = [&](int64_t item) {
    const StateRows& rows = sequences[item / runs];
    const int64_t begin = item % runs * kRunChannels;
    const int64_t t = rows.first_row;
    context.kernels.scan->scan({a.row(t), b.row(t), x.row(t), y.row(t), a.stride, b.stride,
                                x.stride, y.stride, state_places(context, rows, args.layer),
                                channels, begin, std::min(begin + kRunChannels, channels)});
  };
  const int64_t items = args.n_sequences * runs;
  const int64_t elements = args.y.rows * channels / std::max<int64_t>(items, 1);
  parallel_rows(context, items, elements, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t item = begin; item < end; ++item) one(item);
  });
  return {};
}

}  // namespace gen::engine::cpu

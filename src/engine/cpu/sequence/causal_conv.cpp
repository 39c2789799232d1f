// SPDX-License-Identifier: Apache-2.0
// causal_conv: sequences and runs of channels are split over threads. What the state becomes is
// copied rows.
#include "engine/cpu/sequence/causal_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/sequence/causal_conv-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/sequence/causal_conv-inl.h"

#include <algorithm>
#include <cstring>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {
namespace {

constexpr int64_t kRunChannels = 256;

void copy_row(const float* from, int64_t n, float* to) {
  if (from != nullptr) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
  } else {
    std::fill_n(to, n, 0.0F);
  }
}

/// The last taps - 1 rows that enter the state become it; the rows behind them are kept.
void move_rows(const CausalConvJob& job) {
  const int64_t n = job.end - job.begin;
  const int64_t end = job.state.settled;
  for (int64_t j = 0; j < job.taps - 1; ++j) {
    const float* const row = causal_conv_row(job, end - job.taps + 1 + j);
    copy_row(row == nullptr ? row : row + job.begin, n,
             job.state.write + j * job.channels + job.begin);
  }
  for (int64_t t = end; t < job.state.rows; ++t) {
    copy_row(job.x + t * job.x_stride + job.begin, n,
             job.state.keep + (t - end) * job.state.kept_stride + job.begin);
  }
}

}  // namespace

const CausalConvKernels* causal_conv_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kCausalConv);
}

Status run(CpuContext& context, const CausalConvArgs& args) {
  if (context.dry_run) return {};
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const StateRows* const sequences = context.at(args.sequences);
  const int64_t channels = args.y.cols;
  const int64_t runs = (channels + kRunChannels - 1) / kRunChannels;
  const auto one = [&](int64_t item) {
    const StateRows& rows = sequences[item / runs];
    CausalConvJob job = {};
    job.x = x.row(rows.first_row);
    job.y = y.row(rows.first_row);
    job.x_stride = x.stride;
    job.y_stride = y.stride;
    job.w = context.at(args.w);
    job.b = context.at(args.b);
    job.taps = args.taps;
    job.silu = args.act == Act::kSilu;
    job.state = state_places(context, rows, args.layer);
    job.channels = channels;
    job.begin = item % runs * kRunChannels;
    job.end = std::min(job.begin + kRunChannels, channels);
    context.kernels.causal_conv->convolve(job);
    move_rows(job);
  };
  const int64_t items = args.n_sequences * runs;
  const int64_t elements = args.y.rows * channels * args.taps / std::max<int64_t>(items, 1);
  parallel_rows(context, items, elements, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t item = begin; item < end; ++item) one(item);
  });
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// causal_conv: y[t, c] = act(sum_j w[j, c] x[t - K + 1 + j, c] + b[c]), fused multiply-adds from
// the bias with j ascending. What is not settled of earlier rows comes before the first one
// (engine/state_rows.h). A thread is a channel of a sequence. The bits of the CPU engine.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 64;

struct ConvView {
  ConstRowsView x;
  const float* w;
  const float* b;
  int32_t taps;
  bool silu;
  RowsView y;
  engine::StateLayer layer;
  const engine::StateRows* sequences;
};

/// The channel of row t of a sequence, below 0 of those before.
GEN_DEVICE float channel_before(const ConvView& of, const engine::StateRows& rows, int64_t t,
                                int64_t c) {
  if (t >= 0) return of.x.data[(rows.first_row + t) * of.x.stride + c];
  t += rows.unsettled;
  if (t >= 0) return at(rows.kept)[t * of.layer.kept_stride + of.layer.kept + c];
  const float* const read = at(rows.read);
  return read != nullptr ? read[of.layer.first + (of.taps - 1 + t) * of.y.cols + c] : 0.0F;
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) causal_conv_kernel(ConvView of) {
  after_predecessor();
  const int64_t c = int64_t{block_x()} * kThreads + thread_x();
  if (c >= of.y.cols) return;
  const engine::StateRows& rows = of.sequences[block_y()];
  float* const keep = at(rows.keep);
  const int64_t settled = keep != nullptr ? rows.certain : rows.n_rows;
  for (int64_t t = 0; t < rows.n_rows; ++t) {
    float sum = of.b != nullptr ? of.b[c] : 0.0F;
    for (int32_t j = 0; j < of.taps; ++j) {
      sum = multiply_add(of.w[j * of.y.cols + c], channel_before(of, rows, t - of.taps + 1 + j, c),
                         sum);
    }
    if (of.silu) sum = sum / (1.0F + exp_of(0.0F - sum));
    of.y.data[(rows.first_row + t) * of.y.stride + c] = sum;
    if (t >= settled) {
      keep[(t - settled) * of.layer.kept_stride + of.layer.kept + c] = channel_before(of, rows, t, c);
    }
  }
  float* const write = at(rows.write) + of.layer.first + c;
  for (int32_t j = 0; j < of.taps - 1; ++j) {
    write[j * of.y.cols] = channel_before(of, rows, settled - of.taps + 1 + j, c);
  }
}

}  // namespace

Status run(const OpContext& context, const engine::CausalConvArgs& args) {
  device::Dim3 grid = grid_of(args.y.cols, kThreads);
  grid.y = static_cast<unsigned>(args.n_sequences);
  const ConvView of = {view(args.x),
                       pointer(args.w),
                       pointer(args.b),
                       args.taps,
                       args.act == engine::Act::kSilu,
                       view(args.y),
                       args.layer,
                       pointer(args.sequences)};
  return run_kernel(context, "causal_conv", causal_conv_kernel, grid, kThreads, 0, of);
}

}  // namespace gen::cuda

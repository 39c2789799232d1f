// SPDX-License-Identifier: Apache-2.0
// scan: h = a[t, :] h + (b[t, :] x[t, :]), y[t, :] = h, for each channel and row after row of a
// sequence; the product is rounded first, the rest once. What is not settled of earlier rows comes
// first (engine/state_rows.h). A thread is a channel of a sequence, which is never split; y may be
// a, b or x, since a row is read before it is written. The bits of the CPU engine.
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 64;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    scan_kernel(ConstRowsView a, ConstRowsView b, ConstRowsView x, RowsView y,
                engine::StateLayer layer, const engine::StateRows* sequences) {
  after_predecessor();
  const int64_t c = int64_t{block_x()} * kThreads + thread_x();
  if (c >= y.cols) return;
  const engine::StateRows& rows = sequences[block_y()];
  const float* const read = at(rows.read);
  float* const write = at(rows.write) + layer.first + c;
  const float* const kept = at(rows.kept);
  float* const keep = at(rows.keep);
  float h = read != nullptr ? read[layer.first + c] : 0.0F;
  for (int64_t i = 0; i < rows.unsettled; ++i) {
    const float* const row = kept + i * layer.kept_stride + layer.kept + c;
    h = multiply_add(row[0], h, row[y.cols]);
  }
  const int64_t settled = keep != nullptr ? rows.certain : rows.n_rows;
  if (settled == 0) *write = h;
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    const int64_t t = rows.first_row + i;
    const float factor = a.data[t * a.stride + c];
    const float input = b.data[t * b.stride + c] * x.data[t * x.stride + c];
    if (i >= settled) {
      float* const row = keep + (i - settled) * layer.kept_stride + layer.kept + c;
      row[0] = factor;
      row[y.cols] = input;
    }
    h = multiply_add(factor, h, input);
    y.data[t * y.stride + c] = h;
    if (i + 1 == settled) *write = h;
  }
}

}  // namespace

Status run(const OpContext& context, const engine::ScanArgs& args) {
  device::Dim3 grid = grid_of(args.y.cols, kThreads);
  grid.y = static_cast<unsigned>(args.n_sequences);
  return run_kernel(context, "scan", scan_kernel, grid, kThreads, 0, view(args.a), view(args.b),
                    view(args.x), view(args.y), args.layer, pointer(args.sequences));
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// pack: rows into the forms that products read (activation_rows.h). A block is a row.
#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) pack_kernel(ConstRowsView x, PackedRows y) {
  after_predecessor();
  const int64_t t = block_x();
  auto* const to = reinterpret_cast<float*>(y.data + static_cast<size_t>(t) * y.at.bytes);
  // Where the rows lie packed already, only their other forms are made.
  const float* const from = x.data + t * x.stride;
  if (from != to) {
    for (int64_t d = thread_x(); d < x.cols; d += kThreads) to[d] = from[d];
  }
  if (!has_forms(y)) return;
  sync_threads();
  quantise_row(y, t);
}

}  // namespace

Status run(const OpContext& context, const engine::PackArgs& args) {
  const device::Dim3 grid = {static_cast<unsigned>(args.x.rows), 1, 1};
  return run_kernel(context, "pack", pack_kernel, grid, kThreads, 0, view(args.x),
                    packed_rows(args.y));
}

int32_t kernels_compiled_for() noexcept {
  int compute = 0;
  return device::compiled_for(pack_kernel, &compute).ok() ? compute : 0;
}

Status pack_in_place(const OpContext& context, const engine::Activations& rows) {
  if ((rows.forms & (engine::kActQ8 | engine::kActQ8K)) == 0) return {};
  const RowsView x = view(rows);
  const device::Dim3 grid = {static_cast<unsigned>(rows.rows), 1, 1};
  return run_kernel(context, "pack", pack_kernel, grid, kThreads, 0,
                    ConstRowsView{x.data, x.rows, x.cols, x.stride}, packed_rows(rows));
}

}  // namespace gen::cuda

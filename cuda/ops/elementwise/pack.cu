// SPDX-License-Identifier: Apache-2.0
// pack: converts rows to the forms that products read (activation_rows.h). A thread block is 1024
// columns of a row, a warp of it a quantisation block of 32 or 256. Each element is read once.
#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 256;
constexpr int32_t kEach = 4;
constexpr int32_t kCols = kThreads * kEach;

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads) pack_kernel(ConstRowsView x, PackedRows y) {
  after_predecessor();
  const int64_t t = block_x();
  const int32_t first = block_y() * kCols;
  const auto cols = static_cast<int32_t>(x.cols);
  const int32_t end = cols - first < kCols ? cols : first + kCols;
  uint8_t* const to = y.data + static_cast<size_t>(t) * y.at.bytes;
  // If the float32 rows are in place already, only the other forms are computed.
  const float* const from = x.data + t * x.stride;
  if (from != reinterpret_cast<const float*>(to)) {
    float values[kEach];
    GEN_UNROLL
    for (int32_t i = 0; i < kEach; ++i) {
      const int32_t d = first + i * kThreads + thread_x();
      values[i] = d < end ? from[d] : 0.0F;
    }
    GEN_UNROLL
    for (int32_t i = 0; i < kEach; ++i) {
      const int32_t d = first + i * kThreads + thread_x();
      if (d < end) put_column(to, y.bf16, d, values[i]);
    }
  }
  if (has_forms(y)) {
    quantise_columns(y, t, first, end, [&](int32_t d) -> float { return from[d]; });
  }
}

Status pack(const OpContext& context, const ConstRowsView& x, const PackedRows& y) {
  const device::Dim3 grid = {static_cast<unsigned>(x.rows),
                             static_cast<unsigned>((x.cols + kCols - 1) / kCols), 1};
  return run_kernel(context, "pack", pack_kernel, grid, kThreads, 0, x, y);
}

}  // namespace

Status run(const OpContext& context, const engine::PackArgs& args) {
  // Rows that are in place were written in their first form; only the others are computed.
  if (args.x.data.address() == args.y.data.address()) return pack_in_place(context, args.y);
  return pack(context, view(args.x), packed_rows(args.y));
}

int32_t kernels_compiled_for() noexcept {
  int compute = 0;
  return device::compiled_for(pack_kernel, &compute).ok() ? compute : 0;
}

Status pack_in_place(const OpContext& context, const engine::Activations& rows) {
  if (rows.bf16 || (rows.forms & (engine::kActQ8 | engine::kActQ8K)) == 0) return {};
  const RowsView x = view(rows);
  return pack(context, {x.data, x.rows, x.cols, x.stride}, packed_rows(rows));
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// selective_scan: the recurrence of Mamba, row after row of a sequence (engine::SelectiveScanArgs).
//   A channel of a sequence has sixteen threads, each with every sixteenth number of its state in
//   registers; a block has sixteen channels. Each row's delta is computed by all threads that need
//   it. What is not settled of earlier rows comes first (engine/state_rows.h). y may be x, which a
//   warp reads before it writes. The bits of the CPU engine.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kLanes = 16;
constexpr int32_t kChannels = 16;
constexpr int32_t kThreads = kLanes * kChannels;

struct SelectiveScanView {
  ConstRowsView x;
  ConstRowsView dt;
  ConstRowsView b;
  ConstRowsView c;
  const float* dt_bias;
  const float* a;
  const float* d;
  RowsView y;
  int32_t n_groups;
  engine::StateLayer layer;
  const engine::StateRows* sequences;
};

/// A thread's numbers of one channel's state, of N <= 16 kParts, with what decays them.
template <bool kOwnRows, int32_t kParts>
struct Cells {
  float s[static_cast<size_t>(kParts)];
  float a[static_cast<size_t>(kOwnRows ? kParts : 1)];
  int32_t size;  // N

  GEN_DEVICE void load(const float* state, const float* of_a) {
    const int32_t lane = thread_x() % kLanes;
    GEN_UNROLL
    for (int32_t i = 0; i < kParts; ++i) {
      const bool there = i * kLanes + lane < size;
      s[i] = there && state != nullptr ? state[i * kLanes + lane] : 0.0F;
      if (kOwnRows) a[i] = there ? of_a[i * kLanes + lane] : 0.0F;
    }
    if (!kOwnRows) a[0] = of_a[0];
  }
  GEN_DEVICE void store(float* state) const {
    const int32_t lane = thread_x() % kLanes;
    GEN_UNROLL
    for (int32_t i = 0; i < kParts; ++i) {
      if (i * kLanes + lane < size) state[i * kLanes + lane] = s[i];
    }
  }
  /// One row; its part of the sum with c.
  GEN_DEVICE float recur(float delta, float x, const float* b, const float* c) {
    const int32_t lane = thread_x() % kLanes;
    const float input = delta * x;
    float decay = exp_of(delta * a[0]);
    float sum = 0.0F;
    GEN_UNROLL
    for (int32_t i = 0; i < kParts; ++i) {
      const int32_t n = i * kLanes + lane;
      if (n >= size) break;
      if (kOwnRows && i > 0) decay = exp_of(delta * a[i]);
      s[i] = multiply_add(decay, s[i], b[n] * input);
      sum = multiply_add(s[i], c[n], sum);
    }
    return sum;
  }
};

template <bool kOwnRows, int32_t kParts>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1) selective_scan_kernel(SelectiveScanView of) {
  after_predecessor();
  const int64_t all = of.y.cols;
  const int64_t heads = of.dt.cols;
  const int64_t in_head = all / heads;
  const int64_t wanted = int64_t{block_x()} * kChannels + thread_x() / kLanes;
  const bool own = wanted < all;  // threads beyond the last channel take part in sums
  const int64_t p = own ? wanted : all - 1;
  const int64_t h = p / in_head;
  const int32_t size = static_cast<int32_t>(of.b.cols / of.n_groups);
  const int64_t of_group = heads / of.n_groups;
  const int64_t group = h / of_group * size;
  const int32_t lane = thread_x() % kLanes;
  const engine::StateRows& rows = of.sequences[block_y()];
  const float* const read = at(rows.read);
  const int64_t cells_at = of.layer.first + p * size;
  Cells<kOwnRows, kParts> cells;
  cells.size = size;
  cells.load(read != nullptr ? read + cells_at : nullptr, of.a + (kOwnRows ? p * size : h));
  float* const keep = at(rows.keep);
  for (int64_t i = 0; i < rows.unsettled; ++i) {
    const float* const row = at(rows.kept) + i * of.layer.kept_stride + of.layer.kept;
    const float* const b = row + all + heads + group;
    cells.recur(row[all + h], row[p], b, b);
  }
  const int64_t settled = keep != nullptr ? rows.certain : rows.n_rows;
  if (settled == 0 && own) cells.store(at(rows.write) + cells_at);
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    const int64_t t = rows.first_row + i;
    const float x = of.x.data[t * of.x.stride + p];
    const float delta = softplus(of.dt.data[t * of.dt.stride + h] + of.dt_bias[h]);
    const float* const b = of.b.data + t * of.b.stride + group;
    const float* const c = of.c.data + t * of.c.stride + group;
    const float sum = sum_sixteen(cells.recur(delta, x, b, c));
    if (own && lane == 0) of.y.data[t * of.y.stride + p] = multiply_add(of.d[h], x, sum);
    if (!own) continue;
    if (i + 1 == settled) cells.store(at(rows.write) + cells_at);
    if (i < settled) continue;
    float* const row = keep + (i - settled) * of.layer.kept_stride + of.layer.kept;
    if (lane == 0) row[p] = x;
    if (p % in_head != 0) continue;
    if (lane == 0) row[all + h] = delta;
    for (int32_t n = lane; h % of_group == 0 && n < size; n += kLanes) {
      row[all + heads + group + n] = b[n];
    }
  }
}

template <bool kOwnRows>
Status run_rows(const OpContext& context, const SelectiveScanView& of, device::Dim3 grid) {
  const int64_t size = of.b.cols / of.n_groups;
  const auto kernel = size <= 16    ? selective_scan_kernel<kOwnRows, 1>
                      : size <= 64  ? selective_scan_kernel<kOwnRows, 4>
                      : size <= 128 ? selective_scan_kernel<kOwnRows, 8>
                                    : selective_scan_kernel<kOwnRows, 16>;
  return run_kernel(context, "selective_scan", kernel, grid, kThreads, 0, of);
}

}  // namespace

Status run(const OpContext& context, const engine::SelectiveScanArgs& args) {
  static_assert(engine::kMaxStateSize == 16 * kLanes);
  const SelectiveScanView of = {view(args.x),    view(args.dt),          view(args.b),
                                view(args.c),    pointer(args.dt_bias),  pointer(args.a),
                                pointer(args.d), view(args.y),           args.n_groups,
                                args.layer,      pointer(args.sequences)};
  device::Dim3 grid = grid_of(args.y.cols, kChannels);
  grid.y = static_cast<unsigned>(args.n_sequences);
  return args.y.cols == args.dt.cols ? run_rows<true>(context, of, grid)
                                     : run_rows<false>(context, of, grid);
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// delta_net: the gated delta rule, row after row of a sequence (engine::DeltaNetArgs).
//   A block is a warp: kColumns columns of one head's state, which it holds in shared memory; a
//   thread is a column, so nothing is added across threads but the squares of q and k. The sums
//   over k_dim are those of even and of odd rows of the state, added at the end. What is not
//   settled of earlier rows comes first (engine/state_rows.h). The bits of the CPU engine.
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/ops_run.h"

namespace gen::cuda {
namespace {

constexpr int32_t kColumns = 32;
constexpr int32_t kLanes = 16;

struct DeltaView {
  ConstRowsView qkv;
  ConstRowsView alpha;
  ConstRowsView beta;
  const float* dt;
  const float* a;
  engine::DeltaShape shape;
  RowsView y;
  engine::StateLayer layer;
  const engine::StateRows* sequences;
};

GEN_DEVICE int64_t k_cols(const engine::DeltaShape& of) { return int64_t{of.k_heads} * of.k_dim; }
GEN_DEVICE int64_t v_cols(const engine::DeltaShape& of) { return int64_t{of.v_heads} * of.v_dim; }
GEN_DEVICE int32_t k_head_of(const engine::DeltaShape& of, int32_t h) {
  return of.grouped ? h / (of.v_heads / of.k_heads) : h % of.k_heads;
}
/// Whether a value head is the first of its key head.
GEN_DEVICE bool leads(const engine::DeltaShape& of, int32_t h) {
  return of.grouped ? h % (of.v_heads / of.k_heads) == 0 : h < of.k_heads;
}

/// to = x / sqrt(sum x^2 + eps) * scale, by a warp.
GEN_DEVICE void unit(const float* x, float eps, float scale, Shared<float> to, int32_t n) {
  const int32_t lane = lane_of_warp();
  float sum = 0.0F;
  if (lane < kLanes) {
    for (int32_t i = lane; i < n; i += kLanes) sum = multiply_add(x[i], x[i], sum);
  }
  const float squares = shuffle(sum_sixteen(sum), 0);
  const float factor = scale / square_root(squares + eps);
  for (int32_t i = lane; i < n; i += kColumns) to[i] = x[i] * factor;
}

/// One row of the recurrence for a column; S^T q after it.
GEN_DEVICE float recur(Shared<float> state, int32_t n, Shared<float> q, Shared<float> k, float v,
                       float decay, float strength) {
  const int32_t column = thread_x();
  float even = 0.0F;
  float odd = 0.0F;
  for (int32_t i = 0; i < n; i += 2) {
    even = multiply_add(state[i * kColumns + column], k[i], even);
    odd = multiply_add(state[(i + 1) * kColumns + column], k[i + 1], odd);
  }
  const float change = strength * (v - decay * (even + odd));
  even = 0.0F;
  odd = 0.0F;
  for (int32_t i = 0; i < n; i += 2) {
    const float first = multiply_add(change, k[i], decay * state[i * kColumns + column]);
    const float second = multiply_add(change, k[i + 1], decay * state[(i + 1) * kColumns + column]);
    state[i * kColumns + column] = first;
    state[(i + 1) * kColumns + column] = second;
    even = multiply_add(first, q[i], even);
    odd = multiply_add(second, q[i + 1], odd);
  }
  return even + odd;
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kColumns) delta_net_kernel(DeltaView of) {
  after_predecessor();
  const engine::DeltaShape& shape = of.shape;
  const int32_t n = shape.k_dim;
  const int32_t strips = (shape.v_dim + kColumns - 1) / kColumns;
  const int32_t h = block_x() / strips;
  const int32_t column = block_x() % strips * kColumns + thread_x();
  const bool own = column < shape.v_dim;  // heads may end within a block
  const engine::StateRows& rows = of.sequences[block_y()];
  const Shared<float> state = dynamic_shared<float>(0, static_cast<size_t>(n * kColumns));
  const auto behind = static_cast<size_t>(n * kColumns);
  const Shared<float> q = dynamic_shared<float>(behind * sizeof(float), static_cast<size_t>(n));
  const Shared<float> k = dynamic_shared<float>((behind + static_cast<size_t>(n)) * sizeof(float),
                                                static_cast<size_t>(n));
  const int64_t cells = of.layer.first + int64_t{h} * n * shape.v_dim + column;
  const float* const read = at(rows.read);
  for (int32_t i = 0; i < n; ++i) {
    state[i * kColumns + thread_x()] =
        own && read != nullptr ? read[cells + int64_t{i} * shape.v_dim] : 0.0F;
  }
  const auto store = [&]() {
    for (int32_t i = 0; own && i < n; ++i) {
      at(rows.write)[cells + int64_t{i} * shape.v_dim] = state[i * kColumns + thread_x()];
    }
  };
  const int64_t key = int64_t{k_head_of(shape, h)} * n;
  const int64_t value = int64_t{h} * shape.v_dim + column;
  const int64_t decay_at = k_cols(shape) + v_cols(shape) + h;
  for (int64_t t = 0; t < rows.unsettled; ++t) {
    const float* const row = at(rows.kept) + t * of.layer.kept_stride + of.layer.kept;
    for (int32_t i = thread_x(); i < n; i += kColumns) k[i] = q[i] = row[key + i];
    sync_threads();
    recur(state, n, q, k, own ? row[k_cols(shape) + value] : 0.0F, row[decay_at],
          row[decay_at + shape.v_heads]);
    sync_threads();
  }
  float* const keep = at(rows.keep);
  const int64_t settled = keep != nullptr ? rows.certain : rows.n_rows;
  if (settled == 0) store();
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    const int64_t t = rows.first_row + i;
    const float* const row = of.qkv.data + t * of.qkv.stride;
    unit(row + key, shape.eps, 1.0F / square_root(static_cast<float>(n)), q, n);
    unit(row + k_cols(shape) + key, shape.eps, 1.0F, k, n);
    const float decay =
        exp_of(of.a[h] * softplus(of.alpha.data[t * of.alpha.stride + h] + of.dt[h]));
    const float strength = 1.0F / (1.0F + exp_of(0.0F - of.beta.data[t * of.beta.stride + h]));
    const float v = own ? row[2 * k_cols(shape) + value] : 0.0F;
    sync_threads();
    const float y = recur(state, n, q, k, v, decay, strength);
    if (own) of.y.data[t * of.y.stride + value] = y;
    if (i + 1 == settled) store();
    if (i >= settled) {
      float* const kept = keep + (i - settled) * of.layer.kept_stride + of.layer.kept;
      const bool first = block_x() % strips == 0;
      for (int32_t d = thread_x(); first && leads(shape, h) && d < n; d += kColumns) {
        kept[key + d] = k[d];
      }
      if (own) kept[k_cols(shape) + value] = v;
      if (first && thread_x() == 0) {
        kept[decay_at] = decay;
        kept[decay_at + shape.v_heads] = strength;
      }
    }
    sync_threads();
  }
}

}  // namespace

Status run(const OpContext& context, const engine::DeltaNetArgs& args) {
  const engine::DeltaShape& shape = args.shape;
  const int32_t strips = (shape.v_dim + kColumns - 1) / kColumns;
  const device::Dim3 grid = {static_cast<unsigned>(shape.v_heads * strips),
                             static_cast<unsigned>(args.n_sequences), 1};
  const DeltaView of = {view(args.qkv),   view(args.alpha), view(args.beta),
                        pointer(args.dt), pointer(args.a),  shape,
                        view(args.y),     args.layer,       pointer(args.sequences)};
  const auto floats = static_cast<size_t>(shape.k_dim) * (kColumns + 2);
  return run_kernel(context, "delta_net", delta_net_kernel, grid, kColumns, floats * sizeof(float),
                    of);
}

}  // namespace gen::cuda

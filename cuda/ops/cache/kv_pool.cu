// SPDX-License-Identifier: Apache-2.0
// Entry `to` of caches becomes the mean of entries [first, first + n), of which it may be one. Keys
// with angles are first rotated from their own position to the middle one. A block is a side of a
// layer; a thread owns an element or a pair of every head and sums it over the entries in double
// precision. Then the block stores the row. Same bits as engine/kv/memory_ops_run.cpp.
#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/cache/kv_store.cuh"
#include "cuda/ops/cache/memory_ops.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;
constexpr int32_t kWarps = kThreads / 32;

template <KvOrder kOrder>
GEN_DEVICE double decoded(const KvSideForm& form, const KvPlace& place, int32_t d) {
  return static_cast<double>(element_at<kOrder>(form.format, place, form.head_dim, d));
}

/// Unit i of [heads][units] into the row: a pair of the first n_dims elements, or one behind them.
template <KvOrder kOrder>
GEN_DEVICE void pool_unit(const KvSideForm& form, const Blocks& blocks, const TurnView& turn,
                          int32_t i, int32_t first, int32_t n, const Shared<double>& sums) {
  const int32_t pairs = turn.n_dims > 0 ? turn.n_dims / 2 : 0;
  const int32_t units = form.head_dim - pairs;
  const int32_t head = i / units;
  const int32_t unit = i % units;
  const bool turned = unit < pairs;
  const int32_t a = !turned ? unit + pairs : turn.adjacent != 0 ? 2 * unit : unit;
  const int32_t b = turn.adjacent != 0 ? 2 * unit + 1 : unit + pairs;
  double sum_a = 0.0;
  double sum_b = 0.0;
  for (int32_t r = 0; r < n; ++r) {
    const KvPlace place = head_place(form, place_of(form, blocks, first + r), head);
    const double x = decoded<kOrder>(form, place, a);
    if (!turned) {
      sum_a += x;
      continue;
    }
    const double y = decoded<kOrder>(form, place, b);
    double sine = 0.0;
    double cosine = 0.0;
    sincos_of((0.5 * (n - 1) - r) * static_cast<double>(turn.inv_freq[unit]), &sine, &cosine);
    sum_a += x * cosine - y * sine;
    sum_b += x * sine + y * cosine;
  }
  sums[head * form.head_dim + a] = sum_a;
  if (turned) sums[head * form.head_dim + b] = sum_b;
}

template <KvOrder kOrder>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    kv_pool_kernel(EntriesView entries, const TurnView* turns, int32_t row_floats,
                   uint32_t row_offset, uint32_t space_offset, int32_t first, int32_t n,
                   int32_t to) {
  after_predecessor();
  const engine::KvLayer& layer = entries.layers[block_x()];
  const KvSideForm& form = kOrder == KvOrder::kKeys ? layer.k : layer.v;
  const Blocks blocks = {entries.blocks, entries.cells, entries.first_cell, layer.block_size};
  const Shared<double> sums = dynamic_shared<double>(0, static_cast<size_t>(row_floats));
  const Shared<float> row = dynamic_shared<float>(row_offset, static_cast<size_t>(row_floats));
  TurnView turn = turns[block_x()];
  if (kOrder == KvOrder::kValues) turn.n_dims = -1;
  const int32_t pairs = turn.n_dims > 0 ? turn.n_dims / 2 : 0;
  const int32_t units = layer.kv_heads * (form.head_dim - pairs);
  for (int32_t i = thread_x(); i < units; i += kThreads) {
    pool_unit<kOrder>(form, blocks, turn, i, first, n, sums);
  }
  sync_threads();
  for (int32_t i = thread_x(); i < layer.kv_heads * form.head_dim; i += kThreads) {
    const double sum = sums[i];
    row[i] = static_cast<float>(sum / n);
  }
  sync_threads();
  store_entry(form, place_of(form, blocks, to), layer.kv_heads, row, space_offset);
}

}  // namespace

Status kv_pool(const OpContext& context, const EntriesView& entries, const TurnView* turns,
               int32_t n_layers, int32_t row_floats, int32_t first, int32_t n, int32_t to) {
  const size_t floats = (static_cast<size_t>(row_floats) + 3) / 4 * 4;
  const size_t row_offset = floats * sizeof(double);
  const size_t space_offset = row_offset + floats * sizeof(float);
  const device::Dim3 grid = {static_cast<unsigned>(n_layers), 1, 1};
  const auto side = [&](const char* name, auto* kernel) {
    return run_kernel(context, name, kernel, grid, kThreads, space_offset + kWarps * kQ3SpaceBytes,
                      entries, turns, row_floats, static_cast<uint32_t>(row_offset),
                      static_cast<uint32_t>(space_offset), first, n, to);
  };
  GEN_TRY(side("kv_pool_keys", &kv_pool_kernel<KvOrder::kKeys>));
  return side("kv_pool_values", &kv_pool_kernel<KvOrder::kValues>);
}

}  // namespace gen::cuda

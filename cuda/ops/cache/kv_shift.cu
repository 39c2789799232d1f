// SPDX-License-Identifier: Apache-2.0
// Moves entries [first + n, end) of caches to [first, end - n). A thread owns a byte of an entry,
// or a pair of elements of keys that are rotated back by `turned` positions, and processes the
// entries in order, so there is no race between threads. Keys are decoded, rotated in double
// precision and encoded again. Same bits as engine/kv/memory_ops_run.cpp.
#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/cache/kv_bytes.cuh"
#include "cuda/ops/cache/memory_ops.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = 128;

struct Element {
  const KvSideForm& form;
  int32_t d;

  [[nodiscard]] GEN_DEVICE double get(const KvPlace& place) const {
    const size_t index = static_cast<size_t>(d * kTile + place.lane);
    return static_cast<double>(form.format == KvFormat::kF32 ? load_float(place.tile + index * 4)
                                                             : load_half(place.tile + index * 2));
  }
  GEN_DEVICE void put(const KvPlace& place, double value) const {
    const size_t index = static_cast<size_t>(d * kTile + place.lane);
    const auto rounded = static_cast<float>(value);
    if (form.format == KvFormat::kF32) {
      *reinterpret_cast<float*>(place.tile + index * 4) = rounded;
    } else {
      *reinterpret_cast<uint16_t*>(place.tile + index * 2) = f32_to_f16(rounded);
    }
  }
};

/// Pair or single element `unit` of a head's keys, through all entries.
GEN_DEVICE void shift_turned(const KvSideForm& form, const Blocks& blocks, const TurnView& turn,
                             int32_t head, int32_t unit, int32_t first, int32_t n, int32_t end,
                             int32_t turned) {
  const int32_t pairs = turn.n_dims / 2;
  if (unit >= pairs) {
    const Element element = {form, unit + pairs};
    for (int32_t e = first + n; e < end; ++e) {
      const double value = element.get(head_place(form, place_of(form, blocks, e), head));
      element.put(head_place(form, place_of(form, blocks, e - n), head), value);
    }
    return;
  }
  const Element a = {form, turn.adjacent != 0 ? 2 * unit : unit};
  const Element b = {form, turn.adjacent != 0 ? 2 * unit + 1 : unit + pairs};
  double sine = 0.0;
  double cosine = 0.0;
  sincos_of(-static_cast<double>(turned) * static_cast<double>(turn.inv_freq[unit]), &sine,
            &cosine);
  for (int32_t e = first + n; e < end; ++e) {
    const KvPlace from = head_place(form, place_of(form, blocks, e), head);
    const KvPlace to = head_place(form, place_of(form, blocks, e - n), head);
    const double x = a.get(from);
    const double y = b.get(from);
    a.put(to, x * cosine - y * sine);
    b.put(to, x * sine + y * cosine);
  }
}

GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads)
    kv_shift_kernel(EntriesView entries, const TurnView* turns, int32_t first, int32_t n,
                    int32_t end, int32_t turned) {
  after_predecessor();
  const engine::KvLayer& layer = entries.layers[block_y() / 2];
  const bool keys = block_y() % 2 == 0;
  const KvSideForm& form = keys ? layer.k : layer.v;
  const Blocks blocks = {entries.blocks, entries.cells, entries.first_cell, layer.block_size};
  const int32_t i = block_x() * kThreads + thread_x();
  const TurnView turn = turns[block_y() / 2];
  if (keys && turn.n_dims >= 0) {
    const int32_t units = form.head_dim - turn.n_dims / 2;
    if (i >= layer.kv_heads * units) return;
    shift_turned(form, blocks, turn, i / units, i % units, first, n, end, turned);
    return;
  }
  const int32_t bytes =
      layer.kv_heads * entry_bytes(form) + shared_entry_bytes(form, layer.kv_heads);
  if (i >= bytes) return;
  for (int32_t e = first + n; e < end; ++e) {
    const uint8_t* const from = byte_of(form, place_of(form, blocks, e), layer.kv_heads, i);
    *byte_of(form, place_of(form, blocks, e - n), layer.kv_heads, i) = *from;
  }
}

}  // namespace

int32_t kv_columns(const engine::KvSideForm& form, int32_t heads) {
  const int32_t bytes = heads * entry_bytes(form) + shared_entry_bytes(form, heads);
  const int32_t elements = heads * form.head_dim;
  return bytes > elements ? bytes : elements;
}

Status kv_shift(const OpContext& context, const EntriesView& entries, const TurnView* turns,
                int32_t n_layers, int32_t columns, int32_t first, int32_t n, int32_t end,
                int32_t turn) {
  device::Dim3 grid = grid_of(columns, kThreads);
  grid.y = static_cast<unsigned>(2 * n_layers);
  return run_kernel(context, "kv_shift", kv_shift_kernel, grid, kThreads, 0, entries, turns, first,
                    n, end, turn);
}

}  // namespace gen::cuda

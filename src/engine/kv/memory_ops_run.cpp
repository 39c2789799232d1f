// SPDX-License-Identifier: Apache-2.0
// See memory_ops_run.h.
#include "engine/kv/memory_ops_run.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "engine/kv/codec.h"
#include "engine/rope/rope.h"

namespace gen::engine {
namespace {

Status run(const CopyArgs& args, std::ptrdiff_t distance) {
  if (args.bytes == 0) return {};
  std::memcpy(Access::pointer(args.to, distance), Access::pointer(args.from, distance), args.bytes);
  return {};
}

Status run(const FillArgs& args, std::ptrdiff_t distance) {
  if (args.bytes == 0) return {};
  std::memset(Access::pointer(args.at, distance), static_cast<int>(args.value), args.bytes);
  return {};
}

Status run(const KvCopyArgs& args, std::ptrdiff_t distance) {
  GEN_ASSERT(args.from.layers.size() == args.to.layers.size());
  for (size_t i = 0; i < args.from.layers.size(); ++i) {
    const KvView from = view_entries(args.from.layers[i], args.from.tables, 0, distance);
    const KvView to = view_entries(args.to.layers[i], args.to.tables, 0, distance);
    for (const KvRun& run : args.runs) {
      if (args.sides != KvSides::kValues) {
        kv_copy(from.k, run.from, to.k, run.to, from.kv_heads, run.count);
      }
      if (args.sides != KvSides::kKeys) {
        kv_copy(from.v, run.from, to.v, run.to, from.kv_heads, run.count);
      }
    }
  }
  return {};
}

/// Scratch memory, allocated before anything is written.
struct Scratch {
  explicit Scratch(std::span<const KvLayer> layers) {
    size_t head = 0;
    size_t all_heads = 0;
    for (const KvLayer& layer : layers) {
      const auto most = static_cast<size_t>(std::max(layer.k.head_dim, layer.v.head_dim));
      head = std::max(head, most);
      all_heads = std::max(all_heads, most * static_cast<size_t>(layer.kv_heads));
    }
    turned.resize(head);
    sums.resize(head);
    row.resize(all_heads);
  }
  std::vector<double> turned;
  std::vector<double> sums;
  std::vector<float> row;
};

/// Runs of n entries do not overlap their targets.
void move_down(const KvSide& side, int32_t heads, const KvShiftArgs& args) noexcept {
  if (args.n == 0) return;
  for (int64_t from = int64_t{args.first} + args.n; from < args.end; from += args.n) {
    const int64_t run = std::min<int64_t>(args.n, args.end - from);
    kv_copy(side, from, side, from - args.n, heads, run);
  }
}

void move_turned(const KvSide& side, int32_t heads, const KvShiftArgs& args, const RopeTurn& turn,
                 Scratch& scratch) noexcept {
  const auto dim = static_cast<size_t>(side.head_dim);
  for (int32_t entry = args.first + args.n; entry < args.end; ++entry) {
    for (int32_t head = 0; head < heads; ++head) {
      float* const key = scratch.row.data() + static_cast<size_t>(head) * dim;
      kv_get(side, entry, head, key);
      std::copy_n(key, dim, scratch.turned.begin());
      turn.apply(scratch.turned.data());
      std::transform(scratch.turned.begin(),
                     scratch.turned.begin() + static_cast<std::ptrdiff_t>(dim), key,
                     [](double x) { return static_cast<float>(x); });
    }
    kv_put(side, entry - args.n, heads, scratch.row.data());
  }
}

Status run(const KvShiftArgs& args, std::ptrdiff_t distance) {
  GEN_ASSERT(args.n >= 0 && args.turn > 0 && args.ropes.size() == args.entries.layers.size());
  Scratch scratch(args.entries.layers);
  std::vector<std::optional<RopeTurn>> turns(args.ropes.size());
  for (size_t i = 0; i < turns.size(); ++i) {
    if (args.ropes[i] != nullptr) turns[i].emplace(*args.ropes[i], -static_cast<double>(args.turn));
  }
  for (size_t i = 0; i < turns.size(); ++i) {
    const KvView view =
        view_entries(args.entries.layers[i], args.entries.tables, args.end, distance);
    move_down(view.v, view.kv_heads, args);
    if (turns[i].has_value()) {
      move_turned(view.k, view.kv_heads, args, *turns[i], scratch);
    } else {
      move_down(view.k, view.kv_heads, args);
    }
  }
  return {};
}

void pool(const KvSide& side, int32_t heads, const KvPoolArgs& args, const RopeTable* table,
          Scratch& scratch) noexcept {
  const auto dim = static_cast<size_t>(side.head_dim);
  double* const sums = scratch.sums.data();
  double* const turned = scratch.turned.data();
  for (int32_t head = 0; head < heads; ++head) {
    float* const out = scratch.row.data() + static_cast<size_t>(head) * dim;
    std::fill_n(sums, dim, 0.0);
    for (int32_t r = 0; r < args.n; ++r) {
      kv_get(side, args.first + r, head, out);
      std::copy_n(out, dim, turned);
      if (table != nullptr) rope_turn(*table, 0.5 * (args.n - 1) - r, turned);
      for (size_t d = 0; d < dim; ++d) sums[d] += turned[d];
    }
    for (size_t d = 0; d < dim; ++d) out[d] = static_cast<float>(sums[d] / args.n);
  }
  kv_put(side, args.to, heads, scratch.row.data());
}

Status run(const KvPoolArgs& args, std::ptrdiff_t distance) {
  GEN_ASSERT(args.n > 0 && args.ropes.size() == args.entries.layers.size());
  Scratch scratch(args.entries.layers);
  for (size_t i = 0; i < args.ropes.size(); ++i) {
    const KvView view =
        view_entries(args.entries.layers[i], args.entries.tables, args.first + args.n, distance);
    pool(view.k, view.kv_heads, args, args.ropes[i], scratch);
    pool(view.v, view.kv_heads, args, nullptr, scratch);
  }
  return {};
}

}  // namespace

KvView view_entries(const KvLayer& layer, const KvTables& tables, int32_t n,
                    std::ptrdiff_t distance) noexcept {
  KvRows rows;
  rows.entries = n;
  rows.first_cell = tables.first_cell;
  KvView view = resolve(layer, rows, distance).view;
  for (KvSide* side : {&view.k, &view.v}) {
    side->blocks = tables.blocks.data();
    side->cells = tables.cells.data();
  }
  view.positions = tables.positions.data();
  view.log_weights = tables.log_weights.data();
  return view;
}

Status run_memory_op(const MemoryOp& op, std::ptrdiff_t distance) {
  return std::visit([&](const auto& args) { return run(args, distance); }, op);
}

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// See op_cost.h.
#include "engine/trace/op_cost.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "engine/kv/codec.h"

namespace gen::engine {
namespace {

OpCost cost(const LinearArgs& args, std::span<const KvRows>) noexcept {
  const Weight& weight = *args.weight;
  const int64_t matrices = weight.role() == WeightRole::kGated ? 2 : 1;
  return {static_cast<int64_t>(weight.stream_bytes()),
          args.y.rows * matrices * weight.out_features() * weight.in_features()};
}

/// Assumes that rows choose different experts as far as possible; no expert is read twice.
OpCost cost(const ExpertsArgs& args, std::span<const KvRows>) noexcept {
  const Weight& weight = *args.weight;
  const int64_t matrices = weight.role() == WeightRole::kGated ? 2 : 1;
  const int64_t read = std::min(args.y.rows, weight.count());
  return {static_cast<int64_t>(weight.stream_bytes()) / weight.count() * read,
          args.y.rows * matrices * weight.out_features() * weight.in_features()};
}

int64_t head_bytes(const KvSideForm& side) noexcept {
  const size_t tile =
      kv_codec(side.format).tile_bytes(side.order, static_cast<size_t>(side.head_dim));
  return static_cast<int64_t>(tile) / kKvTile;
}

/// Causal attention within the window; the rows of trees attend to fewer entries.
OpCost cost(const AttentionArgs& args, std::span<const KvRows> sequences) noexcept {
  const KvLayer& layer = args.layer;
  int64_t window = layer.window > 0 ? layer.window : std::numeric_limits<int64_t>::max();
  if (layer.chunk > 0) window = std::min<int64_t>(window, layer.chunk);
  OpCost sum;
  for (const KvRows& rows : sequences) {
    int64_t seen = 0;
    for (int64_t i = 0; i < rows.n_rows; ++i) {
      seen += std::min(rows.first_entry + i + 1, window);
    }
    sum.products += seen * args.n_heads * (args.k_dim + args.v_dim);
    // Entries from the first row's window start to the last row are read once.
    const int64_t entries = rows.n_rows + std::min<int64_t>(rows.first_entry, window - 1);
    sum.bytes += entries * layer.kv_heads * (head_bytes(layer.k) + head_bytes(layer.v));
  }
  return sum;
}

OpCost cost(const ScanArgs& args, std::span<const KvRows>) noexcept {
  const auto states = static_cast<int64_t>(sizeof(float)) * args.n_sequences * args.y.cols;
  return {2 * states, 2 * args.y.rows * args.y.cols};
}

OpCost cost(const CausalConvArgs& args, std::span<const KvRows>) noexcept {
  return {0, args.taps * args.y.rows * args.y.cols};
}

/// A state is read and written once; each row is three products with it.
OpCost cost(const DeltaNetArgs& args, std::span<const KvRows>) noexcept {
  const int64_t cells = args.shape.v_cols() * args.shape.k_dim;
  return {2 * static_cast<int64_t>(sizeof(float)) * args.n_sequences * cells,
          3 * args.y.rows * cells};
}

/// Per number of state a product each of decay, input and output.
OpCost cost(const SelectiveScanArgs& args, std::span<const KvRows>) noexcept {
  const int64_t cells = args.y.cols * (args.b.cols / args.n_groups);
  return {2 * static_cast<int64_t>(sizeof(float)) * args.n_sequences * cells,
          3 * args.y.rows * cells};
}

template <typename Args>
OpCost cost(const Args&, std::span<const KvRows>) noexcept {
  return {};
}

}  // namespace

OpCost op_cost(const OpArgs& args, std::span<const KvRows> sequences) noexcept {
  return std::visit([&](const auto& of) { return cost(of, sequences); }, args);
}

}  // namespace gen::engine

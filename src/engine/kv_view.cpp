// SPDX-License-Identifier: Apache-2.0
// See kv_view.h.
#include "engine/kv_view.h"

namespace gen::engine {
namespace {

KvSide place(const KvLayer& layer, const KvSideForm& form, const KvRows& rows,
             std::ptrdiff_t distance) noexcept {
  KvSide side = side_of(form);
  side.blocks = Access::pointer(rows.blocks, distance);
  side.cells = Access::pointer(rows.cells, distance);
  side.first_cell = rows.first_cell;
  // Blocks are named by their addresses: the way to their bytes is one with the way into them.
  side.block_offset += static_cast<size_t>(distance);
  side.block_size = layer.block_size;
  return side;
}

}  // namespace

KvSide side_of(const KvSideForm& form) noexcept {
  KvSide side;
  side.format = form.format;
  side.order = form.order;
  side.block_offset = form.block_offset;
  side.tile_stride = form.tile_stride;
  side.head_stride = form.head_stride;
  side.shared_offset = form.shared_offset;
  side.shared_stride = form.shared_stride;
  side.head_dim = form.head_dim;
  return side;
}

SequenceRows resolve(const KvLayer& layer, const KvRows& rows, std::ptrdiff_t distance) noexcept {
  SequenceRows resolved;
  resolved.first_row = rows.first_row;
  resolved.n_rows = rows.n_rows;
  resolved.first_entry = rows.first_entry;
  resolved.visible = Access::pointer(rows.visible, distance);
  KvView& view = resolved.view;
  view.k = place(layer, layer.k, rows, distance);
  view.v = place(layer, layer.v, rows, distance);
  view.kv_heads = layer.kv_heads;
  view.entries = rows.entries;
  view.first_position = rows.first_position;
  view.window = layer.window;
  view.chunk = layer.chunk;
  view.key_form = layer.key_form;
  view.positions = Access::pointer(rows.positions, distance);
  view.log_weights = Access::pointer(rows.log_weights, distance);
  return resolved;
}

}  // namespace gen::engine

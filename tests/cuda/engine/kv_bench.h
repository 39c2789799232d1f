// SPDX-License-Identifier: Apache-2.0
// Layers of caches in any engine's memory for tests: blocks in shuffled order with odd gaps between
// everything, unused bytes that must not show, and sequences over them.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "cuda/engine/op_bench.h"
#include "engine/kv/codec.h"

namespace gen::test {

constexpr engine::KvFormat kEveryFormat[] = {engine::KvFormat::kF32, engine::KvFormat::kF16,
                                             engine::KvFormat::kFp8, engine::KvFormat::kQ4,
                                             engine::KvFormat::kQ3};

struct KvShape {
  engine::KvFormat k_format = engine::KvFormat::kF32;
  engine::KvFormat v_format = engine::KvFormat::kF32;
  int32_t kv_heads = 2;
  int32_t k_dim = 20;
  int32_t v_dim = 12;
  int32_t block_size = 40;  // entries
  engine::KeyForm key_form = engine::KeyForm::kRotated;
  int32_t window = 0;
  int32_t chunk = 0;
  size_t gap = 12;  // bytes between heads, tiles and sides; 16: all lie at multiples of that
};

/// The layout of a layer in a block, after `from` bytes; *end is its end.
inline engine::KvLayer kv_layer(const KvShape& shape, size_t from, size_t* end) {
  engine::KvLayer layer;
  layer.kv_heads = shape.kv_heads;
  layer.block_size = shape.block_size;
  layer.window = shape.window;
  layer.chunk = shape.chunk;
  layer.key_form = shape.key_form;
  const auto tiles = static_cast<size_t>((shape.block_size + 15) / 16);
  const auto lay = [&](engine::KvSideForm& side, engine::KvFormat format, engine::KvOrder order,
                       int32_t dim) {
    const engine::KvCodec& codec = engine::kv_codec(format);
    const auto heads = static_cast<size_t>(shape.kv_heads);
    const auto n = static_cast<size_t>(dim);
    side.format = format;
    side.order = order;
    side.head_dim = dim;
    side.block_offset = from + shape.gap;
    side.head_stride = codec.tile_bytes(order, n) + shape.gap;
    side.tile_stride = heads * side.head_stride + shape.gap;
    side.shared_offset = tiles * side.tile_stride;
    if (codec.shared_bytes != nullptr) side.shared_stride = codec.shared_bytes(heads, n) + 4;
    from = side.block_offset + tiles * (side.tile_stride + side.shared_stride);
  };
  lay(layer.k, shape.k_format, engine::KvOrder::kKeys, shape.k_dim);
  lay(layer.v, shape.v_format, engine::KvOrder::kValues, shape.v_dim);
  *end = from;
  return layer;
}

/// Layers in `n_blocks` blocks.
class KvBench {
 public:
  KvBench(OpBench& bench, const std::vector<KvShape>& shapes, int32_t n_blocks)
      : bench_(bench), n_blocks_(n_blocks) {
    size_t end = 0;
    for (const KvShape& shape : shapes) layers.push_back(kv_layer(shape, end, &end));
    block_bytes_ = (end + 63) / 64 * 64;
    data_ = bench.put(
        std::vector<std::byte>(block_bytes_ * static_cast<size_t>(n_blocks), std::byte{0x7F}));
    for (int32_t i = 0; i < n_blocks; ++i) {
      const int32_t at = (i * 7 + 3) % n_blocks;  // n_blocks no multiple of 7
      blocks.push_back(data_ + static_cast<std::ptrdiff_t>(block_bytes_) * at);
    }
    block_table_ = bench.put(blocks);
  }

  /// A sequence whose blocks are those from `first_block` on, without lists.
  [[nodiscard]] engine::KvRows rows(int32_t first_row, int32_t n_rows, int32_t first_entry,
                                    int32_t first_block = 0) const {
    engine::KvRows of;
    of.first_row = first_row;
    of.n_rows = n_rows;
    of.first_entry = first_entry;
    of.entries = first_entry + n_rows;
    of.blocks = block_table_ + first_block;
    return of;
  }
  [[nodiscard]] engine::KvTables tables(int32_t first_block = 0) const {
    return {std::span(blocks).subspan(static_cast<size_t>(first_block))};
  }

  /// Copies the contents of another bench with the same layout.
  void set_bytes(const std::vector<std::byte>& bytes) { bench_.write(data_, bytes); }
  /// Everything, byte for byte.
  std::vector<std::byte> bytes() {
    return bench_.get(data_, static_cast<int64_t>(block_bytes_) * n_blocks_);
  }
  /// The same as floats that can be compared.
  std::vector<float> bytes_as_floats() {
    std::vector<float> values;
    for (const std::byte byte : bytes()) values.push_back(static_cast<float>(byte));
    return values;
  }

  std::vector<engine::KvLayer> layers;
  std::vector<engine::EnginePtr<std::byte>> blocks;

 private:
  OpBench& bench_;
  int32_t n_blocks_;
  size_t block_bytes_ = 0;
  engine::EnginePtr<std::byte> data_;
  engine::EnginePtr<engine::EnginePtr<std::byte>> block_table_;
};

/// Appends rows [n_rows, …] of random keys and values to a layer; returns the rotated q.
struct AppendOptions {
  int32_t n_heads = 4;
  engine::RopeKind rope = engine::RopeKind::kAdjacent;
  int32_t rope_dims = 8;
  bool norms = true;
  bool norm_last = false;
  float scale = 2.0F;
  uint32_t seed = 1;
  bool store = true;
  std::vector<float> k_ends = {};  // put in the place of the first keys and values
};
inline std::vector<float> append_rows(OpBench& bench, const KvShape& shape,
                                      const engine::KvLayer& layer,
                                      const std::vector<engine::KvRows>& sequences, int32_t n_rows,
                                      const AppendOptions& options) {
  const auto rows = static_cast<size_t>(n_rows);
  const auto matrix = [&](int32_t cols, uint32_t seed) {
    auto x =
        random_row(rows * static_cast<size_t>(cols + 3), options.seed * 100 + seed, options.scale);
    if (seed > 1) std::copy(options.k_ends.begin(), options.k_ends.end(), x.begin());
    return bench.put(x);
  };
  const int32_t q_cols = options.n_heads * shape.k_dim;
  const int32_t k_cols = shape.kv_heads * shape.k_dim;
  const int32_t v_cols = shape.kv_heads * shape.v_dim;
  engine::RopeAppendArgs args;
  args.q = {matrix(q_cols, 1), n_rows, q_cols, q_cols + 3};
  if (options.store) {
    args.k = {matrix(k_cols, 2), n_rows, k_cols, k_cols + 3};
    args.v = {matrix(v_cols, 3), n_rows, v_cols, v_cols + 3};
  }
  args.n_heads = options.n_heads;
  args.n_kv_heads = shape.kv_heads;
  args.k_dim = shape.k_dim;
  args.v_dim = shape.v_dim;
  args.norm_last = options.norm_last;
  if (options.norms) {
    args.q_norm = bench.put(random_row(static_cast<size_t>(shape.k_dim), 4));
    args.k_norm = bench.put(random_row(static_cast<size_t>(shape.k_dim), 5));
    args.norm_eps = 1e-5F;
  }
  args.rope = options.rope;
  args.rope_dims = options.rope_dims;
  if (options.rope != engine::RopeKind::kNone) {
    args.cs = {bench.put(random_row(rows * static_cast<size_t>(options.rope_dims), 6)), n_rows,
               options.rope_dims, options.rope_dims};
  }
  args.layer = layer;
  args.sequences = bench.put(sequences);
  args.n_sequences = static_cast<int32_t>(sequences.size());
  bench.run(args);
  return bench.get(args.q.data, n_rows * (q_cols + 3));
}

}  // namespace gen::test

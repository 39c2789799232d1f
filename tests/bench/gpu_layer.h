// SPDX-License-Identifier: Apache-2.0
// GpuOps::layers(): the operations of a decode step of one sequence, layer by layer.
#pragma once

#include "bench/gpu_ops.h"
#include "support/weight_blocks.h"

namespace gen::test {

inline Result<GpuFigure> GpuOps::layers(const quant::Format& format, const LayerShape& shape,
                                        int32_t n_layers, int32_t text) {
  // Sixteen rows of weights over and over. More sets of them than a cache holds, if it is timed.
  constexpr int64_t kRows = 16;
  const auto prepare = [&](engine::WeightRole role, int64_t rows,
                           int64_t cols) -> Result<std::unique_ptr<engine::Weight>> {
    const DTypeInfo& info = *dtype_info(format.type);
    const size_t row = static_cast<size_t>(cols) / info.block_elements * info.block_bytes;
    const auto values = random(kRows * cols, 0.1F);
    std::vector<std::byte> bytes(static_cast<size_t>(rows) * row);
    for (int64_t r = 0; r < rows; ++r) {
      std::byte* const to = bytes.data() + static_cast<size_t>(r) * row;
      if (r < kRows) {
        write_weights(format.type, values.data() + r * cols, to, cols);
      } else {
        std::copy_n(to - static_cast<size_t>(kRows) * row, row, to);
      }
    }
    figure_bytes_ += static_cast<double>(bytes.size());
    const engine::WeightSource source = {"w", format.type, rows, cols, bytes, false};
    if (role == engine::WeightRole::kLinear) return engine_->prepare(role, {&source, 1}, nullptr);
    figure_bytes_ += static_cast<double>(bytes.size());
    const engine::WeightSource both[] = {source, source};
    return engine_->prepare(role, both, nullptr);
  };
  const int64_t width = shape.width;
  const int64_t q_cols = int64_t{shape.heads} * shape.dim;
  const int64_t k_cols = int64_t{shape.kv_heads} * shape.dim;
  const size_t sets = seconds_ > 0.0 ? 4 : 1;
  std::vector<std::unique_ptr<engine::Weight>> weights;
  figure_bytes_ = 0.0;
  for (size_t i = 0; i < sets; ++i) {
    for (const auto& [role, rows, cols] :
         {std::tuple(engine::WeightRole::kLinear, q_cols + 2 * k_cols, width),
          std::tuple(engine::WeightRole::kLinear, width, q_cols),
          std::tuple(engine::WeightRole::kGated, shape.ffn, width),
          std::tuple(engine::WeightRole::kLinear, width, shape.ffn)}) {
      GEN_ASSIGN(auto weight, prepare(role, rows, cols));
      weights.push_back(std::move(weight));
    }
  }
  const uint32_t forms = weights[0]->activation_forms();
  const auto floats = [&](int64_t cols) -> Result<engine::MatrixView> {
    GEN_ASSIGN(const auto at, room(static_cast<size_t>(cols) * sizeof(float)));
    return engine::MatrixView{at.template as<float>(), 1, cols, cols};
  };
  const auto packed = [&](int64_t cols) -> Result<engine::Activations> {
    GEN_ASSIGN(const auto at, room(engine_->activation_bytes(forms, cols)));
    return engine::Activations{at, forms, 1, cols};
  };
  const auto constant = [](const engine::MatrixView& of) -> engine::ConstMatrixView {
    return {of.data, of.rows, of.cols, of.stride};
  };

  // A cache of float16 in blocks of 16 entries; the last entry is the row's.
  engine::KvLayer layer;
  layer.kv_heads = shape.kv_heads;
  layer.block_size = engine::kKvTile;
  const auto head_bytes = static_cast<size_t>(engine::kKvTile * shape.dim) * sizeof(uint16_t);
  const size_t side_bytes = head_bytes * static_cast<size_t>(shape.kv_heads);
  layer.k = {
      engine::KvFormat::kF16, engine::KvOrder::kKeys, shape.dim, 0, side_bytes, head_bytes, 0, 0};
  layer.v = layer.k;
  layer.v.order = engine::KvOrder::kValues;
  layer.v.block_offset = side_bytes;
  const int32_t n_blocks = (text + engine::kKvTile - 1) / engine::kKvTile;
  GEN_ASSIGN(const auto cache,
             put(halves(n_blocks * static_cast<int64_t>(2 * side_bytes / sizeof(uint16_t)))));
  std::vector<engine::EnginePtr<std::byte>> blocks;
  for (int32_t b = 0; b < n_blocks; ++b) {
    blocks.push_back(cache.template as<std::byte>() +
                     static_cast<std::ptrdiff_t>(2 * side_bytes) * b);
  }
  engine::KvRows record;
  record.n_rows = 1;
  record.first_entry = text - 1;
  record.entries = text;
  GEN_ASSIGN(record.blocks, put(blocks));
  GEN_ASSIGN(const auto records, put(std::vector<engine::KvRows>{record}));

  GEN_ASSIGN(const auto from, put(random(width, 1.0F)));
  GEN_ASSIGN(const auto which, put(std::vector<int32_t>{0}));
  GEN_ASSIGN(const auto norm, put(random(width, 1.0F)));
  GEN_ASSIGN(const auto angles, put(random(shape.dim, 1.0F)));
  GEN_ASSIGN(const auto x, floats(width));
  GEN_ASSIGN(const auto qkv, floats(q_cols + 2 * k_cols));
  GEN_ASSIGN(const auto wide, floats((shape.ffn + 15) / 16 * 16));
  GEN_ASSIGN(const auto normed, packed(width));
  GEN_ASSIGN(const auto attended, packed(q_cols));
  GEN_ASSIGN(auto gated_rows, packed(shape.ffn));
  const bool as_rows = engine_->packs_as_rows(forms);
  if (as_rows) gated_rows.data = wide.data.template as<std::byte>();

  std::vector<engine::OpArgs> list = {engine::SelectRowsArgs{{from, 1, width, width}, which, x}};
  for (int32_t i = 0; i < n_layers; ++i) {
    const auto* const set = weights.data() + 4 * (static_cast<size_t>(i) % sets);
    const auto product = [&](size_t which_one, const engine::Activations& in,
                             const engine::MatrixView& out) {
      engine::LinearArgs args;
      args.weight = set[which_one].get();
      args.x = in;
      args.y = out;
      if (which_one == 2) args.activation.kind = engine::Act::kSilu;
      if (which_one % 2 != 0) args.residual = constant(x);
      list.emplace_back(args);
    };
    engine::RmsNormArgs norms;
    norms.x = constant(x);
    norms.w = norm;
    norms.eps = 1e-5F;
    norms.packed = normed;
    list.emplace_back(norms);
    product(0, normed, qkv);
    engine::RopeAppendArgs append;
    append.q = {qkv.data, 1, q_cols, qkv.stride};
    append.k = {qkv.data + q_cols, 1, k_cols, qkv.stride};
    append.v = {qkv.data + (q_cols + k_cols), 1, k_cols, qkv.stride};
    append.n_heads = shape.heads;
    append.n_kv_heads = shape.kv_heads;
    append.k_dim = append.v_dim = shape.dim;
    append.rope = engine::RopeKind::kAdjacent;
    append.rope_dims = shape.dim;
    append.cs = {angles, 1, shape.dim, shape.dim};
    append.layer = layer;
    append.sequences = records;
    append.n_sequences = 1;
    list.emplace_back(append);
    engine::AttentionArgs attention;
    attention.q = constant(append.q);
    attention.packed = attended;
    attention.n_heads = shape.heads;
    attention.n_kv_heads = shape.kv_heads;
    attention.k_dim = attention.v_dim = shape.dim;
    attention.scale = 1.0F / std::sqrt(static_cast<float>(shape.dim));
    attention.layer = layer;
    attention.sequences = records;
    attention.n_sequences = 1;
    attention.max_chunks = 1;
    while (attention.max_chunks * engine::kKvChunk < text) attention.max_chunks *= 2;
    list.emplace_back(attention);
    product(1, attended, x);
    list.emplace_back(norms);
    const engine::MatrixView gated = {wide.data, 1, shape.ffn, wide.stride};
    product(2, normed, gated);
    if (!as_rows) list.emplace_back(engine::PackArgs{constant(gated), gated_rows});
    product(3, gated_rows, x);
  }
  for (const engine::OpArgs& args : list) GEN_TRY(engine_->run(*stream_, args));
  GEN_ASSIGN(const auto want, get(x.data, width));
  GpuFigure figure = {"layers", 1};
  figure.bytes = n_layers * (figure_bytes_ / static_cast<double>(sets) +
                             2.0 * static_cast<double>(k_cols * text) * sizeof(uint16_t));
  for (int32_t i = 0; i < 16; ++i) {  // a graph by then
    GEN_TRY(engine_->run_all(*stream_, list));
    GEN_TRY(engine_->finish(*stream_));
  }
  GEN_TRY(measure([&] { return engine_->run_all(*stream_, list); },
                  [&] { return engine_->finish(*stream_); }, &figure));
  GEN_ASSIGN(const auto got, get(x.data, width));
  for (size_t i = 0; i < want.size(); ++i) note(got[i] - want[i], 1e-30, &figure);
  return figure;
}

}  // namespace gen::test

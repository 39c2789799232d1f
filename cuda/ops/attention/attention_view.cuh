// SPDX-License-Identifier: Apache-2.0
// What the attention kernels have in common: their arguments, elements of caches by format as a
// type, and scores as the rule has them.
#pragma once

#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/attention/attention_walk.cuh"
#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/context.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/sequence/sequences.cuh"

namespace gen::cuda {

struct AttentionView {
  ConstRowsView q;
  RowsView out;
  PackedRows packed;
  int32_t n_heads;
  int32_t n_kv_heads;
  int32_t k_dim;
  int32_t v_dim;
  float scale;
  float soft_cap;
  engine::KvLayer layer;
  const engine::KvRows* sequences;
  int32_t n_sequences;
  bool any_bits;  // see AttentionArgs
};

/// The arguments as kernels take them.
inline AttentionView attention_view(const engine::AttentionArgs& args) noexcept {
  return {view(args.q),
          view(args.out),
          packed_rows(args.packed),
          args.n_heads,
          args.n_kv_heads,
          args.k_dim,
          args.v_dim,
          args.scale,
          args.soft_cap,
          args.layer,
          pointer(args.sequences),
          args.n_sequences,
          args.any_bits};
}

/// Writes element d of head `head` of row t.
GEN_DEVICE void put_result(const AttentionView& of, int64_t t, int32_t head, int32_t d,
                           float value) {
  const int64_t column = int64_t{head} * of.v_dim + d;
  if (of.out.data != nullptr) of.out.data[t * of.out.stride + column] = value;
  if (of.packed.data != nullptr) {
    put_column(of.packed.data + static_cast<size_t>(t) * of.packed.at.bytes, of.packed.bf16, column,
               value);
  }
}

/// The format as a type, so that no element asks for it.
template <KvFormat kFormat, KvOrder kOrder>
GEN_DEVICE float level(const KvPlace& place, int32_t dim, int32_t d) {
  return level_at<kOrder>(kFormat, place, dim, d);
}

/// Whether a weight meets levels only after it has met their scale.
GEN_DEVICE constexpr bool scaled_format(KvFormat format) {
  return format == KvFormat::kFp8 || format == KvFormat::kQ4;
}

/// use(a type whose kFormat is `format`).
template <KvFormat kOf>
struct KvFormatType {
  static constexpr KvFormat kFormat = kOf;
};
template <typename Use>
GEN_DEVICE void for_format(KvFormat format, const Use& use) {
  switch (format) {
    case KvFormat::kF32:
      return use(KvFormatType<KvFormat::kF32>());
    case KvFormat::kF16:
      return use(KvFormatType<KvFormat::kF16>());
    case KvFormat::kFp8:
      return use(KvFormatType<KvFormat::kFp8>());
    case KvFormat::kQ4:
      return use(KvFormatType<KvFormat::kQ4>());
    case KvFormat::kQ3:
      return use(KvFormatType<KvFormat::kQ3>());
  }
}

/// A raw score as the rule has it, in powers of two, less `shift`.
GEN_DEVICE float ruled(const AttentionView& of, float x, float weight, float shift) {
  const float down = weight * kLog2E - shift;
  if (of.soft_cap == 0.0F) return multiply_add(x, of.scale * kLog2E, down);
  const float capped = tanh_of(x * of.scale / of.soft_cap);
  return multiply_add(capped, of.soft_cap * kLog2E, down);
}

/// Chunk by chunk, for rows of sequences that are looked through in order; attention_split.cu.
/// `append`, if it is not null: see attention_plain().
struct AppendView;
Status attention_split(const OpContext& context, const AttentionView& of, int32_t slots,
                       const AppendView* append = nullptr);
/// Where few rows are to look through at most `chunks` chunks, 0 if it is not known: the chunks
/// that have a block each, else 0.
int32_t attention_slots(const OpContext& context, const AttentionView& of, int32_t chunks);

/// Tile by tile of queries, for sequences of many rows that are looked through in order;
/// attention_tile.cu. `value_slab` is what attention_tiles() gave.
Status attention_tile(const OpContext& context, const AttentionView& of, int32_t value_slab);
/// Entries whose values a tile reads at once, 0 where tiles are not for this: rows look at at most
/// `chunks` chunks, 0 if it is not known.
int32_t attention_tiles(const OpContext& context, const AttentionView& of, int32_t chunks);

}  // namespace gen::cuda

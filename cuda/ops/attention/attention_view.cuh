// SPDX-License-Identifier: Apache-2.0
// Code shared by the attention kernels: their arguments, cache elements with the format as a type,
// and the rule for scores.
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
  const float* sinks;  // null if there are none
  engine::KvLayer layer;
  const engine::KvRows* sequences;
  int32_t n_sequences;
  bool any_bits;  // see AttentionArgs
};

/// The arguments as kernels take them.
inline AttentionView attention_view(const engine::AttentionArgs& args) noexcept {
  return {view(args.q),        view(args.out),  packed_rows(args.packed),
          args.n_heads,        args.n_kv_heads, args.k_dim,
          args.v_dim,          args.scale,      args.soft_cap,
          pointer(args.sinks), args.layer,      pointer(args.sequences),
          args.n_sequences,    args.any_bits};
}

/// Running softmax of a query, or that of a chunk.
struct SoftmaxState {
  float max;
  float sum;
};
/// That of a query of `head` before its first chunk.
GEN_DEVICE SoftmaxState before_chunks(const AttentionView& of, int32_t head) {
  if (of.sinks == nullptr) return {minus_infinity(), 0.0F};
  return {of.sinks[head] * kLog2E, 1.0F};
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

/// The format as a type, so that it is not tested for each element.
template <KvFormat kFormat, KvOrder kOrder>
GEN_DEVICE float level(const KvPlace& place, int32_t dim, int32_t d) {
  return level_at<kOrder>(kFormat, place, dim, d);
}

/// Whether a weight is multiplied by the scale before the levels.
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

/// A raw score after the rule, in base 2, minus `shift`.
GEN_DEVICE float ruled(const AttentionView& of, float x, float weight, float shift) {
  const float down = weight * kLog2E - shift;
  if (of.soft_cap == 0.0F) return multiply_add(x, of.scale * kLog2E, down);
  const float capped = tanh_of(x * of.scale / of.soft_cap);
  return multiply_add(capped, of.soft_cap * kLog2E, down);
}

/// A block per chunk, for rows of sequences whose entries are in order; attention_split.cu.
/// `append`, if it is not null: see attention_plain().
struct AppendView;
Status attention_split(const OpContext& context, const AttentionView& of, int32_t slots,
                       const AppendView* append = nullptr);
/// The number of chunks with a block each for a few rows with at most `chunks` chunks (0: unknown);
/// 0 if chunks should not be split over blocks.
int32_t attention_slots(const OpContext& context, const AttentionView& of, int32_t chunks);

/// A block per tile of queries, for sequences with many rows whose entries are in order;
/// attention_tile.cu. `value_slab` is the result of attention_tiles().
Status attention_tile(const OpContext& context, const AttentionView& of, int32_t value_slab);
/// The number of entries whose values a tile reads at once; 0 if tiles should not be used. Rows
/// have at most `chunks` chunks (0: unknown).
int32_t attention_tiles(const OpContext& context, const AttentionView& of, int32_t chunks);

}  // namespace gen::cuda

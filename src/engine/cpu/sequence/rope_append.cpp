// SPDX-License-Identifier: Apache-2.0
// rope_append: normalises and rotates heads, and stores keys and values in the cache. Rotation is
// plain C++ with separate multiplications and additions, so it has the same bits at any vector
// width. It is a thousandth of a layer's work.
#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/cpu/elementwise/elementwise.h"
#include "engine/cpu/norm/rms_norm.h"
#include "engine/cpu/sequence/sequence_ops.h"
#include "engine/kv/codec.h"

namespace gen::engine::cpu {
namespace {

/// to[...] = rotated head; the elements after `dims` are copied. `to` may be `from`.
void rotate_head(RopeKind kind, int32_t dims, const float* cs, const float* from, float* to,
                 int32_t n) {
  if (kind == RopeKind::kNone) dims = 0;
  const int32_t pairs = dims / 2;
  if (kind == RopeKind::kAdjacent) {
    for (int32_t i = 0; i < pairs; ++i) {
      const float x = from[2 * i];
      const float y = from[2 * i + 1];
      to[2 * i] = x * cs[2 * i] - y * cs[2 * i + 1];
      to[2 * i + 1] = x * cs[2 * i + 1] + y * cs[2 * i];
    }
  } else {
    for (int32_t i = 0; i < pairs; ++i) {
      const float x = from[i];
      const float y = from[i + pairs];
      to[i] = x * cs[2 * i] - y * cs[2 * i + 1];
      to[i + pairs] = x * cs[2 * i + 1] + y * cs[2 * i];
    }
  }
  if (to != from) {
    std::memcpy(to + dims, from + dims, static_cast<size_t>(n - dims) * sizeof(float));
  }
}

template <typename E>
void store_elements(const E* x, int32_t n, KvOrder order, std::byte* piece, int32_t lane) {
  auto* to = reinterpret_cast<E*>(piece);
  if (order == KvOrder::kKeys) {
    for (int32_t d = 0; d < n; ++d) to[d * kKvTile + lane] = x[d];
  } else {
    std::memcpy(to + int64_t{lane} * n, x, static_cast<size_t>(n) * sizeof(E));
  }
}

/// Stores a row of all heads like the codec, with fast paths for simple formats. `halves` has room
/// for a head.
void store_row(const ElementwiseKernels& kernels, const float* x, int32_t heads, const KvSide& side,
               int64_t entry, uint16_t* halves) {
  if (side.format != KvFormat::kF32 && side.format != KvFormat::kF16) {
    kv_put(side, entry, heads, x);
    return;
  }
  const KvPlace place = side.place(entry);
  const int32_t n = side.head_dim;
  for (int32_t head = 0; head < heads; ++head, x += n) {
    std::byte* tile = kv_tile(side, place, head);
    if (side.format == KvFormat::kF32) {
      store_elements(x, n, side.order, tile, place.lane);
    } else {
      kernels.to_half(x, halves, n);
      store_elements(halves, n, side.order, tile, place.lane);
    }
  }
}

void check(const AppendArgs& args) {
  for (const SequenceRows& sequence : args.sequences) {
    GEN_ASSERT(sequence.view.kv_heads == args.n_kv_heads);
    GEN_ASSERT(sequence.view.k.head_dim == args.k_dim && sequence.view.v.head_dim == args.v_dim);
    GEN_ASSERT(sequence.first_entry + sequence.n_rows <= sequence.view.entries);
  }
  GEN_ASSERT(args.rope_dims % 2 == 0 && args.rope_dims <= args.k_dim);
}

/// to[...] = a head, normalised and rotated. `to` may be `from`, and norm may be null.
void prepare_head(const CpuContext& context, const AppendArgs& args, const float* norm,
                  const float* cs, const float* from, float* to) {
  const auto normalise = context.kernels.rms_norm->row;
  if (norm != nullptr && !args.norm_last) {
    normalise(from, norm, args.norm_eps, to, args.k_dim);
    from = to;
  }
  rotate_head(args.rope, args.rope_dims, cs, from, to, args.k_dim);
  if (norm != nullptr && args.norm_last) normalise(to, norm, args.norm_eps, to, args.k_dim);
}

/// One row of the batch: all its heads.
void append_row(const CpuContext& context, const AppendArgs& args, const SequenceRows& sequence,
                int32_t index, float* keys, uint16_t* halves) {
  const int64_t row = sequence.first_row + index;
  const int64_t entry = int64_t{sequence.first_entry} + index;
  const float* cs = args.rope != RopeKind::kNone && args.rope_dims > 0
                        ? args.cs.data + row * args.cs.stride
                        : nullptr;
  const ElementwiseKernels& elementwise = *context.kernels.elementwise;

  const bool turned = sequence.view.key_form == KeyForm::kHadamard;
  float* q = args.q.data + row * args.q.stride;
  for (int32_t h = 0; h < args.n_heads; ++h, q += args.k_dim) {
    prepare_head(context, args, args.q_norm, cs, q, q);
    if (turned) kv_hadamard(q, args.k_dim);
  }
  if (args.k.data == nullptr) return;
  const float* k = args.k.data + row * args.k.stride;
  for (int32_t g = 0; g < args.n_kv_heads; ++g, k += args.k_dim) {
    float* head = keys + int64_t{g} * args.k_dim;
    prepare_head(context, args, args.k_norm, cs, k, head);
    if (turned) kv_hadamard(head, args.k_dim);
  }
  store_row(elementwise, keys, args.n_kv_heads, sequence.view.k, entry, halves);
  const float* v = args.v.data + row * args.v.stride;
  store_row(elementwise, v, args.n_kv_heads, sequence.view.v, entry, halves);
}

}  // namespace

Status run(CpuContext& context, const RopeAppendArgs& args) {
  AppendArgs own;
  own.q = context.at(args.q);
  own.k = context.at(args.k);
  own.v = context.at(args.v);
  own.n_heads = args.n_heads;
  own.n_kv_heads = args.n_kv_heads;
  own.k_dim = args.k_dim;
  own.v_dim = args.v_dim;
  own.q_norm = context.at(args.q_norm);
  own.k_norm = context.at(args.k_norm);
  own.norm_eps = args.norm_eps;
  own.norm_last = args.norm_last;
  own.rope = args.rope;
  own.rope_dims = args.rope_dims;
  own.cs = context.at(args.cs);
  own.sequences = context.sequences(args.layer, args.sequences, args.n_sequences);
  return append(context, own);
}

Status append(CpuContext& context, const AppendArgs& args) {
  check(args);
  const int64_t row_elements =
      int64_t{args.n_heads + args.n_kv_heads} * args.k_dim + int64_t{args.n_kv_heads} * args.v_dim;
  constexpr int64_t kAlign = 16;  // floats of a cache line
  const auto aligned = [](int64_t floats) { return (floats + kAlign - 1) / kAlign * kAlign; };
  const int64_t key_floats = aligned(int64_t{args.n_kv_heads} * args.k_dim);
  // A row of keys, and a head in binary16.
  const int64_t thread_floats = key_floats + aligned(std::max(args.k_dim, args.v_dim));
  const auto threads = static_cast<size_t>(context.pool.size());
  std::byte* memory = nullptr;
  GEN_TRY(context.stream.scratch(threads * static_cast<size_t>(thread_floats) * sizeof(float),
                                 &memory));
  if (context.dry_run) return {};
  auto* memory_floats = reinterpret_cast<float*>(memory);
  for (const SequenceRows& sequence : args.sequences) {
    parallel_rows(context, sequence.n_rows, row_elements,
                  [&](int64_t begin, int64_t end, int32_t thread) {
                    float* keys = memory_floats + thread * thread_floats;
                    auto* halves = reinterpret_cast<uint16_t*>(keys + key_floats);
                    for (int64_t i = begin; i < end; ++i) {
                      append_row(context, args, sequence, static_cast<int32_t>(i), keys, halves);
                    }
                  });
  }
  return {};
}

}  // namespace gen::engine::cpu

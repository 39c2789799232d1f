// SPDX-License-Identifier: Apache-2.0
// A row of rope_append by blocks of threads; see rope_append.cu.
#pragma once

#include "cuda/ops/cache/kv.cuh"
#include "cuda/ops/cache/kv_store.cuh"
#include "cuda/ops/context.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/sequence/sequences.cuh"

namespace gen::cuda {

struct AppendView {
  RowsView q;
  ConstRowsView k;
  ConstRowsView v;
  int32_t n_heads;
  int32_t n_kv_heads;
  int32_t k_dim;
  int32_t v_dim;
  const float* q_norm;
  const float* k_norm;
  float eps;
  bool norm_last;
  engine::RopeKind rope;
  int32_t rope_dims;
  ConstRowsView cs;
  engine::KvLayer layer;
  const engine::KvRows* sequences;
  int32_t n_sequences;
  size_t shared_offset;  // of all that follows, in dynamic shared memory
  size_t space_offset;   // of the fit of q3
};

/// Lays out the shared memory of a block of `warps` warps from offset `from` on: the row of k or v,
/// or a head of q for each warp, then the space of the q3 fit. Returns the end.
inline size_t append_shared(AppendView* of, size_t from, int32_t warps) noexcept {
  const int32_t widest = of->k_dim > of->v_dim ? of->k_dim : of->v_dim;
  const int32_t row = of->n_kv_heads * widest;
  const int32_t floats = of->k.data != nullptr && row > warps * of->k_dim ? row : warps * of->k_dim;
  of->shared_offset = from;
  of->space_offset = from + (static_cast<size_t>(floats) * sizeof(float) + 15) / 16 * 16;
  const bool fits = of->layer.k.format == KvFormat::kQ3 || of->layer.v.format == KvFormat::kQ3;
  return of->space_offset + (fits ? static_cast<size_t>(warps) * kQ3SpaceBytes : 0);
}

/// The arguments of the kernel, without the offsets in shared memory.
inline AppendView append_view(const engine::RopeAppendArgs& args) noexcept {
  return {view(args.q),
          view(args.k),
          view(args.v),
          args.n_heads,
          args.n_kv_heads,
          args.k_dim,
          args.v_dim,
          pointer(args.q_norm),
          pointer(args.k_norm),
          args.norm_eps,
          args.norm_last,
          args.rope,
          args.rope_dims,
          view(args.cs),
          args.layer,
          pointer(args.sequences),
          args.n_sequences,
          0,
          0};
}

/// Multiplies x[n] with the Hadamard matrix whose size is the lowest bit of n, block by block.
/// Called by a warp.
GEN_DEVICE void hadamard(const Shared<float>& x, int32_t n) {
  const int32_t block = n & -n;
  for (int32_t half = 1; half < block; half *= 2) {
    for (int32_t i = lane_of_warp(); i < n / 2; i += 32) {
      const int32_t j = i / half * (2 * half) + i % half;
      const float a = x[j];
      const float b = x[j + half];
      x[j] = a + b;
      x[j + half] = a - b;
    }
    sync_warp();
  }
  const float factor = 1.0F / square_root(static_cast<float>(block));
  for (int32_t i = lane_of_warp(); i < n; i += 32) x[i] = x[i] * factor;
  sync_warp();
}

/// What a lane has of the first 128 elements of a head and of their angles, read at once.
struct LoadedHead {
  float x[4];
  float cosines[2];
  float sines[2];
};
GEN_DEVICE LoadedHead load_head(const AppendView& of, const float* from, const float* cs) {
  LoadedHead loaded;
  const int32_t lane = lane_of_warp();
  GEN_UNROLL
  for (int32_t j = 0; j < 4; ++j) {
    loaded.x[j] = lane + 32 * j < of.k_dim ? from[lane + 32 * j] : 0.0F;
  }
  const int32_t pairs = of.rope != engine::RopeKind::kNone ? of.rope_dims / 2 : 0;
  GEN_UNROLL
  for (int32_t j = 0; j < 2; ++j) {
    const int32_t i = lane + 32 * j;
    loaded.cosines[j] = i < pairs ? cs[2 * i] : 0.0F;
    loaded.sines[j] = i < pairs ? cs[2 * i + 1] : 0.0F;
  }
  return loaded;
}

/// head[...] = the head at `from`, normalised, rotated and turned; a warp.
GEN_DEVICE void prepare_head(const AppendView& of, const LoadedHead& loaded, const float* from,
                             const float* norm, const float* cs, const Shared<float>& head) {
  const int32_t n = of.k_dim;
  const int32_t lane = lane_of_warp();
  GEN_UNROLL
  for (int32_t j = 0; j < 4; ++j) {
    if (lane + 32 * j < n) head[lane + 32 * j] = loaded.x[j];
  }
  for (int32_t d = lane + 128; d < n; d += 32) head[d] = from[d];
  sync_warp();
  const auto normalise = [&] {
    float squares = 0.0F;
    if (lane < 16) {
      for (int32_t d = lane; d < n; d += 16) {
        const float x = head[d];
        squares = multiply_add(x, x, squares);
      }
    }
    squares = shuffle(sum_sixteen(squares), 0);
    const float factor = 1.0F / square_root(squares / static_cast<float>(n) + of.eps);
    sync_warp();  // all have read what changes now
    for (int32_t d = lane; d < n; d += 32) head[d] = head[d] * factor * norm[d];
    sync_warp();
  };
  if (norm != nullptr && !of.norm_last) normalise();
  if (of.rope != engine::RopeKind::kNone) {
    const int32_t pairs = of.rope_dims / 2;
    const bool adjacent = of.rope == engine::RopeKind::kAdjacent;
    const auto turn = [&](int32_t i, float cosine, float sine) {
      const int32_t first = adjacent ? 2 * i : i;
      const int32_t second = adjacent ? 2 * i + 1 : i + pairs;
      const float x = head[first];
      const float y = head[second];
      head[first] = x * cosine - y * sine;
      head[second] = x * sine + y * cosine;
    };
    GEN_UNROLL
    for (int32_t j = 0; j < 2; ++j) {
      if (lane + 32 * j < pairs) turn(lane + 32 * j, loaded.cosines[j], loaded.sines[j]);
    }
    for (int32_t i = lane + 64; i < pairs; i += 32) turn(i, cs[2 * i], cs[2 * i + 1]);
    sync_warp();
  }
  if (norm != nullptr && of.norm_last) normalise();
  if (of.layer.key_form == engine::KeyForm::kHadamard) hadamard(head, n);
}

/// Head h of q of row t; a warp.
GEN_DEVICE void rope_query(const AppendView& of, int64_t t, int32_t h) {
  if (h >= of.n_heads) return;
  const float* const cs = of.cs.data != nullptr ? of.cs.data + t * of.cs.stride : nullptr;
  float* const q = of.q.data + t * of.q.stride + int64_t{h} * of.k_dim;
  const LoadedHead loaded = load_head(of, q, cs);
  if (sequence_of(of.sequences, of.n_sequences, static_cast<int32_t>(t)) < 0) return;
  const auto bytes = static_cast<size_t>(of.k_dim) * sizeof(float);
  const Shared<float> head =
      dynamic_shared<float>(of.shared_offset + static_cast<size_t>(warp_of_block()) * bytes,
                            static_cast<size_t>(of.k_dim));
  prepare_head(of, loaded, q, of.q_norm, cs, head);
  for (int32_t d = lane_of_warp(); d < of.k_dim; d += 32) q[d] = head[d];
}

/// The keys, or else the values, of row t into the cache; a block.
GEN_DEVICE void append_side(const AppendView& of, int64_t t, bool keys) {
  const float* const cs = of.cs.data != nullptr ? of.cs.data + t * of.cs.stride : nullptr;
  const float* const k = of.k.data + t * of.k.stride;
  const int32_t warp = warp_of_block();
  LoadedHead loaded = {};
  if (keys && warp < of.n_kv_heads) loaded = load_head(of, k + int64_t{warp} * of.k_dim, cs);
  const int32_t s = sequence_of(of.sequences, of.n_sequences, static_cast<int32_t>(t));
  if (s < 0) return;
  const engine::KvRows& rows = of.sequences[s];
  const int32_t entry = rows.first_entry + (static_cast<int32_t>(t) - rows.first_row);
  const KvSideForm& form = keys ? of.layer.k : of.layer.v;
  const int32_t dim = keys ? of.k_dim : of.v_dim;
  const int32_t all = of.n_kv_heads * dim;
  const Shared<float> row = dynamic_shared<float>(of.shared_offset, static_cast<size_t>(all));
  if (keys) {
    for (int32_t g = warp; g < of.n_kv_heads; g += block_threads() / 32) {
      const float* const from = k + int64_t{g} * dim;
      if (g != warp) loaded = load_head(of, from, cs);
      prepare_head(of, loaded, from, of.k_norm, cs, row.subspan(g * dim, static_cast<size_t>(dim)));
    }
  } else {
    for (int32_t i = thread_x(); i < all; i += block_threads()) {
      row[i] = of.v.data[t * of.v.stride + i];
    }
  }
  sync_threads();
  store_entry(form, place_of(form, blocks_of(of.layer, rows), entry), of.n_kv_heads, row,
              of.space_offset);
}

}  // namespace gen::cuda

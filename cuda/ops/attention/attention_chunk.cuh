// SPDX-License-Identifier: Apache-2.0
// One chunk of attention of one row by a thread block, for a kernel with a block per chunk
// (attention_split.cu) and for persistent blocks (cuda/step).
#pragma once

#include "cuda/ops/attention/attention_merged.cuh"

namespace gen::cuda {

constexpr int32_t kSplitThreads = kChunk;
/// The largest number of query heads of a group per block.
constexpr int32_t kSplitHeads = 8;

/// q . key for n heads, in the order of sums of the format; see dot_key() in attention.cu.
template <KvFormat kFormat>
GEN_DEVICE void dot_heads(const Shared<float>& q, const KvPlace& place, int32_t dim, int32_t n,
                          float (&scores)[kSplitHeads]) {
  const int32_t group = scaled_format(kFormat) ? scale_group(kFormat, dim) : dim;
  for (int32_t g = 0, d = 0; d < dim; ++g) {
    float sums[kSplitHeads] = {};
    const int32_t end = d + group < dim ? d + group : dim;
    for (; d < end; ++d) {
      const float key = level<kFormat, KvOrder::kKeys>(place, dim, d);
      GEN_UNROLL
      for (int32_t h = 0; h < kSplitHeads; ++h) {
        if (h >= n) continue;
        const float element = q[h * dim + d];
        sums[h] = multiply_add(element, key, sums[h]);
      }
    }
    float scale = 1.0F;
    if constexpr (scaled_format(kFormat)) scale = scale_at(kFormat, place, g);
    GEN_UNROLL
    for (int32_t h = 0; h < kSplitHeads; ++h) {
      if constexpr (scaled_format(kFormat)) {
        scores[h] = g == 0 ? sums[h] * scale : multiply_add(sums[h], scale, scores[h]);
      } else {
        scores[h] = sums[h];
      }
    }
  }
}

/// Sums over slots [from, to) of weights times element d of the values, for heads first, first +
/// apart, … of n; see weigh() in attention.cu.
template <KvFormat kFormat>
GEN_DEVICE void weigh_heads(const Shared<float>& weights, const Shared<KvPlace>& places,
                            int32_t from, int32_t to, int32_t dim, int32_t d, int32_t first,
                            int32_t apart, int32_t n, float (&sums)[kSplitHeads]) {
  for (int32_t i = from; i < to; ++i) {
    const KvPlace place = places[i];
    const float value = level<kFormat, KvOrder::kValues>(place, dim, d);
    float scale = 1.0F;
    if constexpr (scaled_format(kFormat)) {
      scale = scale_at(kFormat, place, d / scale_group(kFormat, dim));
    }
    GEN_UNROLL
    for (int32_t k = 0; k < kSplitHeads; ++k) {
      const int32_t head = first + k * apart;
      if (head >= n) continue;
      float weight = weights[head * kChunk + i];
      if constexpr (scaled_format(kFormat)) weight = weight * scale;
      sums[k] = multiply_add(weight, value, sums[k]);
    }
  }
}

/// Dynamic shared memory for q of `heads` heads, in bytes.
constexpr size_t split_shared(int32_t heads, int32_t k_dim) noexcept {
  return static_cast<size_t>(heads) * static_cast<size_t>(k_dim) * sizeof(float);
}

/// Chunk `chunk` of row t for up to `batch` of the query heads that share a head of keys: those of
/// number `group_batch` by heads of keys, then batches. A block of kSplitThreads.
GEN_DEVICE void attention_chunk(const SplitView& view, int64_t t, int32_t chunk, int32_t batch,
                                int32_t group_batch) {
  constexpr int32_t kThreads = kSplitThreads;
  constexpr int32_t kHeads = kSplitHeads;
  GEN_SHARED(float, scores, kHeads* kChunk);
  GEN_SHARED(KvPlace, values, kChunk);
  const AttentionView& of = view.of;
  RowWalk walk;
  int32_t s = 0;
  if (!begin_walk(of, t, &walk, &s)) return;
  int32_t base = 0;
  int32_t from = 0;
  int32_t to = 0;
  if (!walk.chunk_at(chunk, &base, &from, &to)) return;
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t batches = (group + batch - 1) / batch;
  const int32_t kv_head = group_batch / batches;
  const int32_t within = group_batch % batches * batch;
  const int32_t n = group - within < batch ? group - within : batch;
  const int32_t first_head = kv_head * group + within;
  const engine::KvRows& rows = of.sequences[s];
  const Blocks blocks = blocks_of(of.layer, rows);
  const float* const log_weights = at(rows.log_weights);

  const Shared<float> q =
      dynamic_shared<float>(view.shared_offset, static_cast<size_t>(n * of.k_dim));
  const float* const own = of.q.data + t * of.q.stride + int64_t{first_head} * of.k_dim;
  for (int32_t i = thread_x(); i < n * of.k_dim; i += kThreads) q[i] = own[i];
  sync_threads();

  const int32_t slot = thread_x();
  if (slot >= from && slot < to) {
    const int32_t entry = base + slot;
    const KvPlace key = head_place(of.layer.k, place_of(of.layer.k, blocks, entry), kv_head);
    values[slot] = head_place(of.layer.v, place_of(of.layer.v, blocks, entry), kv_head);
    float raw[kHeads] = {};
    for_format(of.layer.k.format, [&](auto format) {
      dot_heads<decltype(format)::kFormat>(q, key, of.k_dim, n, raw);
    });
    GEN_UNROLL
    for (int32_t h = 0; h < kHeads; ++h) {
      if (h < n) scores[h * kChunk + slot] = raw[h];
    }
  } else {
    for (int32_t h = 0; h < n; ++h) scores[h * kChunk + slot] = 0.0F;
  }
  sync_threads();

  if (warp_of_block() < n) {
    const int32_t head = warp_of_block();
    const Weighed made =
        make_weights(of, log_weights, base, from, to, scores.subspan(head * kChunk, kChunk), 1);
    if (lane_of_warp() == 0) {
      float* const partial = view.partial(t, first_head + head, chunk);
      partial[0] = made.max;
      partial[1] = made.sum;
    }
  }
  sync_threads();

  const int32_t width = of.v_dim < kThreads ? (of.v_dim + 31) / 32 * 32 : kThreads;
  const int32_t apart = kThreads / width;
  const int32_t first = thread_x() / width;
  if (first >= apart) return;
  for (int32_t d = thread_x() % width; d < of.v_dim; d += width) {
    float sums[kHeads] = {};
    for_format(of.layer.v.format, [&](auto format) {
      weigh_heads<decltype(format)::kFormat>(scores, values, from, to, of.v_dim, d, first, apart, n,
                                             sums);
    });
    GEN_UNROLL
    for (int32_t k = 0; k < kHeads; ++k) {
      const int32_t head = first + k * apart;
      if (head < n) view.partial(t, first_head + head, chunk)[2 + d] = sums[k];
    }
  }
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// attention for many rows of a sequence, prefill: a block has 32 queries (a query is a row and a
// head) that share a kv head, so that keys and values are read once for all of them.
//   The operations and their order are those of attention.cu, where a block has one query, so both
//   give the same bits. Products are summed in ascending order, which rules out tensor cores.
//
//   Work    A warp has four queries; all warps process the chunks of 256 positions together.
//           Scores: 32 elements of the chunk's keys are widened into shared memory at a time; a
//           lane multiplies four queries with eight entries in registers, elements ascending. Then
//           maximum, weights and sum of the four queries within the warp; the weights go where the
//           keys were. Values: some entries are widened into shared memory at a time; a lane has
//           four queries and every 32nd element, entries ascending. Running sums stay in registers.
//   Bytes   keys and values once for every 32 queries.
//   Shared  128 k_dim for the queries, 32 KiB for keys or weights, 8 or 16 KiB for values, 1.5 KiB
//           for scales: 57.5 KiB for heads of 128, which every device from sm_75 on has.
#include "cuda/ops/attention/attention_tile.cuh"

namespace gen::cuda {
namespace {

constexpr int32_t kThreads = kTileThreads;  // a thread is a slot where keys are widened
constexpr int32_t kSlab = 32;               // elements of keys at once

struct TileView {
  AttentionView of;
  int32_t value_slab;  // entries of values at once
};

/// Elements [first, first + n) of the key of this thread's slot, zeros if it is not attended to.
GEN_DEVICE void widen_key(const KvSideForm& form, const KvPlace& key, bool seen, int32_t first,
                          int32_t n, const Shared<float>& keys) {
  for_format(form.format, [&](auto format) {
    constexpr KvFormat kFormat = decltype(format)::kFormat;
    for (int32_t d = 0; d < n; ++d) {
      keys[d * kChunk + thread_x()] =
          seen ? level<kFormat, KvOrder::kKeys>(key, form.head_dim, first + d) : 0.0F;
    }
  });
}

/// Adds n elements of the queries from `first` on, times those of the keys.
GEN_DEVICE void multiply_keys(const Shared<float>& q, const Shared<float>& keys, int32_t first,
                              int32_t n, float (&sums)[kOwn][kEntries]) {
  const Shared<UInt4> queries = q.as<UInt4>();
  const Shared<UInt4> entries = keys.as<UInt4>();
  const int32_t lane = lane_of_warp();
  for (int32_t d = 0; d < n; ++d) {
    const UInt4 query_bits = queries[(first + d) * (kQueries / 4) + warp_of_block()];
    const UInt4 low_bits = entries[d * (kChunk / 4) + lane];
    const UInt4 high_bits = entries[d * (kChunk / 4) + kChunk / 8 + lane];
    const Four query = floats(query_bits);
    const Four low = floats(low_bits);
    const Four high = floats(high_bits);
    GEN_UNROLL
    for (int32_t i = 0; i < kOwn; ++i) {
      GEN_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        sums[i][j] = multiply_add(query.of[i], low.of[j], sums[i][j]);
        sums[i][j + 4] = multiply_add(query.of[i], high.of[j], sums[i][j + 4]);
      }
    }
  }
}

/// Values of entries [first, first + n) in rows of `width`, and, where they have them, the scale of
/// every 32 elements. A warp takes an entry.
template <int32_t kPer, bool kScaled>
GEN_DEVICE void widen_values(const AttentionView& of, const Blocks& blocks, int32_t kv_head,
                             int32_t first, int32_t n, const Shared<float>& values,
                             const Shared<float>& scales) {
  const KvSideForm& form = of.layer.v;
  const int32_t lane = lane_of_warp();
  for_format(form.format, [&](auto format) {
    constexpr KvFormat kFormat = decltype(format)::kFormat;
    for (int32_t i = warp_of_block(); i < n; i += kThreads / 32) {
      const KvPlace place = head_place(form, place_of(form, blocks, first + i), kv_head);
      GEN_UNROLL
      for (int32_t j = 0; j < kPer; ++j) {
        const int32_t d = j * 32 + lane;
        values[(i * kPer + j) * 32 + lane] =
            d < of.v_dim ? level<kFormat, KvOrder::kValues>(place, of.v_dim, d) : 0.0F;
      }
      if constexpr (kScaled) {
        if (lane < kPer) {
          float scale = 1.0F;
          if constexpr (scaled_format(kFormat)) {
            if (lane * 32 < of.v_dim) {
              scale = scale_at(kFormat, place, lane * 32 / scale_group(kFormat, of.v_dim));
            }
          }
          scales[i * kPer + lane] = scale;
        }
      }
    }
  });
}

/// Adds the values of n slots from `first` on, times the weights of those that a query attends to.
template <int32_t kPer, bool kScaled>
GEN_DEVICE void add_values(const Shared<float>& weights, const Shared<float>& values,
                           const Shared<float>& scales, int32_t first, int32_t n,
                           const Slots (&seen)[kOwn], const Slots& by_all,
                           float (&sums)[kOwn][static_cast<size_t>(kPer)]) {
  const Shared<UInt4> fours = weights.as<UInt4>();
  for (int32_t i = 0; i < n; ++i) {
    const int32_t slot = first + i;
    const UInt4 bits = fours[warp_of_block() * kChunk + slot];
    const Four weight = floats(bits);
    float value[static_cast<size_t>(kPer)];
    float scale[static_cast<size_t>(kPer)];
    GEN_UNROLL
    for (int32_t j = 0; j < kPer; ++j) {
      value[j] = values[(i * kPer + j) * 32 + lane_of_warp()];
      if constexpr (kScaled) scale[j] = scales[i * kPer + j];
    }
    const bool all = by_all.has(slot);
    GEN_UNROLL
    for (int32_t own = 0; own < kOwn; ++own) {
      if (!all && !seen[own].has(slot)) continue;
      GEN_UNROLL
      for (int32_t j = 0; j < kPer; ++j) {
        float factor = weight.of[own];
        if constexpr (kScaled) factor = factor * scale[j];
        sums[own][j] = multiply_add(factor, value[j], sums[own][j]);
      }
    }
  }
}

template <int32_t kPer, bool kScaled>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, 1) attention_tile_kernel(TileView view) {
  after_predecessor();
  GEN_SHARED(int32_t, own_range, 2 * kQueries);
  const AttentionView& of = view.of;
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t kv_head = block_y();
  const int32_t lane = lane_of_warp();
  const int32_t warp = warp_of_block();
  Tile tile;
  if (!find_tile<kQueries>(of, group, block_x(), &tile)) return;
  const engine::KvRows& rows = of.sequences[tile.sequence];
  const Blocks blocks = blocks_of(of.layer, rows);
  const float* const log_weights = at(rows.log_weights);

  const auto q_floats = static_cast<size_t>(of.k_dim * kQueries);
  const Shared<float> q = dynamic_shared<float>(0, q_floats);
  size_t end = q_floats * sizeof(float);
  const Shared<float> keys = dynamic_shared<float>(end, kSlab * kChunk);  // later weights
  end += kSlab * kChunk * sizeof(float);
  const auto value_floats = static_cast<size_t>(view.value_slab * kPer * 32);
  const Shared<float> values = dynamic_shared<float>(end, value_floats);
  end += value_floats * sizeof(float);
  const Shared<float> key_scales = dynamic_shared<float>(end, kScaled ? kChunk : 0);
  end += (kScaled ? kChunk : 0) * sizeof(float);
  const Shared<float> value_scales =
      dynamic_shared<float>(end, kScaled ? static_cast<size_t>(view.value_slab * kPer) : 0);

  load_queries(of, rows, kv_head, group, tile, q);

  const TileRange range = range_of(of, rows, group, tile, own_range);
  const bool works = warp * kOwn < tile.n;

  SoftmaxState states[kOwn];
  float sums[kOwn][static_cast<size_t>(kPer)];
  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; ++i) {
    GEN_UNROLL
    for (int32_t j = 0; j < kPer; ++j) sums[i][j] = 0.0F;
  }
  begin_states(of, kv_head, group, tile.first + warp * kOwn, states);

  sync_threads();
  for (int32_t chunk = range.first_chunk; chunk < range.end_chunk; ++chunk) {
    const int32_t base = chunk * kChunk - rows.first_position;
    const SeenSlots slots = range.slots(base);
    const Slots& by_any = slots.by_any;

    // Scores.
    const bool key_seen = by_any.has(thread_x());
    KvPlace key = {};
    if (key_seen) {
      key = head_place(of.layer.k, place_of(of.layer.k, blocks, base + thread_x()), kv_head);
    }
    const KvFormat k_format = of.layer.k.format;
    const int32_t k_group = scaled_format(k_format) ? scale_group(k_format, of.k_dim) : of.k_dim;
    float scores[kOwn][kEntries] = {};
    float group_scores[kOwn][kEntries] = {};
    for (int32_t d = 0; d < of.k_dim; d += kSlab) {
      const int32_t n = of.k_dim - d < kSlab ? of.k_dim - d : kSlab;
      const bool ends = (d + n) % k_group == 0 || d + n == of.k_dim;
      const int32_t g = d / k_group;
      sync_threads();  // the previous contents have been read
      widen_key(of.layer.k, key, key_seen, d, n, keys);
      if constexpr (kScaled) {
        const bool scaled = key_seen && scaled_format(k_format);
        if (ends) key_scales[thread_x()] = scaled ? scale_at(k_format, key, g) : 1.0F;
      }
      sync_threads();
      if (!works) continue;
      if constexpr (kScaled) {
        multiply_keys(q, keys, d, n, group_scores);
        if (!ends) continue;
        GEN_UNROLL
        for (int32_t j = 0; j < kEntries; ++j) {
          const float scale = key_scales[slot_of(j)];
          GEN_UNROLL
          for (int32_t i = 0; i < kOwn; ++i) {
            const float sum = group_scores[i][j];
            scores[i][j] = g == 0 ? sum * scale : multiply_add(sum, scale, scores[i][j]);
            group_scores[i][j] = 0.0F;
          }
        }
      } else {
        multiply_keys(q, keys, d, n, scores);
      }
    }

    float largest[kOwn];
    make_weights(of, log_weights, base, slots, scores, largest);
    sync_threads();  // all have read the keys
    SoftmaxState partials[kOwn];
    put_weights(keys, scores, largest, partials);

    // Values.
    float partial_sums[kOwn][static_cast<size_t>(kPer)];
    GEN_UNROLL
    for (int32_t i = 0; i < kOwn; ++i) {
      GEN_UNROLL
      for (int32_t j = 0; j < kPer; ++j) partial_sums[i][j] = 0.0F;
    }
    for (int32_t slot = by_any.from; slot < by_any.to; slot += view.value_slab) {
      const int32_t left = by_any.to - slot;
      const int32_t n = left < view.value_slab ? left : view.value_slab;
      if (slot > by_any.from) sync_threads();  // the entries before have been read
      widen_values<kPer, kScaled>(of, blocks, kv_head, base + slot, n, values, value_scales);
      sync_threads();
      if (works) {
        add_values<kPer, kScaled>(keys, values, value_scales, slot, n, slots.seen, slots.by_all,
                                  partial_sums);
      }
    }

    merge_partials(partials, partial_sums, states, sums);
  }

  GEN_UNROLL
  for (int32_t i = 0; i < kOwn; ++i) {
    const int32_t query = tile.first + warp * kOwn + i;
    if (warp * kOwn + i >= tile.n) continue;
    const int64_t t = rows.first_row + query / group;
    const int32_t head = kv_head * group + query % group;
    const bool nothing = states[i].max == minus_infinity();
    const float factor = 1.0F / states[i].sum;
    GEN_UNROLL
    for (int32_t j = 0; j < kPer; ++j) {
      const int32_t d = j * 32 + lane;
      if (d >= of.v_dim) continue;
      put_result(of, t, head, d, nothing ? 0.0F : sums[i][j] * factor);
    }
  }
}

/// Shared memory of a block.
size_t shared_bytes(const AttentionView& of, int32_t per, bool scaled, int32_t value_slab) {
  int32_t floats = (of.k_dim * kQueries) + kSlab * kChunk + value_slab * per * 32;
  if (scaled) floats += kChunk + value_slab * per;
  return static_cast<size_t>(floats) * sizeof(float);
}

/// Elements of values that a lane has.
int32_t per_lane(const AttentionView& of) { return of.v_dim <= 128 ? 4 : 8; }

bool any_scales(const AttentionView& of) {
  return scaled_format(of.layer.k.format) || scaled_format(of.layer.v.format);
}

}  // namespace

int32_t attention_tiles(const OpContext& context, const AttentionView& of, int32_t chunks) {
  if (chunks < 1 || of.v_dim > kMaxValueDim || of.n_kv_heads == 0) return 0;
  // A sequence with one row fills no tile.
  if (of.q.rows <= of.n_sequences) return 0;
  const int32_t per = per_lane(of);
  for (int32_t slab = 128 / per; slab >= 64 / per; slab /= 2) {
    if (shared_bytes(of, per, any_scales(of), slab) <= context.shared_bytes) return slab;
  }
  return 0;
}

Status attention_tile(const OpContext& context, const AttentionView& of, int32_t value_slab) {
  if (attention_mma_can(context, of)) return attention_mma(context, of);
  const TileView view = {of, value_slab};
  const int32_t per = per_lane(of);
  const bool scaled = any_scales(of);
  const int64_t group = of.n_heads / of.n_kv_heads;
  const device::Dim3 grid = {static_cast<unsigned>(of.q.rows * group / kQueries + of.n_sequences),
                             static_cast<unsigned>(of.n_kv_heads), 1};
  if (attention_tile_plain_can(context, of)) return attention_tile_plain(context, of, grid);
  const size_t shared = shared_bytes(of, per, scaled, value_slab);
  const auto launch = [&](auto* kernel) {
    return run_kernel(context, "attention_tile", kernel, grid, kThreads, shared, view);
  };
  if (per == 4) {
    return scaled ? launch(attention_tile_kernel<4, true>)
                  : launch(attention_tile_kernel<4, false>);
  }
  return scaled ? launch(attention_tile_kernel<8, true>) : launch(attention_tile_kernel<8, false>);
}

}  // namespace gen::cuda

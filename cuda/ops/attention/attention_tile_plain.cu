// SPDX-License-Identifier: Apache-2.0
// attention_tile.cu for keys and values in float32 and float16: the same tiles, the same operations
// in the same order, so the same bits.
//
//   Work    Keys and values are staged in shared memory in their stored form
//           (attention_stage.cuh), two pieces ahead, and are widened when they are multiplied.
//           Scores: a lane multiplies four queries with eight slots in registers, elements
//           ascending. Values: a lane has four queries and pairs of elements, slots ascending.
//           Weights have memory of their own, so a warp waits for others only at the end of a
//           piece.
//   Bytes   keys and values once for every 32 queries.
//   Shared  26 KiB of pieces (more where 16 values are more than 8.5 KiB), 32 KiB of weights, 128
//           k_dim for the queries: 74 KiB for heads of 128, so that two blocks fit.
//   Bound   the float units: of 43 instructions for an element of the keys 32 are multiply-adds.
#include "cuda/ops/attention/attention_tile.cuh"

namespace gen::cuda {
namespace {

using device::UInt2;

constexpr int32_t kThreads = kTileThreads;
constexpr int32_t kStages = 3;
constexpr int32_t kWarps = kThreads / 32;

/// Four neighbouring elements in shared memory, the first of which is number 4 * `i`.
GEN_DEVICE Four four_at(const Shared<float>& from, int32_t i) {
  const UInt4 bits = from.as<UInt4>()[i];
  return floats(bits);
}
GEN_DEVICE Four four_at(const Shared<uint16_t>& from, int32_t i) {
  const UInt2 bits = from.as<UInt2>()[i];
  return {{f16_to_f32(static_cast<uint16_t>(bits.x & 0xFFFFU)),
           f16_to_f32(static_cast<uint16_t>(bits.x >> 16)),
           f16_to_f32(static_cast<uint16_t>(bits.y & 0xFFFFU)),
           f16_to_f32(static_cast<uint16_t>(bits.y >> 16))}};
}
/// Adds n elements of the queries, from `first` on, times those of the keys.
template <typename T>
GEN_DEVICE void add_keys(const Shared<float>& q, const Shared<T>& keys, int32_t first, int32_t n,
                         float (&scores)[kOwn][kEntries]) {
  GEN_NO_UNROLL  // keeps registers for the sums; other warps hide the latency
      for (int32_t d = 0; d < n; ++d) {
    const Four query = four_at(q, (first + d) * (kQueries / 4) + warp_of_block());
    const Four low = four_at(keys, d * (kKeyStride / 4) + lane_of_warp());
    const Four high = four_at(keys, d * (kKeyStride / 4) + kChunk / 8 + lane_of_warp());
    GEN_UNROLL
    for (int32_t i = 0; i < kOwn; ++i) {
      GEN_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        scores[i][j] = multiply_add(query.of[i], low.of[j], scores[i][j]);
        scores[i][j + 4] = multiply_add(query.of[i], high.of[j], scores[i][j + 4]);
      }
    }
  }
}

/// The element of a lane's sum j.
GEN_DEVICE int32_t element_of(int32_t j) { return j / 2 * 64 + 2 * lane_of_warp() + j % 2; }

/// Adds the values of slots [from, to), times the weights of those that a query attends to (all of
/// them with kAll). Slot `first` is the piece's first.
template <typename T, size_t kPer, bool kAll>
GEN_DEVICE void add_values(const Shared<float>& weights, const Shared<T>& values, int32_t first,
                           int32_t from, int32_t to, int32_t dim, const Slots (&seen)[kOwn],
                           float (&sums)[kOwn][kPer]) {
  for (int32_t slot = from; slot < to; ++slot) {
    const Four weight = four_at(weights, warp_of_block() * kChunk + slot);
    float value[kPer];
    GEN_UNROLL
    for (int32_t j = 0; j < static_cast<int32_t>(kPer); j += 2) {
      value[j] = value[j + 1] = 0.0F;
      if (element_of(j) >= dim) continue;
      two_at(values, ((slot - first) * dim + element_of(j)) / 2, &value[j], &value[j + 1]);
    }
    GEN_UNROLL
    for (int32_t i = 0; i < kOwn; ++i) {
      if (!kAll && !seen[i].has(slot)) continue;
      GEN_UNROLL
      for (int32_t j = 0; j < static_cast<int32_t>(kPer); ++j) {
        sums[i][j] = multiply_add(weight.of[i], value[j], sums[i][j]);
      }
    }
  }
}

GEN_DEVICE int32_t within(int32_t x, const Slots& slots) {
  return x < slots.from ? slots.from : x > slots.to ? slots.to : x;
}

template <typename T, size_t kPer>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kThreads, kPer < 8 ? 2 : 1)
    attention_tile_plain_kernel(AttentionView of) {
  after_predecessor();
  GEN_SHARED(uint64_t, tiles, 2 * 2 * kChunkTiles);  // of this chunk and the next one
  GEN_SHARED(int32_t, own_range, 2 * kQueries);
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t kv_head = block_y();
  const int32_t warp = warp_of_block();
  Tile tile;
  if (!find_tile<kQueries>(of, group, block_x(), &tile)) return;
  const engine::KvRows& rows = of.sequences[tile.sequence];
  const Blocks blocks = blocks_of(of.layer, rows);
  const float* const log_weights = at(rows.log_weights);
  const TileRange range = range_of(of, rows, group, tile, own_range);
  const auto staged = [&](int32_t chunk) {
    const int32_t base = chunk * kChunk - rows.first_position;
    return StagedChunk{of.layer,
                       blocks,
                       kv_head,
                       base,
                       slots_of(base, range.lowest, range.last),
                       tiles.subspan(chunk % 2 * 2 * kChunkTiles, 2 * kChunkTiles)};
  };
  staged(range.first_chunk).find_tiles();

  const size_t piece = piece_bytes(of.v_dim, sizeof(T));
  const Shared<float> weights =
      dynamic_shared<float>(kStages * piece, static_cast<size_t>(kWarps * kChunk * kOwn));
  const Shared<float> q = dynamic_shared<float>(
      kStages * piece + static_cast<size_t>(kWarps * kChunk * kOwn) * sizeof(float),
      static_cast<size_t>(of.k_dim * kQueries));
  load_queries(of, rows, kv_head, group, tile, q);
  sync_threads();

  constexpr int32_t kElements = piece_elements<T>();
  const int32_t slots_each = piece_slots<T>(of.v_dim);
  const int32_t key_pieces = (of.k_dim + kElements - 1) / kElements;
  const int32_t pieces = key_pieces + (kChunk + slots_each - 1) / slots_each;
  const auto stage = [&](int32_t number) {
    return dynamic_shared<T>(static_cast<size_t>(number % kStages) * piece, piece / sizeof(T));
  };
  // Pieces are numbered across chunks.
  const auto start = [&](int32_t number) {
    const int32_t chunk = range.first_chunk + number / pieces;
    const int32_t i = number % pieces;
    if (chunk < range.end_chunk) {
      if (i < key_pieces) {
        const int32_t left = of.k_dim - i * kElements;
        staged(chunk).template copy_keys<kWarps>(i * kElements, left < kElements ? left : kElements,
                                                 stage(number));
      } else {
        const int32_t first = (i - key_pieces) * slots_each;
        const int32_t left = kChunk - first;
        staged(chunk).template copy_values<kWarps>(first, left < slots_each ? left : slots_each,
                                                   stage(number));
      }
    }
    device::commit_copies();
  };
  GEN_NO_UNROLL
  for (int32_t i = 0; i < kStages - 1; ++i) start(i);
  int32_t number = 0;
  /// Waits for a piece; the piece before it may then be overwritten.
  const auto next = [&] {
    device::wait_copies<kStages - 2>();
    sync_threads();
    start(number + kStages - 1);
    return stage(number++);
  };

  const bool works = warp * kOwn < tile.n;
  SoftmaxState states[kOwn];
  float sums[kOwn][kPer] = {};
  begin_states(of, kv_head, group, tile.first + warp * kOwn, states);
  for (int32_t chunk = range.first_chunk; chunk < range.end_chunk; ++chunk) {
    const int32_t base = chunk * kChunk - rows.first_position;
    if (chunk + 1 < range.end_chunk) staged(chunk + 1).find_tiles();
    float scores[kOwn][kEntries] = {};
    GEN_NO_UNROLL
    for (int32_t i = 0; i < key_pieces; ++i) {
      const Shared<T> keys = next();
      const int32_t left = of.k_dim - i * kElements;
      if (works) add_keys<T>(q, keys, i * kElements, left < kElements ? left : kElements, scores);
    }
    SoftmaxState partials[kOwn];
    float partial_sums[kOwn][kPer] = {};
    if (works) {
      float largest[kOwn];
      make_weights(of, log_weights, base, range.slots(base), scores, largest);
      put_weights(weights, scores, largest, partials);
    }
    GEN_NO_UNROLL
    for (int32_t i = key_pieces; i < pieces; ++i) {
      const Shared<T> values = next();
      if (!works) continue;
      const SeenSlots slots = range.slots(base);
      const int32_t first = (i - key_pieces) * slots_each;
      const Slots here = {within(first, slots.by_any), within(first + slots_each, slots.by_any)};
      const int32_t from = within(slots.by_all.from, here);
      const int32_t to = within(slots.by_all.to, {from, here.to});
      add_values<T, kPer, false>(weights, values, first, here.from, from, of.v_dim, slots.seen,
                                 partial_sums);
      add_values<T, kPer, true>(weights, values, first, from, to, of.v_dim, slots.seen,
                                partial_sums);
      add_values<T, kPer, false>(weights, values, first, to, here.to, of.v_dim, slots.seen,
                                 partial_sums);
    }
    if (works) merge_partials(partials, partial_sums, states, sums);
    sync_warp();  // the weights have been read
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
    for (int32_t j = 0; j < static_cast<int32_t>(kPer); ++j) {
      const int32_t d = element_of(j);
      if (d >= of.v_dim) continue;
      put_result(of, t, head, d, nothing ? 0.0F : sums[i][j] * factor);
    }
  }
}

template <typename T>
size_t shared_bytes(const AttentionView& of) {
  const auto floats = static_cast<size_t>(kWarps * kChunk * kOwn + of.k_dim * kQueries);
  return kStages * piece_bytes(of.v_dim, sizeof(T)) + floats * sizeof(float);
}

template <typename T>
Status launch(const OpContext& context, const AttentionView& of, const device::Dim3& grid) {
  const auto run = [&](auto* kernel) {
    return run_kernel(context, "attention_tile", kernel, grid, kThreads, shared_bytes<T>(of), of);
  };
  if (of.v_dim <= 64) return run(attention_tile_plain_kernel<T, 2>);
  if (of.v_dim <= 128) return run(attention_tile_plain_kernel<T, 4>);
  return run(attention_tile_plain_kernel<T, 8>);
}

}  // namespace

bool attention_tile_plain_can(const OpContext& context, const AttentionView& of) {
  if (of.v_dim % 2 != 0 || of.v_dim > kMaxValueDim) return false;
  if (plain_layer<float>(of.layer)) return shared_bytes<float>(of) <= context.shared_bytes;
  return plain_layer<uint16_t>(of.layer) && shared_bytes<uint16_t>(of) <= context.shared_bytes;
}

Status attention_tile_plain(const OpContext& context, const AttentionView& of,
                            const device::Dim3& grid) {
  if (plain_layer<float>(of.layer)) return launch<float>(context, of, grid);
  return launch<uint16_t>(context, of, grid);
}

}  // namespace gen::cuda

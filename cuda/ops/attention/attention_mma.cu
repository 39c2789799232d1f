// SPDX-License-Identifier: Apache-2.0
// attention for many rows of a sequence on tensor cores, for models whose products do not have
// fixed bits either (F16 and BF16 weights, not `deterministic`):
//   s[i, e] = q[i] . k[e];  p = 2^(rule(s) - m[i]);  out[i] = sum_e p[i, e] v[e] / sum_e p[i, e]
//   with m the largest score so far; what was summed under a smaller m is scaled down.
//
//   float16 caches  q is rounded to float16 after a power of two that brings its largest element to
//                   [1, 2), p is rounded to float16. Error of a score: 2^-12 |q| |k|; of a weight:
//                   2^-12 of it.
//   float32 caches  All factors are split into a high and a low term in bfloat16, x = h + l, and
//                   the product is h h + h l + l h. Error: 2^-16 of each product.
//   Sums are in float32. A row's bits depend on no other row: entries are taken 64 at a time, from
//   multiples of 64 on, and tensor cores do not mix rows. A NaN in a value, however, affects all
//   rows of a tile.
//
//   Work    A block has 128 queries (a query is a row and a head) that share a head of keys, or 64
//           if there are few blocks; a warp has 16. Entries are staged in shared memory 64 at a
//           time; the next ones are loaded while these are multiplied. Scores and weights stay in
//           registers: the accumulators of q times keys have the layout of the operand of weights
//           times values.
//   Bytes   keys and values once for a block.
//   Shared  for heads of 128: float16 70 KiB, two pieces; float32 134 KiB, one piece as in the
//           cache and one split into two terms.
#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma.cuh"
#include "cuda/ops/attention/attention_tile.cuh"

namespace gen::cuda {
namespace {

using device::UInt2;

constexpr int32_t kWarpQueries = 16;
constexpr int32_t kKeys = 64;  // entries at once
constexpr int32_t kKeyTiles = kKeys / kTile;
constexpr int32_t kKeysStride = kKeys + 8;  // eight rows of 16 bytes lie in different banks
constexpr int32_t kFound = 3;               // pieces whose tile addresses are known at once

/// Where a piece of kKeys entries lies: addresses of its tiles of keys, then of values. For a block
/// of kWarps warps.
template <int32_t kWarps>
struct Piece {
  static constexpr int32_t kThreads = 32 * kWarps;
  const AttentionView& of;
  Blocks blocks;
  int32_t kv_head;
  int32_t base;  // the entry of its first slot
  Slots seen;
  Shared<uint64_t> tiles;

  [[nodiscard]] GEN_DEVICE KvPlace place(const KvSideForm& form, int32_t slot) const {
    return head_place(form, place_of(form, blocks, base + slot), kv_head);
  }
  [[nodiscard]] GEN_DEVICE bool whole() const { return blocks.cells == nullptr; }
  GEN_DEVICE void find_tiles() const {
    if (thread_x() >= 2 * kKeyTiles) return;
    const int32_t first = thread_x() % kKeyTiles * kTile;
    const bool any = whole() && first < seen.to && first + kTile > seen.from;
    const KvSideForm& form = thread_x() < kKeyTiles ? of.layer.k : of.layer.v;
    tiles[thread_x()] = any ? reinterpret_cast<uint64_t>(place(form, first).tile) : 0;
  }

  /// Starts to copy the keys to rows of `stride` slots, one row per element; zeros for tiles that
  /// no row attends to.
  template <typename T>
  GEN_DEVICE void copy_keys(const Shared<T>& to, int32_t stride) const {
    if (!whole()) {
      for (int32_t i = thread_x(); i < of.k_dim * kKeys; i += kThreads) {
        const int32_t slot = i % kKeys;
        const int32_t d = i / kKeys;
        T element = {};
        if (seen.has(slot)) {
          const KvPlace key = place(of.layer.k, slot);
          element = reinterpret_cast<const T*>(key.tile)[d * kTile + key.lane];
        }
        to[d * stride + slot] = element;
      }
      return;
    }
    // A warp takes 32 times 16 bytes of a tile.
    constexpr auto kUnits = static_cast<int32_t>(sizeof(T));  // of an element of a tile
    constexpr int32_t kElements = 32 / kUnits;
    const int32_t n = of.k_dim / kElements * kKeyTiles;
    for (int32_t i = warp_of_block(); i < n; i += kWarps) {
      const int32_t tile = i % kKeyTiles;
      const int32_t d = i / kKeyTiles * kElements + lane_of_warp() / kUnits;
      const int32_t first = lane_of_warp() % kUnits * (kTile / kUnits);
      const uint64_t address = tiles[tile];
      const auto within = static_cast<uint64_t>(d * kTile + first) * sizeof(T);
      const bool any = address != 0;
      device::copy_async16(to, d * stride + tile * kTile + first,
                           any ? reinterpret_cast<const void*>(address + within) : something(),
                           any);
    }
  }
  /// Starts to copy the values to rows of `stride` elements; zeros for slots that no row attends
  /// to.
  template <int32_t kDim, typename T>
  GEN_DEVICE void copy_values(const Shared<T>& to, int32_t stride) const {
    if (!whole()) {
      for (int32_t i = thread_x(); i < kKeys * of.v_dim; i += kThreads) {
        const int32_t slot = i / of.v_dim;
        const int32_t d = i % of.v_dim;
        T element = {};
        if (seen.has(slot)) {
          const KvPlace value = place(of.layer.v, slot);
          element = reinterpret_cast<const T*>(value.tile)[value.lane * of.v_dim + d];
        }
        to[slot * stride + d] = element;
      }
      return;
    }
    constexpr int32_t kEach = 16 / static_cast<int32_t>(sizeof(T));
    constexpr int32_t kUnits = kDim / kEach;  // of a slot
    const int32_t d = thread_x() % kUnits * kEach;
    if (d >= of.v_dim) return;
    GEN_UNROLL
    for (int32_t i = 0; i < kKeys; i += kThreads / kUnits) {
      const int32_t slot = i + thread_x() / kUnits;
      const uint64_t address = tiles[kKeyTiles + slot / kTile];
      const auto within = static_cast<uint64_t>(slot % kTile * of.v_dim + d) * sizeof(T);
      const bool valid = seen.has(slot);
      device::copy_async16(to, slot * stride + d,
                           valid ? reinterpret_cast<const void*>(address + within) : something(),
                           valid);
    }
  }

 private:
  /// A valid address for copies that read nothing.
  [[nodiscard]] GEN_DEVICE const void* something() const { return blocks.blocks; }
};

/// A factor in 16 bits: of float16 one term; of float32 two in bfloat16.
struct OfF16 {
  using Stored = uint16_t;
  static constexpr int32_t kTerms = 1;
  static constexpr bool kFactors = true;
  GEN_DEVICE static void split(float low, float high, uint32_t (&terms)[1]) {
    terms[0] = device::pack_f16(low, high);
  }
  GEN_DEVICE static void multiply(float (&d)[4], const uint32_t (&a)[1][4],
                                  const uint32_t (&b)[1][2]) {
    device::mma_f16(d, a[0], b[0]);
  }
};
struct OfF32 {
  using Stored = float;
  static constexpr int32_t kTerms = 2;
  static constexpr bool kFactors = false;
  GEN_DEVICE static void split(float low, float high, uint32_t (&terms)[2]) {
    terms[0] = device::pack_bf16(low, high);
    terms[1] = device::pack_bf16(low - float_from_bits(terms[0] << 16),
                                 high - float_from_bits(terms[0] & 0xFFFF0000U));
  }
  GEN_DEVICE static void multiply(float (&d)[4], const uint32_t (&a)[2][4],
                                  const uint32_t (&b)[2][2]) {
    device::mma_bf16(d, a[1], b[0]);
    device::mma_bf16(d, a[0], b[1]);
    device::mma_bf16(d, a[0], b[0]);
  }
};

/// Shared memory of a block, in elements of 16 bits: two pieces of float16, or a piece of float32
/// and the terms of another. Heads have up to kDim elements.
template <typename Of, int32_t kDim>
struct Room {
  static constexpr int32_t kValuesStride = kDim + 8;
  static constexpr int32_t kKeyPlane = kDim * kKeysStride;
  static constexpr int32_t kPlanes = kKeyPlane + kKeys * kValuesStride;
  static constexpr int32_t kRawElements = Of::kTerms == 2 ? 2 * kDim * kKeys : 0;
  static constexpr size_t kBytes =
      2 * kPlanes * sizeof(uint16_t) + static_cast<size_t>(kRawElements) * sizeof(float);

  /// Term or piece `i`, keys and values.
  GEN_DEVICE static Shared<uint16_t> keys(int32_t i) {
    return dynamic_shared<uint16_t>(static_cast<size_t>(i * kPlanes) * sizeof(uint16_t), kKeyPlane);
  }
  GEN_DEVICE static Shared<uint16_t> values(int32_t i) {
    return dynamic_shared<uint16_t>(static_cast<size_t>(i * kPlanes + kKeyPlane) * sizeof(uint16_t),
                                    kKeys * kValuesStride);
  }
  GEN_DEVICE static Shared<float> raw(int32_t i) {
    return dynamic_shared<float>(
        2 * kPlanes * sizeof(uint16_t) + static_cast<size_t>(i * kDim * kKeys) * sizeof(float),
        kDim * kKeys);
  }
};

/// Splits four neighbouring numbers, the first of which is number `from`, to where `to` is in the
/// planes of both terms.
GEN_DEVICE void split_four(const Shared<float>& raw, int32_t from, const Shared<uint16_t>& high,
                           const Shared<uint16_t>& low, int32_t to) {
  const UInt4 bits = raw.as<UInt4>()[from / 4];
  const Four four = floats(bits);
  uint32_t first[2];
  uint32_t second[2];
  OfF32::split(four.of[0], four.of[1], first);
  OfF32::split(four.of[2], four.of[3], second);
  high.as<UInt2>()[to / 4] = UInt2{first[0], second[0]};
  low.as<UInt2>()[to / 4] = UInt2{first[1], second[1]};
}
template <int32_t kWarps, int32_t kDim>
GEN_DEVICE void split_piece(const AttentionView& of) {
  using In = Room<OfF32, kDim>;
  constexpr int32_t kThreads = 32 * kWarps;
  for (int32_t i = thread_x(); i < of.k_dim * (kKeys / 4); i += kThreads) {
    const int32_t d = i / (kKeys / 4);
    const int32_t slot = i % (kKeys / 4) * 4;
    split_four(In::raw(0), d * kKeys + slot, In::keys(0), In::keys(1), d * kKeysStride + slot);
  }
  const int32_t d = thread_x() % (kDim / 4) * 4;
  if (d >= of.v_dim) return;
  for (int32_t slot = thread_x() / (kDim / 4); slot < kKeys; slot += kThreads / (kDim / 4)) {
    split_four(In::raw(1), slot * kDim + d, In::values(0), In::values(1),
               slot * In::kValuesStride + d);
  }
}

/// A lane's part of the queries of a warp: fragments of 16 elements each, and the divisor of each
/// of its two rows.
template <typename Of, int32_t kDim>
struct Queries {
  uint32_t terms[static_cast<size_t>(kDim / 16)][static_cast<size_t>(Of::kTerms)][4];
  float factors[2];

  /// rows: null where there is no query.
  GEN_DEVICE void load(const float* const (&rows)[2], int32_t k_dim) {
    const int32_t t = lane_of_warp() % 4;
    const auto at = [&](int32_t r, int32_t d) {
      return rows[r] != nullptr && d < k_dim ? rows[r][d] : 0.0F;
    };
    float inverse[2] = {1.0F, 1.0F};
    factors[0] = factors[1] = 1.0F;
    if constexpr (Of::kFactors) {
      GEN_UNROLL
      for (int32_t r = 0; r < 2; ++r) {
        float most = 0.0F;
        for (int32_t d = 2 * t; d < k_dim; d += 8) {
          most = device::greatest(device::magnitude(at(r, d)), most);
          most = device::greatest(device::magnitude(at(r, d + 1)), most);
        }
        most = device::greatest(most, shuffle_xor(most, 1));
        most = device::greatest(most, shuffle_xor(most, 2));
        // Clamped so that the power of two and its inverse are normal numbers.
        uint32_t exponent = float_bits(most) >> 23;
        if (most == 0.0F || exponent == 255) exponent = 127;
        exponent = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
        inverse[r] = float_from_bits((254 - exponent) << 23);
        factors[r] = float_from_bits(exponent << 23);
      }
    }
    GEN_UNROLL
    for (int32_t k = 0; k < kDim / 16; ++k) {
      GEN_UNROLL
      for (int32_t i = 0; i < 4; ++i) {
        const int32_t r = i % 2;
        const int32_t d = k * 16 + i / 2 * 8 + 2 * t;
        uint32_t each[static_cast<size_t>(Of::kTerms)];
        Of::split(at(r, d) * inverse[r], at(r, d + 1) * inverse[r], each);
        GEN_UNROLL
        for (int32_t term = 0; term < Of::kTerms; ++term) terms[k][term][i] = each[term];
      }
    }
  }
};

/// A plane from where this lane's row of the four matrices begins that multiply_sixteen() loads.
GEN_DEVICE Shared<uint16_t> from_own_row(const Shared<uint16_t>& plane, int32_t stride, int32_t n) {
  const int32_t at = lane_of_warp() % 16 * stride + lane_of_warp() / 16 * 8;
  return plane.subspan(at, static_cast<size_t>(n - at));
}

/// low and high += a times sixteen rows by eight columns of a plane in each term, and by the next
/// eight; `at`: where they begin.
template <typename Of>
GEN_DEVICE void multiply_sixteen(float (&low)[4], float (&high)[4],
                                 const uint32_t (&a)[static_cast<size_t>(Of::kTerms)][4],
                                 const Shared<uint16_t> (&planes)[2], int32_t at) {
  uint32_t b[2][static_cast<size_t>(Of::kTerms)][2];
  GEN_UNROLL
  for (int32_t term = 0; term < Of::kTerms; ++term) {
    uint32_t four[4];
    device::load_matrices_transposed(four, planes[term], at);
    b[0][term][0] = four[0];
    b[0][term][1] = four[1];
    b[1][term][0] = four[2];
    b[1][term][1] = four[3];
  }
  Of::multiply(low, a, b[0]);
  Of::multiply(high, a, b[1]);
}

/// The entries that the two rows of a lane attend to, `lowest` to `last`; those that all rows of
/// the warp attend to, and those that any row does.
struct Sight {
  int32_t lowest[2];
  int32_t last[2];
  int32_t all_lowest;
  int32_t all_last;
  int32_t any_lowest;
  int32_t any_last;

  GEN_DEVICE void share() {
    all_lowest = lowest[0] > lowest[1] ? lowest[0] : lowest[1];
    any_lowest = lowest[0] < lowest[1] ? lowest[0] : lowest[1];
    all_last = last[0] < last[1] ? last[0] : last[1];
    any_last = last[0] > last[1] ? last[0] : last[1];
    for (uint32_t apart = 4; apart < 32; apart *= 2) {
      const int32_t other[4] = {shuffle_xor(all_lowest, apart), shuffle_xor(any_lowest, apart),
                                shuffle_xor(all_last, apart), shuffle_xor(any_last, apart)};
      all_lowest = other[0] > all_lowest ? other[0] : all_lowest;
      any_lowest = other[1] < any_lowest ? other[1] : any_lowest;
      all_last = other[2] < all_last ? other[2] : all_last;
      any_last = other[3] > any_last ? other[3] : any_last;
    }
  }
};

/// Running softmax of the two rows of a lane; sums are of the lane's own slots.
struct Softmax {
  float most[2] = {minus_infinity(), minus_infinity()};
  float sums[2] = {0.0F, 0.0F};

  /// Replaces the scores of the slots from entry `base` on by weights; returns the factors of the
  /// older sums.
  GEN_DEVICE void take(const AttentionView& of, const float* log_weights, const Sight& sight,
                       int32_t base, const float (&factors)[2], float (&scores)[kKeys / 8][4],
                       float (&old_factors)[2]) {
    const bool all = base >= sight.all_lowest && base + kKeys - 1 <= sight.all_last;
    float largest[2] = {minus_infinity(), minus_infinity()};
    const auto each = [&](auto rule) {
      GEN_UNROLL
      for (int32_t j = 0; j < kKeys / 8; ++j) {
        GEN_UNROLL
        for (int32_t i = 0; i < 4; ++i) {
          const int32_t entry = base + j * 8 + lane_of_warp() % 4 * 2 + i % 2;
          const bool sees = all || (entry >= sight.lowest[i / 2] && entry <= sight.last[i / 2]);
          const float score = rule(scores[j][i] * factors[i / 2], entry, sees);
          scores[j][i] = sees ? score : minus_infinity();
          largest[i / 2] = max_of(scores[j][i], largest[i / 2]);
        }
      }
    };
    if (of.soft_cap == 0.0F && log_weights == nullptr) {
      const float scale = of.scale * kLog2E;
      each([&](float x, int32_t, bool) { return x * scale; });
    } else {
      each([&](float x, int32_t entry, bool sees) {
        const float weight = log_weights != nullptr && sees ? log_weights[entry] : 0.0F;
        return ruled(of, x, weight, 0.0F);
      });
    }
    GEN_UNROLL
    for (int32_t r = 0; r < 2; ++r) {
      largest[r] = max_of(largest[r], shuffle_xor(largest[r], 1));
      largest[r] = max_of(largest[r], shuffle_xor(largest[r], 2));
      largest[r] = max_of(largest[r], most[r]);
      const float shift = largest[r] == minus_infinity() ? 0.0F : largest[r];
      old_factors[r] = exp2_weight(most[r] - shift);
      most[r] = largest[r];
      sums[r] = sums[r] * old_factors[r];
      GEN_UNROLL
      for (int32_t j = 0; j < kKeys / 8; ++j) {
        GEN_UNROLL
        for (int32_t i = 2 * r; i < 2 * r + 2; ++i) {
          scores[j][i] = exp2_weight(scores[j][i] - shift);
          sums[r] = sums[r] + scores[j][i];
        }
      }
    }
  }
};

template <typename Of, int32_t kDim, int32_t kWarps>
GEN_KERNEL GEN_LAUNCH_BOUNDS(32 * kWarps, 1) attention_mma_kernel(AttentionView of) {
  after_predecessor();
#if GEN_CUDA_ARCH >= 800
  using In = Room<Of, kDim>;
  GEN_SHARED(uint64_t, tiles, kFound * 2 * kKeyTiles);
  const int32_t group = of.n_heads / of.n_kv_heads;
  const int32_t kv_head = block_y();
  Tile tile;
  if (!find_tile<kWarps * kWarpQueries>(of, group, block_x(), &tile)) return;
  const engine::KvRows& rows = of.sequences[tile.sequence];
  const float* const log_weights = at(rows.log_weights);

  RowWalk walk;
  walk.begin(of.layer, rows, tile.first / group);
  const int32_t lowest = walk.lowest();
  walk.begin(of.layer, rows, (tile.first + tile.n - 1) / group);
  const int32_t last = walk.own_entry();
  const int32_t first = lowest / kKeys * kKeys;
  const int32_t n = (last - first) / kKeys + 1;
  const auto piece = [&](int32_t i) {
    const int32_t base = first + i * kKeys;
    const Slots seen = {lowest - base, last + 1 - base};
    return Piece<kWarps>{of,      blocks_of(of.layer, rows),
                         kv_head, base,
                         seen,    tiles.subspan(i % kFound * 2 * kKeyTiles, 2 * kKeyTiles)};
  };
  const auto start = [&](int32_t i) {
    if constexpr (Of::kTerms == 1) {
      piece(i).template copy_keys<uint16_t>(In::keys(i % 2), kKeysStride);
      piece(i).template copy_values<kDim, uint16_t>(In::values(i % 2), In::kValuesStride);
    } else {
      piece(i).template copy_keys<float>(In::raw(0), kKeys);
      piece(i).template copy_values<kDim, float>(In::raw(1), kDim);
    }
  };
  piece(0).find_tiles();
  if (n > 1) piece(1).find_tiles();
  sync_threads();
  start(0);
  device::commit_copies();

  const int32_t lane = lane_of_warp();
  const float* own[2] = {nullptr, nullptr};
  Sight sight = {{0, 0}, {-1, -1}, 0, 0, 0, 0};
  GEN_UNROLL
  for (int32_t r = 0; r < 2; ++r) {
    const int32_t within = warp_of_block() * kWarpQueries + r * 8 + lane / 4;
    if (within >= tile.n) continue;
    const int32_t query = tile.first + within;
    own[r] = of.q.data + (rows.first_row + query / group) * of.q.stride +
             int64_t{kv_head * group + query % group} * of.k_dim;
    walk.begin(of.layer, rows, query / group);
    sight.lowest[r] = walk.lowest();
    sight.last[r] = walk.own_entry();
  }
  sight.share();
  Queries<Of, kDim> queries;
  queries.load(own, of.k_dim);

  Softmax softmax;
  float sums[static_cast<size_t>(kDim / 8)][4] = {};
  for (int32_t i = 0; i < n; ++i) {
    device::wait_copies<0>();
    sync_threads();  // the piece is complete, and all have read the one before
    if constexpr (Of::kTerms == 2) {
      split_piece<kWarps, kDim>(of);
      sync_threads();
    }
    if (i + 2 < n) piece(i + 2).find_tiles();
    if (i + 1 < n) start(i + 1);
    device::commit_copies();
    const int32_t base = first + i * kKeys;
    if (base > sight.any_last || base + kKeys <= sight.any_lowest) continue;
    const int32_t here = Of::kTerms == 1 ? i % 2 : 0;
    const auto own_keys = [](int32_t term) {
      return from_own_row(In::keys(term), kKeysStride, In::kKeyPlane);
    };
    const auto own_values = [](int32_t term) {
      return from_own_row(In::values(term), In::kValuesStride, kKeys * In::kValuesStride);
    };
    const Shared<uint16_t> keys[2] = {own_keys(here), own_keys(1)};
    const Shared<uint16_t> values[2] = {own_values(here), own_values(1)};

    float scores[kKeys / 8][4] = {};
    GEN_UNROLL
    for (int32_t k = 0; k < kDim / 16; ++k) {
      if (k * 16 >= of.k_dim) continue;
      GEN_UNROLL
      for (int32_t j = 0; j < kKeys / 16; ++j) {
        multiply_sixteen<Of>(scores[2 * j], scores[2 * j + 1], queries.terms[k], keys,
                             k * 16 * kKeysStride + j * 16);
      }
    }
    float old_factors[2];
    softmax.take(of, log_weights, sight, base, queries.factors, scores, old_factors);
    if (device::any(old_factors[0] != 1.0F || old_factors[1] != 1.0F)) {
      GEN_UNROLL
      for (int32_t j = 0; j < kDim / 8; ++j) {
        GEN_UNROLL
        for (int32_t e = 0; e < 4; ++e) sums[j][e] = sums[j][e] * old_factors[e / 2];
      }
    }
    GEN_UNROLL
    for (int32_t k = 0; k < kKeys / 16; ++k) {
      uint32_t weights[static_cast<size_t>(Of::kTerms)][4];
      GEN_UNROLL
      for (int32_t e = 0; e < 4; ++e) {
        uint32_t each[static_cast<size_t>(Of::kTerms)];
        const float(&from)[4] = scores[2 * k + e / 2];
        Of::split(from[e % 2 * 2], from[e % 2 * 2 + 1], each);
        GEN_UNROLL
        for (int32_t term = 0; term < Of::kTerms; ++term) weights[term][e] = each[term];
      }
      GEN_UNROLL
      for (int32_t j = 0; j < kDim / 16; ++j) {
        if (j * 16 >= of.v_dim) continue;
        multiply_sixteen<Of>(sums[2 * j], sums[2 * j + 1], weights, values,
                             k * 16 * In::kValuesStride + j * 16);
      }
    }
  }

  GEN_UNROLL
  for (int32_t r = 0; r < 2; ++r) {
    float sum = softmax.sums[r];
    sum = sum + shuffle_xor(sum, 1);
    sum = sum + shuffle_xor(sum, 2);
    if (own[r] == nullptr) continue;
    const int32_t query = tile.first + warp_of_block() * kWarpQueries + r * 8 + lane / 4;
    const int64_t t = rows.first_row + query / group;
    const int32_t head =
        kv_head * static_cast<int32_t>(group) + query % static_cast<int32_t>(group);
    float factor = softmax.most[r] == minus_infinity() && sum == 0.0F ? 0.0F : 1.0F / sum;
    if (of.sinks != nullptr) {
      // Taken last, since registers are scarce before.
      const float sink = of.sinks[head] * kLog2E;
      const float most = max_of(softmax.most[r], sink);
      const float rest = exp2_weight(softmax.most[r] - most);
      factor = rest / multiply_add(sum, rest, exp2_weight(sink - most));
    }
    GEN_UNROLL
    for (int32_t j = 0; j < kDim / 8; ++j) {
      GEN_UNROLL
      for (int32_t e = 0; e < 2; ++e) {
        const int32_t d = j * 8 + lane % 4 * 2 + e;
        if (d >= of.v_dim) continue;
        put_result(of, t, head, d, sums[j][2 * r + e] * factor);
      }
    }
  }
#endif
}

template <typename Of, int32_t kDim>
Status launch(const OpContext& context, const AttentionView& of) {
  const int64_t group = of.n_heads / of.n_kv_heads;
  const auto tiles = [&](int32_t warps) {
    return static_cast<unsigned>(of.q.rows * group / (warps * kWarpQueries) + of.n_sequences);
  };
  const auto run = [&](auto* kernel, int32_t warps) {
    return run_kernel(context, "attention_mma", kernel,
                      {tiles(warps), static_cast<unsigned>(of.n_kv_heads), 1}, 32 * warps,
                      Room<Of, kDim>::kBytes, of);
  };
  // Half as many queries per block if larger blocks would leave multiprocessors idle.
  const int64_t blocks = of.q.rows * group / (8 * kWarpQueries) * of.n_kv_heads;
  if (3 * blocks < 2 * int64_t{context.processors}) {
    return run(attention_mma_kernel<Of, kDim, 4>, 4);
  }
  return run(attention_mma_kernel<Of, kDim, 8>, 8);
}

template <typename Of>
bool fits(const OpContext& context, const AttentionView& of) {
  const bool small = of.k_dim <= 64 && of.v_dim <= 64;
  return (small ? Room<Of, 64>::kBytes : Room<Of, 128>::kBytes) <= context.shared_bytes;
}

}  // namespace

bool attention_mma_can(const OpContext& context, const AttentionView& of) {
  if (!of.any_bits || context.compute < 80 || of.q.rows < 16) return false;
  if (of.k_dim % 16 != 0 || of.v_dim % 16 != 0 || of.k_dim > 128 || of.v_dim > 128) return false;
  const auto offsets = [](const KvSideForm& form) {
    return form.block_offset | form.tile_stride | form.head_stride;
  };
  if (of.layer.block_size % kTile != 0) return false;
  if ((offsets(of.layer.k) | offsets(of.layer.v)) % 16 != 0) return false;
  if (plain_layer<float>(of.layer)) return fits<OfF32>(context, of);
  return plain_layer<uint16_t>(of.layer) && fits<OfF16>(context, of);
}

Status attention_mma(const OpContext& context, const AttentionView& of) {
  const bool small = of.k_dim <= 64 && of.v_dim <= 64;
  if (plain_layer<float>(of.layer)) {
    return small ? launch<OfF32, 64>(context, of) : launch<OfF32, 128>(context, of);
  }
  return small ? launch<OfF16, 64>(context, of) : launch<OfF16, 128>(context, of);
}

}  // namespace gen::cuda

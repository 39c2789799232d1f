// SPDX-License-Identifier: Apache-2.0
// Products of float weights, and the epilogue of every product, on sixteen lanes; compiled once per
// target, plain C++ included.
//   acc[t][n] = fma over k ascending of w[n, k] * x[t, k], from 0
//   Work:   for one row of x, four tiles at a time. For several rows, runs of columns of one or
//           four tiles, converted to float32 in the L1 cache if there are many rows.
//   Needs:  tiles as in weight_layout.h; x float32 rows.
//   Error:  at most cols * 2^-24 * sum |w x| (tests/engine/linear_test.cpp).

#if defined(GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#undef GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#else
#define GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#endif

#include <type_traits>

#include "engine/cpu/linear/linear_kernels.h"
#include "engine/cpu/simd/activation-inl.h"
#include "engine/cpu/base/kernels.h"
#include "engine/cpu/weight/weight_layout.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
template <int kColumn>
HWY_INLINE Native load_bf16_native(const uint16_t* p) {
  return bf16_to_f32(p[kColumn]);
}
#else
template <int kColumn>
HWY_INLINE Native load_bf16_native(const uint16_t* p) {
  const hn::Rebind<uint32_t, NativeTag> bits;
  const auto pairs = hn::LoadU(bits, reinterpret_cast<const uint32_t*>(p));
  return hn::BitCast(NativeTag(), kColumn == 0 ? hn::ShiftLeft<16>(pairs)
                                               : hn::And(pairs, hn::Set(bits, 0xFFFF0000u)));
}
#endif
// One of the two columns of sixteen pairs.
template <typename T, int kColumn>
struct LoadBf16 {
  static HWY_INLINE T load(const uint16_t* p) { return load_bf16_native<kColumn>(p); }
};
template <typename T, int kColumn>
struct LoadBf16<Pair<T>, kColumn> {
  static HWY_INLINE Pair<T> load(const uint16_t* p) {
    using Half = LoadBf16<T, kColumn>;
    return {Half::load(p), Half::load(p + 2 * LanesOf<T>::kCount)};
  }
};

// A tile interleaves kColumns columns; load16<i> loads the i-th of those at p.
struct WeightF32 {
  using Element = float;
  static constexpr int kColumns = 1;
  template <int kColumn>
  static HWY_INLINE Lanes16 load16(const float* p) {
    return load(p);
  }
};
struct WeightF16 {
  using Element = uint16_t;
  static constexpr int kColumns = 1;
  template <int kColumn>
  static HWY_INLINE Lanes16 load16(const uint16_t* p) {
    return load(p);
  }
};
struct WeightBf16 {
  using Element = uint16_t;
  static constexpr int kColumns = 2;
  template <int kColumn>
  static HWY_INLINE Lanes16 load16(const uint16_t* p) {
    return LoadBf16<Lanes16, kColumn>::load(p);
  }
};

HWY_INLINE const float* float_row(const TileJob& job, int64_t t) {
  return reinterpret_cast<const float*>(job.x + static_cast<size_t>(t) * job.x_stride);
}

/// Prefetches the weights 2 KiB after p to the L2 cache; the address may be invalid. Products with
/// few rows of x are bound by memory, and the hardware prefetcher stops at page boundaries.
HWY_INLINE void fetch_ahead(const void* p) {
  const uintptr_t ahead = reinterpret_cast<uintptr_t>(p) + 2048;
  __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
}

/// Weights of a run of columns: those of tile i begin at w + i * step, in elements.
template <typename Element>
struct ColumnRun {
  const Element* w;
  size_t step;
  int64_t first;
  int64_t count;
};

/// Adds the products of the kColumn-th of the columns at k.
template <typename W, int kColumn, bool kFetch, size_t kTiles, size_t kTokens>
HWY_INLINE void add_column(const typename W::Element* w, size_t step,
                           const float* const (&x)[kTokens], int64_t k,
                           Lanes16 (&acc)[kTiles][kTokens]) {
  Lanes16 weight[kTiles];
  GEN_UNROLL
  for (size_t a = 0; a < kTiles; ++a) {
    if constexpr (kFetch && kColumn == 0) fetch_ahead(w + a * step + k * kTileRows);
    weight[a] = W::template load16<kColumn>(w + a * step + k * kTileRows);
  }
  GEN_UNROLL
  for (size_t b = 0; b < kTokens; ++b) {
    const Lanes16 value = splat(x[b][k + kColumn]);
    GEN_UNROLL
    for (size_t a = 0; a < kTiles; ++a) acc[a][b] = fma(weight[a], value, acc[a][b]);
  }
}

/// Adds the columns of `run` of kTiles tiles from tile i on, times kTokens rows from row t on. Runs
/// after the first continue the sums in acc. With kFetch it prefetches weights.
template <typename W, size_t kTiles, size_t kTokens, bool kFetch>
HWY_INLINE void float_block(const TileJob& job, const ColumnRun<typename W::Element>& run,
                            int64_t i, int64_t t) {
  const float* x[kTokens];
  Lanes16 acc[kTiles][kTokens];
  GEN_UNROLL
  for (size_t b = 0; b < kTokens; ++b) {
    x[b] = float_row(job, t + static_cast<int64_t>(b)) + run.first;
  }
  float* out = job.acc + t * job.acc_stride + i * kTileRows;
  GEN_UNROLL
  for (size_t a = 0; a < kTiles; ++a) {
    GEN_UNROLL
    for (size_t b = 0; b < kTokens; ++b) {
      const float* sum = out + static_cast<int64_t>(b) * job.acc_stride + a * kTileRows;
      acc[a][b] = run.first == 0 ? splat(0.0F) : load(sum);
    }
  }
  int64_t k = 0;
  for (; k + W::kColumns <= run.count; k += W::kColumns) {
    add_column<W, 0, kFetch>(run.w, run.step, x, k, acc);
    if constexpr (W::kColumns == 2) add_column<W, 1, kFetch>(run.w, run.step, x, k, acc);
  }
  // After an odd last column there is padding, which has no x.
  if (W::kColumns == 2 && k < run.count) add_column<W, 0, kFetch>(run.w, run.step, x, k, acc);
  GEN_UNROLL
  for (size_t a = 0; a < kTiles; ++a) {
    GEN_UNROLL
    for (size_t b = 0; b < kTokens; ++b) {
      store(acc[a][b], out + static_cast<int64_t>(b) * job.acc_stride + a * kTileRows);
    }
  }
}

// Tiles and rows of x per step: their sums fit the registers beside a column of weights and a value
// of x. With many rows, weights are mostly in the L1 cache, and loads of x cost as much as loads of
// weights. With few rows, weights must be fetched or converted, so they are loaded less often.
struct Shape {
  size_t tiles;
  size_t tokens;
};
constexpr Shape kMany = kNativeLanes == 16 ? Shape{4, 6} : Shape{1, kNativeLanes > 1 ? 6 : 1};
constexpr Shape kFew = kNativeLanes == 16 ? Shape{2, 8} : Shape{1, kNativeLanes > 1 ? 4 : 1};
// From this many rows on, storing the converted weights is worth it.
constexpr int64_t kManyRows = 24;
// Columns per run: 32 KiB of floats of four tiles stay in the L1 cache for all rows.
constexpr int64_t kRunCols = 128;
static_assert(kMany.tiles * kRunCols * kTileRows * sizeof(float) <= kTileScratchBytes);

/// The last `left` rows, at most kTokens.
template <typename W, size_t kTiles, size_t kTokens, bool kFetch>
HWY_INLINE void last_rows(const TileJob& job, const ColumnRun<typename W::Element>& run, int64_t i,
                          int64_t left) {
  if (left == static_cast<int64_t>(kTokens)) {
    float_block<W, kTiles, kTokens, kFetch>(job, run, i, job.rows - left);
  } else if constexpr (kTokens > 1) {
    last_rows<W, kTiles, kTokens - 1, kFetch>(job, run, i, left);
  }
}

/// The weights to prefetch: `bytes` of each of some tiles, `step` bytes apart.
struct Upcoming {
  const void* from;
  size_t step;
  size_t bytes;
};
/// Prefetches bytes [begin, end) of each tile to the L2 cache.
template <size_t kTiles>
HWY_INLINE void fetch_share(const Upcoming& next, size_t begin, size_t end) {
  for (size_t at = begin; at < end && at < next.bytes; at += 64) {
    for (size_t a = 0; a < kTiles; ++a) {
      const uintptr_t line = reinterpret_cast<uintptr_t>(next.from) + a * next.step + at;
      __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
    }
  }
}

/// A few rows at once. They are bound by memory, so the next weights are prefetched early.
template <typename W, size_t kTiles>
HWY_INLINE void few_rows(const TileJob& job, const ColumnRun<typename W::Element>& run, int64_t i) {
  constexpr int64_t kStep = kFew.tokens;
  if (job.rows < kStep) {
    last_rows<W, kTiles, kFew.tokens, true>(job, run, i, job.rows);
    return;
  }
  float_block<W, kTiles, kFew.tokens, true>(job, run, i, 0);
  int64_t t = kStep;
  for (; t + kStep <= job.rows; t += kStep) {
    float_block<W, kTiles, kFew.tokens, false>(job, run, i, t);
  }
  last_rows<W, kTiles, kFew.tokens, false>(job, run, i, job.rows - t);
}

/// Many rows in groups. Each group prefetches its share of the next weights, since a burst of
/// prefetches would stall.
template <size_t kTiles>
HWY_INLINE void many_rows(const TileJob& job, const ColumnRun<float>& run, const Upcoming& next,
                          int64_t i) {
  constexpr int64_t kStep = kMany.tokens;
  const auto groups = static_cast<size_t>(job.rows / kStep);
  const size_t share = ((next.bytes + groups - 1) / groups + 63) / 64 * 64;
  size_t fetched = 0;
  int64_t t = 0;
  for (; t + kStep <= job.rows; t += kStep, fetched += share) {
    fetch_share<kTiles>(next, fetched, fetched + share);
    float_block<WeightF32, kTiles, kMany.tokens, false>(job, run, i, t);
  }
  last_rows<WeightF32, kTiles, kMany.tokens, false>(job, run, i, job.rows - t);
}

/// Converts a run of kTiles tiles to a run of F32.
template <typename W, size_t kTiles>
HWY_INLINE void decode_run(const ColumnRun<typename W::Element>& run, float* decoded) {
  for (size_t a = 0; a < kTiles; ++a) {
    const typename W::Element* w = run.w + a * run.step;
    float* to = decoded + a * size_t{kRunCols * kTileRows};
    for (int64_t k = 0; k < run.count; k += W::kColumns) {
      store(W::template load16<0>(w + k * kTileRows), to + k * kTileRows);
      if constexpr (W::kColumns == 2) {
        store(W::template load16<1>(w + k * kTileRows), to + (k + 1) * kTileRows);
      }
    }
  }
}

/// A run of columns of kTiles tiles from tile i on, times many rows of x.
template <typename W, size_t kTiles>
HWY_INLINE void many_rows_of(const TileJob& job, const ColumnRun<typename W::Element>& run,
                             int64_t i) {
  using Element = typename W::Element;
  const auto* tiles = reinterpret_cast<const Element*>(job.tiles);
  // Prefetch the same columns of the next tiles, the next columns of the first tiles, or the next
  // addresses.
  const bool more_tiles = i + static_cast<int64_t>(kTiles) < job.n_tiles;
  const int64_t done = run.first + run.count;
  const Element* follows = more_tiles        ? run.w + kTiles * run.step
                           : done < job.cols ? tiles + done * kTileRows
                                             : tiles + static_cast<size_t>(job.n_tiles) * run.step;
  const Upcoming next = {follows, job.tile_bytes,
                         static_cast<size_t>(run.count * kTileRows) * sizeof(Element)};
  if constexpr (std::is_same_v<W, WeightF32>) {
    many_rows<kTiles>(job, run, next, i);
  } else {
    auto* decoded = reinterpret_cast<float*>(job.scratch);
    decode_run<W, kTiles>(run, decoded);
    many_rows<kTiles>(job, {decoded, size_t{kRunCols * kTileRows}, run.first, run.count}, next, i);
  }
}

/// Columns from `first` on, at most `limit`, of tiles from `tile` on.
template <typename Element>
HWY_INLINE ColumnRun<Element> run_at(const TileJob& job, int64_t tile, int64_t first,
                                     int64_t limit) {
  const size_t step = job.tile_bytes / sizeof(Element);
  const auto* w = reinterpret_cast<const Element*>(job.tiles) + static_cast<size_t>(tile) * step +
                  first * kTileRows;
  return {w, step, first, job.cols - first < limit ? job.cols - first : limit};
}

/// All columns of kTiles tiles.
template <typename W, size_t kTiles>
HWY_INLINE void all_columns(const TileJob& job, int64_t i) {
  using Element = typename W::Element;
  if (job.rows == 1) {
    float_block<W, kTiles, 1, true>(job, run_at<Element>(job, i, 0, job.cols), i, 0);
    return;
  }
  for (int64_t first = 0; first < job.cols; first += kRunCols) {
    few_rows<W, kTiles>(job, run_at<Element>(job, i, first, kRunCols), i);
  }
}

template <typename W>
HWY_INLINE void float_kernel(const TileJob& job) {
  using Element = typename W::Element;
  constexpr int64_t kManyTiles = kMany.tiles;
  constexpr int64_t kFewTiles = kFew.tiles;
  int64_t i = 0;
  if (job.rows >= kManyRows) {
    // Columns of x stay in the L2 cache for all tiles.
    for (int64_t first = 0; first < job.cols; first += kRunCols) {
      for (i = 0; i + kManyTiles <= job.n_tiles; i += kManyTiles) {
        many_rows_of<W, kMany.tiles>(job, run_at<Element>(job, i, first, kRunCols), i);
      }
      for (; i < job.n_tiles; ++i) {
        many_rows_of<W, 1>(job, run_at<Element>(job, i, first, kRunCols), i);
      }
    }
    return;
  }
  // One row: several tiles at once, since a single chain of sums is bound by latency.
  if (kNativeLanes > 1 && job.rows == 1) {
    for (; i + 4 <= job.n_tiles; i += 4) {
      float_block<W, 4, 1, true>(job, run_at<Element>(job, i, 0, job.cols), i, 0);
    }
  }
  for (; i + kFewTiles <= job.n_tiles; i += kFewTiles) all_columns<W, kFew.tiles>(job, i);
  for (; i < job.n_tiles; ++i) all_columns<W, 1>(job, i);
}

inline void linear_f32(const TileJob& job) { float_kernel<WeightF32>(job); }
inline void linear_f16(const TileJob& job) { float_kernel<WeightF16>(job); }
inline void linear_bf16(const TileJob& job) { float_kernel<WeightBf16>(job); }

/// Sixteen elements, or the last n < 16.
template <typename T>
HWY_INLINE Lanes16 load_some(const T* p, int64_t n) {
  return n >= kLanes ? load(p) : load_first(p, n);
}
HWY_INLINE void store_some(Lanes16 x, float* p, int64_t n) {
  if (n >= kLanes) {
    store(x, p);
  } else {
    store_first(x, p, n);
  }
}

template <Act kAct>
void finish_linear(const float* sum, const float* bias, const float* residual, float* y, int64_t n,
                   const Activation& activation) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes16 value = load(sum + i);
    if (bias != nullptr) value = add(value, load_some(bias + i, n - i));
    value = activated<kAct>(value, activation);
    if (residual != nullptr) value = add(value, load_some(residual + i, n - i));
    store_some(value, y + i, n - i);
  }
}

template <Act kAct>
void finish_gated(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                  const float* residual, float* y, int64_t n, const Activation& activation) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes16 g = load(gate + i);
    Lanes16 u = load(up + i);
    if (gate_bias != nullptr) g = add(g, load_some(gate_bias + i, n - i));
    if (up_bias != nullptr) u = add(u, load_some(up_bias + i, n - i));
    Lanes16 value = gated<kAct>(g, u, activation);
    if (residual != nullptr) value = add(value, load_some(residual + i, n - i));
    store_some(value, y + i, n - i);
  }
}

constexpr FloatKernels kFloatKernels = {
    linear_f32,
    linear_f16,
    linear_bf16,
    {finish_linear<Act::kNone>, finish_linear<Act::kSilu>, finish_linear<Act::kGelu>,
     finish_linear<Act::kRelu2>, nullptr, finish_linear<Act::kScaled>,
     finish_linear<Act::kSoftCapped>, finish_linear<Act::kSigmoid>, finish_linear<Act::kGeluErf>,
     finish_linear<Act::kXielu>, finish_linear<Act::kSoftplus>, nullptr},
    {finish_gated<Act::kNone>, finish_gated<Act::kSilu>, finish_gated<Act::kGelu>,
     finish_gated<Act::kRelu2>, finish_gated<Act::kClampedSwiglu>, finish_gated<Act::kScaled>,
     finish_gated<Act::kSoftCapped>, finish_gated<Act::kSigmoid>, finish_gated<Act::kGeluErf>,
     finish_gated<Act::kXielu>, finish_gated<Act::kSoftplus>, finish_gated<Act::kCutSwiglu>}};
static_assert(filled(kFloatKernels.finish) == kActs - 2 &&
                  filled(kFloatKernels.finish_gated) == kActs,
              "an element for each activation");

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_

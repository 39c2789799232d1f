// SPDX-License-Identifier: Apache-2.0
// Products of float weights, and the last step of every product, on sixteen lanes; compiled once
// per target, plain C++ included.
//   acc[t][n] = fma over k ascending of w[n, k] * x[t, k], from 0
//   Work:   for one row of x, four tiles at a time. For several, runs of columns of one or two
//           tiles, converted to float32 in the first-level cache where rows are many.
//   Needs:  tiles as in weight_layout.h; x float32 rows.
//   Error:  at most cols * 2^-24 * sum |w x| (tests/engine/linear_test.cpp).

#if defined(GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#undef GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#else
#define GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#endif

#include <type_traits>

#include "engine/cpu/linear_kernels.h"
#include "engine/cpu/math-inl.h"
#include "engine/cpu/weight_layout.h"
#include "hwy/cache_control.h"
#include "tensor/half.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
HWY_INLINE Native load_bf16_native(const uint16_t* p) { return bf16_to_f32(*p); }
#else
HWY_INLINE Native load_bf16_native(const uint16_t* p) {
  const hn::Rebind<uint16_t, NativeTag> half;
  const hn::Rebind<uint32_t, NativeTag> bits;
  return hn::BitCast(NativeTag(), hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(half, p))));
}
#endif
template <typename T>
struct LoadBf16 {
  static HWY_INLINE T load(const uint16_t* p) { return load_bf16_native(p); }
};
template <typename T>
struct LoadBf16<Pair<T>> {
  static HWY_INLINE Pair<T> load(const uint16_t* p) {
    return {LoadBf16<T>::load(p), LoadBf16<T>::load(p + LanesOf<T>::kCount)};
  }
};

struct WeightF32 {
  using Element = float;
  static HWY_INLINE Lanes16 load16(const float* p) { return load(p); }
};
struct WeightF16 {
  using Element = uint16_t;
  static HWY_INLINE Lanes16 load16(const uint16_t* p) { return load(p); }
};
struct WeightBf16 {
  using Element = uint16_t;
  static HWY_INLINE Lanes16 load16(const uint16_t* p) { return LoadBf16<Lanes16>::load(p); }
};

HWY_INLINE const float* float_row(const TileJob& job, int64_t t) {
  return reinterpret_cast<const float*>(job.x + static_cast<size_t>(t) * job.x_stride);
}

/// How far before their use weights are fetched. Few rows of x are bound by memory, and the
/// hardware alone stops at page borders.
constexpr uintptr_t kAheadBytes = 4096;
/// Asks for what lies `ahead` bytes from p; the address need not exist.
HWY_INLINE void prefetch_ahead(const void* p, uintptr_t ahead) {
  hwy::Prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(p) + ahead));
}

/// Weights of a run of columns: tile i's start at w + i * step, in elements.
template <typename Element>
struct ColumnRun {
  const Element* w;
  size_t step;
  int64_t first;
  int64_t count;
};

/// Adds the columns of `run` of kTiles tiles, the first being tile i, times kTokens rows from row
/// t. Sums of a run that is not the first go on from acc.
template <typename W, size_t kTiles, size_t kTokens>
HWY_INLINE void float_block(const TileJob& job, const ColumnRun<typename W::Element>& run,
                            int64_t i, int64_t t, uintptr_t ahead) {
  const typename W::Element* w[kTiles];
  const float* x[kTokens];
  Lanes16 acc[kTiles][kTokens];
  GEN_UNROLL
  for (size_t b = 0; b < kTokens; ++b) {
    x[b] = float_row(job, t + static_cast<int64_t>(b)) + run.first;
  }
  float* out = job.acc + t * job.acc_stride + i * kTileRows;
  GEN_UNROLL
  for (size_t a = 0; a < kTiles; ++a) {
    w[a] = run.w + a * run.step;
    GEN_UNROLL
    for (size_t b = 0; b < kTokens; ++b) {
      const float* sum = out + static_cast<int64_t>(b) * job.acc_stride + a * kTileRows;
      acc[a][b] = run.first == 0 ? splat(0.0F) : load(sum);
    }
  }
  for (int64_t k = 0; k < run.count; ++k) {
    Lanes16 weight[kTiles];
    GEN_UNROLL
    for (size_t a = 0; a < kTiles; ++a) {
      prefetch_ahead(w[a] + k * kTileRows, ahead);
      weight[a] = W::load16(w[a] + k * kTileRows);
    }
    GEN_UNROLL
    for (size_t b = 0; b < kTokens; ++b) {
      const Lanes16 value = splat(x[b][k]);
      GEN_UNROLL
      for (size_t a = 0; a < kTiles; ++a) acc[a][b] = fma(weight[a], value, acc[a][b]);
    }
  }
  GEN_UNROLL
  for (size_t a = 0; a < kTiles; ++a) {
    GEN_UNROLL
    for (size_t b = 0; b < kTokens; ++b) {
      store(acc[a][b], out + static_cast<int64_t>(b) * job.acc_stride + a * kTileRows);
    }
  }
}

// Columns of two tiles that stay in the first-level cache, as floats 16 KiB, while the rows pass.
constexpr int64_t kRunCols = 128;
static_assert(2 * kRunCols * kTileRows * sizeof(float) <= kTileScratchBytes);
// From this many rows on a conversion is worth storing.
constexpr int64_t kRowsWorthDecoding = 40;

/// All rows of a run of columns.
template <typename W, size_t kTiles>
HWY_INLINE void float_rows(const TileJob& job, const ColumnRun<typename W::Element>& run,
                           int64_t i) {
  // As many sums as fit the registers, and enough to hide the latency of a fused multiply-add.
  constexpr size_t kTokens = kNativeLanes == 16 ? 8 : kNativeLanes > 1 ? 4 : 1;
  constexpr auto kStep = static_cast<int64_t>(kTokens);
  // What comes next in memory is fetched by the first rows.
  const auto ahead_at = [](int64_t t) { return t == 0 ? kAheadBytes : uintptr_t{0}; };
  int64_t t = 0;
  for (; t + kStep <= job.rows; t += kStep) {
    float_block<W, kTiles, kTokens>(job, run, i, t, ahead_at(t));
  }
  if constexpr (kTokens > 4) {
    for (; t + 4 <= job.rows; t += 4) float_block<W, kTiles, 4>(job, run, i, t, ahead_at(t));
  }
  if constexpr (kTokens > 1) {
    for (; t < job.rows; ++t) float_block<W, kTiles, 1>(job, run, i, t, ahead_at(t));
  }
}

/// Several rows of x, kTiles tiles from tile i on.
template <typename W, size_t kTiles>
HWY_INLINE void float_tiles(const TileJob& job, int64_t i) {
  using Element = typename W::Element;
  constexpr bool kConvert = !std::is_same_v<W, WeightF32>;
  const auto* tiles =
      reinterpret_cast<const Element*>(job.tiles + static_cast<size_t>(i) * job.tile_bytes);
  const size_t step = job.tile_bytes / sizeof(Element);
  for (int64_t first = 0; first < job.cols; first += kRunCols) {
    const int64_t count = job.cols - first < kRunCols ? job.cols - first : kRunCols;
    const Element* w = tiles + first * kTileRows;
    if (!kConvert || job.rows < kRowsWorthDecoding) {
      float_rows<W, kTiles>(job, {w, step, first, count}, i);
      continue;
    }
    float* decoded = reinterpret_cast<float*>(job.scratch);
    for (size_t a = 0; a < kTiles; ++a) {
      for (int64_t k = 0; k < count; ++k) {
        prefetch_ahead(w + a * step + k * kTileRows, kAheadBytes);
        store(W::load16(w + a * step + k * kTileRows),
              decoded + (static_cast<int64_t>(a) * kRunCols + k) * kTileRows);
      }
    }
    float_rows<WeightF32, kTiles>(
        job, {decoded, static_cast<size_t>(kRunCols * kTileRows), first, count}, i);
  }
}

template <typename W>
HWY_INLINE void float_kernel(const TileJob& job) {
  using Element = typename W::Element;
  int64_t i = 0;
  if (job.rows == 1) {
    // Several tiles at once, since a single chain of sums would wait for itself.
    const auto run_at = [&job](int64_t tile) HWY_ATTR {
      return ColumnRun<Element>{
          reinterpret_cast<const Element*>(job.tiles + static_cast<size_t>(tile) * job.tile_bytes),
          job.tile_bytes / sizeof(Element), 0, job.cols};
    };
    if constexpr (kNativeLanes > 1) {
      for (; i + 4 <= job.n_tiles; i += 4) {
        float_block<W, 4, 1>(job, run_at(i), i, 0, kAheadBytes);
      }
    }
    for (; i < job.n_tiles; ++i) float_block<W, 1, 1>(job, run_at(i), i, 0, kAheadBytes);
    return;
  }
  constexpr int64_t kPair = kNativeLanes == 16 ? 2 : 1;
  for (; i + kPair <= job.n_tiles; i += kPair) float_tiles<W, kPair>(job, i);
  for (; i < job.n_tiles; ++i) float_tiles<W, 1>(job, i);
}

inline void linear_f32(const TileJob& job) { float_kernel<WeightF32>(job); }
inline void linear_f16(const TileJob& job) { float_kernel<WeightF16>(job); }
inline void linear_bf16(const TileJob& job) { float_kernel<WeightBf16>(job); }

/// Sixteen elements, or the n < 16 that are left.
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

inline void finish_linear(const float* sum, const float* bias, const float* residual, float* y,
                          int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes16 value = load(sum + i);
    if (bias != nullptr) value = add(value, load_some(bias + i, n - i));
    if (residual != nullptr) value = add(value, load_some(residual + i, n - i));
    store_some(value, y + i, n - i);
  }
}

inline void finish_gated(const float* gate, const float* up, const float* gate_bias,
                         const float* up_bias, const float* residual, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    Lanes16 g = load(gate + i);
    Lanes16 u = load(up + i);
    if (gate_bias != nullptr) g = add(g, load_some(gate_bias + i, n - i));
    if (up_bias != nullptr) u = add(u, load_some(up_bias + i, n - i));
    Lanes16 value = mul(silu(g), u);
    if (residual != nullptr) value = add(value, load_some(residual + i, n - i));
    store_some(value, y + i, n - i);
  }
}

constexpr FloatKernels kFloatKernels = {linear_f32, linear_f16, linear_bf16, finish_linear,
                                        finish_gated};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_

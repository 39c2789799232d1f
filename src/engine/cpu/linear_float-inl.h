// SPDX-License-Identifier: Apache-2.0
// Products of float weights, and the last step of every product, on sixteen lanes; compiled once
// per target, plain C++ included.
//   acc[t][n] = fma over k ascending of w[n, k] * x[t, k], from 0
//   Work:   one tile (or several, for a single row) at a time by kTokens rows of x; a weight vector
//           is converted once per kTokens rows.
//   Needs:  tiles as in weight_layout.h; x float32 rows.
//   Error:  at most cols * 2^-24 * sum |w x| (tests/engine/linear_test.cpp).

#if defined(GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#undef GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#else
#define GEN_ENGINE_CPU_LINEAR_FLOAT_INL_H_
#endif

#include "engine/cpu/linear_kernels.h"
#include "engine/cpu/math-inl.h"
#include "engine/cpu/weight_layout.h"
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

/// kTiles tiles from tile i by kTokens rows from row t.
template <typename W, size_t kTiles, size_t kTokens>
HWY_INLINE void float_block(const TileJob& job, int64_t i, int64_t t) {
  using Element = typename W::Element;
  const Element* w[kTiles];
  const float* x[kTokens];
  Lanes16 acc[kTiles][kTokens];
  GEN_UNROLL
  for (size_t a = 0; a < kTiles; ++a) {
    w[a] =
        reinterpret_cast<const Element*>(job.tiles + (static_cast<size_t>(i) + a) * job.tile_bytes);
    GEN_UNROLL
    for (size_t b = 0; b < kTokens; ++b) acc[a][b] = splat(0.0F);
  }
  GEN_UNROLL
  for (size_t b = 0; b < kTokens; ++b) x[b] = float_row(job, t + static_cast<int64_t>(b));
  for (int64_t k = 0; k < job.cols; ++k) {
    Lanes16 weight[kTiles];
    GEN_UNROLL
    for (size_t a = 0; a < kTiles; ++a) weight[a] = W::load16(w[a] + k * kTileRows);
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
      store(acc[a][b], job.acc + (t + static_cast<int64_t>(b)) * job.acc_stride +
                           (i + static_cast<int64_t>(a)) * kTileRows);
    }
  }
}

/// All rows of `kTiles` tiles.
template <typename W, size_t kTiles>
HWY_INLINE void float_tiles(const TileJob& job, int64_t i) {
  // As many sums as fit the registers, and enough to hide the latency of a fused multiply-add.
  constexpr size_t kTokens = (kNativeLanes == 16 ? 8 : 4) / (kTiles > 1 ? 2 : 1);
  constexpr auto kStep = static_cast<int64_t>(kTokens);
  int64_t t = 0;
  for (; t + kStep <= job.rows; t += kStep) float_block<W, kTiles, kTokens>(job, i, t);
  for (; t < job.rows; ++t) float_block<W, kTiles, 1>(job, i, t);
}

template <typename W>
HWY_INLINE void float_kernel(const TileJob& job) {
  int64_t i = 0;
  if (job.rows == 1) {
    for (; i + 4 <= job.n_tiles; i += 4) float_block<W, 4, 1>(job, i, 0);
  }
  for (; i + 2 <= job.n_tiles; i += 2) float_tiles<W, 2>(job, i);
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

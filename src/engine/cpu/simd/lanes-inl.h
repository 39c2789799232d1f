// SPDX-License-Identifier: Apache-2.0
// Lanes16: sixteen float lanes with the same results at every level, compiled once per target. It
// is one AVX-512 register, a pair of AVX2 registers, a pair of pairs of NEON registers, or plain
// floats paired up to sixteen. All reductions use it: element i is added to lane i % 16 in
// ascending order, and sum_lanes adds lanes (i, i + 8), (i, i + 4), (i, i + 2), (i, i + 1), which
// matches halving a register. Read next: math-inl.h.

#if defined(GEN_ENGINE_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LANES_INL_H_
#undef GEN_ENGINE_CPU_LANES_INL_H_
#else
#define GEN_ENGINE_CPU_LANES_INL_H_
#endif

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/cpu/simd/lanes.h"
#include "hwy/highway.h"
#include "tensor/half.h"

#ifndef GEN_ENGINE_CPU_LANES_ONCE_
#define GEN_ENGINE_CPU_LANES_ONCE_
namespace gen::engine::cpu {
/// Adding and subtracting it rounds a float below 2^22 to the nearest integer, ties to even.
constexpr float kRoundMagic = 12582912.0F;  // 1.5 * 2^23
/// The same, with the exponent bias of a float in its low bits.
constexpr float kRoundMagicBiased = 12583039.0F;  // 1.5 * 2^23 + 127
}  // namespace gen::engine::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The operations on the target's own register type `Native`. If an operand is NaN, min and max
// return the second one, as on x86.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

using Native = float;
constexpr int64_t kNativeLanes = 1;

HWY_INLINE Native splat_native(float x) { return x; }
HWY_INLINE Native load_native(const float* p) { return *p; }
HWY_INLINE Native load_native(const uint16_t* p) { return f16_to_f32(*p); }
HWY_INLINE void store(Native x, float* p) { *p = x; }
HWY_INLINE void store(Native x, uint16_t* p) { *p = f32_to_f16(x); }
HWY_INLINE Native add(Native a, Native b) { return a + b; }
HWY_INLINE Native sub(Native a, Native b) { return a - b; }
HWY_INLINE Native mul(Native a, Native b) { return a * b; }
HWY_INLINE Native div(Native a, Native b) { return a / b; }
HWY_INLINE Native fma(Native a, Native b, Native c) { return std::fma(a, b, c); }
HWY_INLINE Native max(Native a, Native b) { return a > b ? a : b; }
HWY_INLINE Native min(Native a, Native b) { return a < b ? a : b; }
HWY_INLINE Native abs(Native a) { return std::fabs(a); }
HWY_INLINE Native copy_sign(Native magnitude, Native sign) {
  return std::copysign(magnitude, sign);
}
/// a < b ? yes : no, lane by lane.
HWY_INLINE Native if_less(Native a, Native b, Native yes, Native no) { return a < b ? yes : no; }
/// a < b ? 0 : x
HWY_INLINE Native zero_if_less(Native a, Native b, Native x) { return a < b ? 0.0F : x; }
/// 2^(k >> 1) and 2^(k - (k >> 1)) for the integer k held as kRoundMagic + k.
HWY_INLINE void exp2_halves(Native shifted, Native* first, Native* second) {
  const int32_t k = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRoundMagic);
  const int32_t half = k >> 1;
  const int32_t rest = k - half;
  *first = std::bit_cast<float>(static_cast<uint32_t>(half + 127) << 23);
  *second = std::bit_cast<float>(static_cast<uint32_t>(rest + 127) << 23);
}
/// 2^k for an integer k in [-126, 127] held as kRoundMagicBiased + k.
HWY_INLINE Native exponent_from_low_bits(Native shifted) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
}
HWY_INLINE float sum_lanes(Native a) { return a; }
HWY_INLINE float max_lanes(Native a) { return a; }

#else

using NativeTag = hn::CappedTag<float, 16>;
using Native = hn::Vec<NativeTag>;
using NativeIntTag = hn::RebindToSigned<NativeTag>;
using NativeHalfTag = hn::Rebind<hwy::float16_t, NativeTag>;
constexpr int64_t kNativeLanes = HWY_MAX_BYTES / 4 < 16 ? HWY_MAX_BYTES / 4 : 16;

HWY_INLINE Native splat_native(float x) { return hn::Set(NativeTag(), x); }
HWY_INLINE Native load_native(const float* p) { return hn::LoadU(NativeTag(), p); }
HWY_INLINE Native load_native(const uint16_t* p) {
  const NativeHalfTag half;
  return hn::PromoteTo(NativeTag(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE void store(Native x, float* p) { hn::StoreU(x, NativeTag(), p); }
HWY_INLINE void store(Native x, uint16_t* p) {
  // A NaN loses its payload, as in f32_to_f16.
  const Native quiet = hn::CopySign(splat_native(std::bit_cast<float>(0x7FC00000u)), x);
  const Native clean = hn::IfThenElse(hn::IsNaN(x), quiet, x);
  const NativeHalfTag half;
  hn::StoreU(hn::DemoteTo(half, clean), half, reinterpret_cast<hwy::float16_t*>(p));
}
HWY_INLINE Native add(Native a, Native b) { return hn::Add(a, b); }
HWY_INLINE Native sub(Native a, Native b) { return hn::Sub(a, b); }
HWY_INLINE Native mul(Native a, Native b) { return hn::Mul(a, b); }
HWY_INLINE Native div(Native a, Native b) { return hn::Div(a, b); }
HWY_INLINE Native fma(Native a, Native b, Native c) { return hn::MulAdd(a, b, c); }
#if HWY_ARCH_X86
HWY_INLINE Native max(Native a, Native b) { return hn::Max(a, b); }
HWY_INLINE Native min(Native a, Native b) { return hn::Min(a, b); }
#else
HWY_INLINE Native max(Native a, Native b) { return hn::IfThenElse(hn::Gt(a, b), a, b); }
HWY_INLINE Native min(Native a, Native b) { return hn::IfThenElse(hn::Lt(a, b), a, b); }
#endif
HWY_INLINE Native abs(Native a) { return hn::Abs(a); }
HWY_INLINE Native copy_sign(Native magnitude, Native sign) { return hn::CopySign(magnitude, sign); }
/// a < b ? yes : no, lane by lane.
HWY_INLINE Native if_less(Native a, Native b, Native yes, Native no) {
  return hn::IfThenElse(hn::Lt(a, b), yes, no);
}
/// a < b ? 0 : x
HWY_INLINE Native zero_if_less(Native a, Native b, Native x) {
  return hn::IfThenZeroElse(hn::Lt(a, b), x);
}
/// 2^(k >> 1) and 2^(k - (k >> 1)) for the integer k held as kRoundMagic + k.
HWY_INLINE void exp2_halves(Native shifted, Native* first, Native* second) {
  const NativeIntTag di;
  const auto magic = hn::Set(di, std::bit_cast<int32_t>(kRoundMagic));
  const auto bias = hn::Set(di, 127);
  const auto k = hn::Sub(hn::BitCast(di, shifted), magic);
  const auto half = hn::ShiftRight<1>(k);
  const auto rest = hn::Sub(k, half);
  *first = hn::BitCast(NativeTag(), hn::ShiftLeft<23>(hn::Add(half, bias)));
  *second = hn::BitCast(NativeTag(), hn::ShiftLeft<23>(hn::Add(rest, bias)));
}

/// 2^k for an integer k in [-126, 127] held as kRoundMagicBiased + k.
HWY_INLINE Native exponent_from_low_bits(Native shifted) {
  return hn::BitCast(NativeTag(), hn::ShiftLeft<23>(hn::BitCast(NativeIntTag(), shifted)));
}

// Halving a register: the upper half is added to the lower until one lane is left.
HWY_INLINE float sum_lanes(hn::Vec<hn::FixedTag<float, 4>> a) {
  const auto pairs = hn::Add(a, hn::Shuffle1032(a));
  return hn::GetLane(hn::Add(pairs, hn::Shuffle2301(pairs)));
}
HWY_INLINE float max_lanes(hn::Vec<hn::FixedTag<float, 4>> a) {
  float lanes[4];
  hn::StoreU(a, hn::FixedTag<float, 4>(), lanes);
  const float even = lanes[0] > lanes[2] ? lanes[0] : lanes[2];
  const float odd = lanes[1] > lanes[3] ? lanes[1] : lanes[3];
  return even > odd ? even : odd;
}
#if HWY_MAX_BYTES >= 32
HWY_INLINE float sum_lanes(hn::Vec<hn::FixedTag<float, 8>> a) {
  const hn::FixedTag<float, 8> d;
  return sum_lanes(hn::Add(hn::LowerHalf(hn::Half<decltype(d)>(), a),
                           hn::UpperHalf(hn::Half<decltype(d)>(), a)));
}
HWY_INLINE float max_lanes(hn::Vec<hn::FixedTag<float, 8>> a) {
  const hn::FixedTag<float, 8> d;
  return max_lanes(hn::Max(hn::LowerHalf(hn::Half<decltype(d)>(), a),
                           hn::UpperHalf(hn::Half<decltype(d)>(), a)));
}
#endif
#if HWY_MAX_BYTES >= 64
HWY_INLINE float sum_lanes(hn::Vec<hn::FixedTag<float, 16>> a) {
  const hn::FixedTag<float, 16> d;
  return sum_lanes(hn::Add(hn::LowerHalf(hn::Half<decltype(d)>(), a),
                           hn::UpperHalf(hn::Half<decltype(d)>(), a)));
}
HWY_INLINE float max_lanes(hn::Vec<hn::FixedTag<float, 16>> a) {
  const hn::FixedTag<float, 16> d;
  return max_lanes(hn::Max(hn::LowerHalf(hn::Half<decltype(d)>(), a),
                           hn::UpperHalf(hn::Half<decltype(d)>(), a)));
}
#endif

#endif  // plain C++ or vectors

/// Twice as many lanes as T has: `lo` holds the lower ones. Every operation is done on both.
template <typename T>
struct Pair {
  T lo;
  T hi;
  // Defaulted explicitly, since gcc compiles implicit ones without the target's instructions.
  HWY_INLINE Pair() {}
  HWY_INLINE Pair(T lo_in, T hi_in) : lo(lo_in), hi(hi_in) {}
};

template <typename T>
struct LanesOf {
  static constexpr int64_t kCount = kNativeLanes;
  static HWY_INLINE T splat(float x) { return splat_native(x); }
  template <typename E>
  static HWY_INLINE T load(const E* p) {
    return load_native(p);
  }
};
template <typename T>
struct LanesOf<Pair<T>> {
  static constexpr int64_t kCount = 2 * LanesOf<T>::kCount;
  static HWY_INLINE Pair<T> splat(float x) {
    const T half = LanesOf<T>::splat(x);
    return {half, half};
  }
  template <typename E>
  static HWY_INLINE Pair<T> load(const E* p) {
    return {LanesOf<T>::load(p), LanesOf<T>::load(p + LanesOf<T>::kCount)};
  }
};

template <typename T, typename E>
HWY_INLINE void store(Pair<T> x, E* p) {
  store(x.lo, p);
  store(x.hi, p + LanesOf<T>::kCount);
}
template <typename T>
HWY_INLINE Pair<T> add(Pair<T> a, Pair<T> b) {
  return {add(a.lo, b.lo), add(a.hi, b.hi)};
}
template <typename T>
HWY_INLINE Pair<T> sub(Pair<T> a, Pair<T> b) {
  return {sub(a.lo, b.lo), sub(a.hi, b.hi)};
}
template <typename T>
HWY_INLINE Pair<T> mul(Pair<T> a, Pair<T> b) {
  return {mul(a.lo, b.lo), mul(a.hi, b.hi)};
}
template <typename T>
HWY_INLINE Pair<T> div(Pair<T> a, Pair<T> b) {
  return {div(a.lo, b.lo), div(a.hi, b.hi)};
}
template <typename T>
HWY_INLINE Pair<T> fma(Pair<T> a, Pair<T> b, Pair<T> c) {
  return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)};
}
template <typename T>
HWY_INLINE Pair<T> max(Pair<T> a, Pair<T> b) {
  return {max(a.lo, b.lo), max(a.hi, b.hi)};
}
template <typename T>
HWY_INLINE Pair<T> min(Pair<T> a, Pair<T> b) {
  return {min(a.lo, b.lo), min(a.hi, b.hi)};
}
template <typename T>
HWY_INLINE Pair<T> abs(Pair<T> a) {
  return {abs(a.lo), abs(a.hi)};
}
template <typename T>
HWY_INLINE Pair<T> copy_sign(Pair<T> magnitude, Pair<T> sign) {
  return {copy_sign(magnitude.lo, sign.lo), copy_sign(magnitude.hi, sign.hi)};
}
template <typename T>
HWY_INLINE Pair<T> if_less(Pair<T> a, Pair<T> b, Pair<T> yes, Pair<T> no) {
  return {if_less(a.lo, b.lo, yes.lo, no.lo), if_less(a.hi, b.hi, yes.hi, no.hi)};
}
template <typename T>
HWY_INLINE Pair<T> zero_if_less(Pair<T> a, Pair<T> b, Pair<T> x) {
  return {zero_if_less(a.lo, b.lo, x.lo), zero_if_less(a.hi, b.hi, x.hi)};
}
template <typename T>
HWY_INLINE void exp2_halves(Pair<T> shifted, Pair<T>* first, Pair<T>* second) {
  exp2_halves(shifted.lo, &first->lo, &second->lo);
  exp2_halves(shifted.hi, &first->hi, &second->hi);
}
template <typename T>
HWY_INLINE Pair<T> exponent_from_low_bits(Pair<T> shifted) {
  return {exponent_from_low_bits(shifted.lo), exponent_from_low_bits(shifted.hi)};
}
template <typename T>
HWY_INLINE float sum_lanes(Pair<T> a) {
  return sum_lanes(add(a.lo, a.hi));
}
template <typename T>
HWY_INLINE float max_lanes(Pair<T> a) {
  return max_lanes(max(a.lo, a.hi));
}

template <typename T, int64_t kDoublings>
struct Doubled {
  using type = Pair<typename Doubled<T, kDoublings - 1>::type>;
};
template <typename T>
struct Doubled<T, 0> {
  using type = T;
};

/// Sixteen float lanes.
using Lanes16 = Doubled<Native, kNativeLanes == 16  ? 0
                                : kNativeLanes == 8 ? 1
                                : kNativeLanes == 4 ? 2
                                                    : 4>::type;
static_assert(LanesOf<Lanes16>::kCount == kLanes);

HWY_INLINE Lanes16 splat(float x) { return LanesOf<Lanes16>::splat(x); }
/// Loads sixteen elements, float32 or binary16, from any address.
template <typename E>
HWY_INLINE Lanes16 load(const E* p) {
  return LanesOf<Lanes16>::load(p);
}
/// Loads the first n < 16 elements; the other lanes are 0.
template <typename E>
HWY_INLINE Lanes16 load_first(const E* p, int64_t n) {
  E padded[kLanes] = {};
  std::memcpy(padded, p, static_cast<size_t>(n) * sizeof(E));
  return load(padded);
}
template <typename E>
HWY_INLINE void store_first(Lanes16 x, E* p, int64_t n) {
  E all[kLanes];
  store(x, all);
  std::memcpy(p, all, static_cast<size_t>(n) * sizeof(E));
}

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LANES_INL_H_

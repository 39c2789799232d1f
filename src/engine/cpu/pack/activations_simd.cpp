// SPDX-License-Identifier: Apache-2.0
// Quantisation of activations through Highway, with the same bits as activations.cpp: the largest
// magnitude is the maximum of the bit patterns, rounding is by adding 1.5 * 2^23.
//   Work:   blocks of 32 or 256, registers of the target's width.
//   Needs:  no alignment.
#include "engine/cpu/pack/activations_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/pack/activations_simd.cpp"
#include "engine/cpu/simd/simd.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#if GEN_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

inline uint32_t largest_magnitude_bits(const float* x, int n) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int lanes = static_cast<int>(hn::Lanes(d));
  // Without the sign, bit patterns order as signed integers do.
  const auto magnitude = hn::Set(di, 0x7FFFFFFF);
  auto largest = hn::Zero(di);
  for (int i = 0; i < n; i += lanes) {
    largest = hn::Max(largest, hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), magnitude));
  }
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, largest)));
}

// Returns the sum of 16 results.
HWY_INLINE int32_t quantize_16(const float* x, float inverse, int8_t* q) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto sum = hn::Zero(di);
  for (int i = 0; i < 16; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, inverse));
    const auto limited = hn::Min(hn::Max(scaled, hn::Set(d, -127.0F)), hn::Set(d, 127.0F));
    const auto shifted = hn::Add(limited, hn::Set(d, 12582912.0F));
    // The integer is the difference to the bits of the magic number.
    const auto value = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, 0x4B400000));
    sum = hn::Add(sum, value);
    hn::StoreU(hn::DemoteTo(d8, value), d8, q + i);
  }
  return hn::GetLane(hn::SumOfLanes(di, sum));
}

inline void quantize_q8(const float* x, int64_t n, ActQ8Block* out) {
  for (int64_t i = 0; i < n; i += 32, x += 32, ++out) {
    const QuantScale scale = q8_scale(largest_magnitude_bits(x, 32));
    out->scale = scale.scale;
    // An inverse of 0 must not be multiplied with a NaN in x.
    if (scale.inverse == 0.0F) {
      for (int8_t& q : out->q) q = 0;
      out->minus_128_sum = 0;
      continue;
    }
    const int32_t sum =
        quantize_16(x, scale.inverse, out->q) + quantize_16(x + 16, scale.inverse, out->q + 16);
    out->minus_128_sum = -128 * sum;
  }
}

inline void quantize_q8k(const float* x, int64_t n, ActQ8KBlock* out) {
  for (int64_t i = 0; i < n; i += 256, x += 256, ++out) {
    const QuantScale scale = q8k_scale(largest_magnitude_bits(x, 256));
    *out = {};
    out->scale = scale.scale;
    if (scale.inverse == 0.0F) continue;
    for (int s = 0; s < 16; ++s) {
      const int32_t sum = quantize_16(x + s * 16, scale.inverse, out->q + s * 16);
      out->minus_32_sum[s] = -32 * sum;
      out->sum16[s] = static_cast<int16_t>(sum);
      out->sum32[s / 2] = static_cast<int16_t>(out->sum32[s / 2] + sum);
    }
  }
}

inline void round_bf16(const float* x, int64_t n, uint16_t* out) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(d, x + i);
    const auto bits = hn::BitCast(du, value);
    const auto upper = hn::ShiftRight<16>(bits);
    // Round to nearest even: add half of the last place, minus one if that is even.
    const auto half = hn::Add(hn::Set(du, 0x7FFF), hn::And(upper, hn::Set(du, 1)));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, half));
    const auto quiet = hn::Or(upper, hn::Set(du, 0x40));
    const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<decltype(du)>(), chosen)), d16,
               out + i);
  }
  for (; i < n; ++i) out[i] = f32_to_bf16(x[i]);
}

constexpr ActivationKernels kActivations = {quantize_q8, quantize_q8k, round_bf16};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();
#endif  // GEN_SIMD_TARGET

#if HWY_ONCE
namespace gen::engine::cpu {

const ActivationKernels* activation_kernels_simd([[maybe_unused]] CpuLevel level) noexcept {
  return GEN_SIMD_PICK(level, kActivations);
}

}  // namespace gen::engine::cpu
#endif

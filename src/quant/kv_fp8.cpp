// SPDX-License-Identifier: Apache-2.0
// See kv_fp8.h.
#include "quant/kv_fp8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/kv_scale.h"
#include "tensor/e4m3.h"

namespace gen::quant {

float kv_fp8_scale(const float* x, size_t n) noexcept {
  const float scale = kv_largest(x, n) / kE4m3Max;
  // A canonical NaN: machines differ in the NaN of a division.
  return std::isnan(scale) ? std::numeric_limits<float>::quiet_NaN() : scale;
}

void kv_fp8_encode_with(const float* x, size_t n, float scale, uint8_t* codes) noexcept {
  if (scale == 0.0F || !std::isfinite(scale)) {
    std::fill_n(codes, n, scale == 0.0F ? uint8_t{0} : f32_to_e4m3(kE4m3Max));
    return;
  }
  kv_scaled(x, n, scale, [codes](size_t i, float scaled) { codes[i] = f32_to_e4m3(scaled); });
}

float kv_fp8_encode(const float* x, size_t n, uint8_t* codes) noexcept {
  const float scale = kv_fp8_scale(x, n);
  kv_fp8_encode_with(x, n, scale, codes);
  return scale;
}

void kv_fp8_decode(const uint8_t* codes, size_t n, float scale, float* x) noexcept {
  for (size_t i = 0; i < n; ++i) x[i] = e4m3_to_f32(codes[i]) * scale;
}

}  // namespace gen::quant

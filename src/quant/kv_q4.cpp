// SPDX-License-Identifier: Apache-2.0
// See kv_q4.h. Elements go through a short array, so that rounding runs in vectors and packing
// takes pairs.
#include "quant/kv_q4.h"

#include <algorithm>

#include "quant/kv_scale.h"

namespace gen::quant {
namespace {

constexpr size_t kRun = 64;

/// Nearest integer, ties away from zero, in [-7, 7]; NaN gives -7.
int32_t round_away(float x) noexcept {
  const float raised = x > -7.0F ? x : -7.0F;
  const float limited = raised < 7.0F ? raised : 7.0F;
  const auto whole = static_cast<int32_t>(limited);
  const float rest = limited - static_cast<float>(whole);
  return whole + (rest >= 0.5F ? 1 : 0) - (rest <= -0.5F ? 1 : 0);
}

}  // namespace

float kv_q4_encode(const float* x, size_t n, uint8_t* codes) noexcept {
  const float scale = kv_largest(x, n) / 7.0F;
  if (scale == 0.0F) {
    std::fill_n(codes, kv_q4_bytes(n), uint8_t{0});
    return 0.0F;
  }
  for (size_t at = 0; at < n; at += kRun, codes += kRun / 2) {
    const size_t count = std::min(kRun, n - at);
    int32_t q[kRun] = {};
    kv_scaled(x + at, count, scale, [&q](size_t i, float scaled) { q[i] = round_away(scaled); });
    for (size_t i = 0; i < count; i += 2) {
      codes[i / 2] = static_cast<uint8_t>((q[i] & 15) | ((q[i + 1] & 15) << 4));
    }
  }
  return scale;
}

void kv_q4_decode(const uint8_t* codes, size_t n, float scale, float* x) noexcept {
  for (size_t i = 0; i + 1 < n; i += 2) {
    // Shifted up and down again, the highest bit of each half becomes its sign.
    const auto byte = static_cast<int8_t>(codes[i / 2]);
    x[i] = static_cast<float>(static_cast<int8_t>(codes[i / 2] << 4) >> 4) * scale;
    x[i + 1] = static_cast<float>(byte >> 4) * scale;
  }
  if (n % 2 != 0) {
    x[n - 1] = static_cast<float>(static_cast<int8_t>(codes[n / 2] << 4) >> 4) * scale;
  }
}

}  // namespace gen::quant

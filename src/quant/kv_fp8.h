// SPDX-License-Identifier: Apache-2.0
// Rows of keys or values as E4M3 with one scale: value = e4m3(code) * scale, scale = absmax / 448.
// Error of an element: at most |v| / 16 or scale / 1024, whichever is more.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::quant {

/// Fills codes[n] and returns the scale; 0, with codes of 0, for a row of zeros. An
/// element that is not finite makes the scale, and so the row, not finite: codes of 448, and a
/// scale of infinity or of the one NaN 0x7FC00000.
float kv_fp8_encode(const float* x, size_t n, uint8_t* codes) noexcept;
/// The same in two steps, for rows that are encoded in parts.
float kv_fp8_scale(const float* x, size_t n) noexcept;
void kv_fp8_encode_with(const float* x, size_t n, float scale, uint8_t* codes) noexcept;
void kv_fp8_decode(const uint8_t* codes, size_t n, float scale, float* x) noexcept;

}  // namespace gen::quant

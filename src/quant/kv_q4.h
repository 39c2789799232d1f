// SPDX-License-Identifier: Apache-2.0
// Groups of keys or values in 4 bits with one scale: value = q * scale, q in [-7, 7], scale =
// absmax / 7, q rounded half away from zero. Element i lies in byte i / 2, even ones in the low
// half, as two's complement. Error of an element: at most absmax / 14.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::quant {

constexpr size_t kv_q4_bytes(size_t n) noexcept { return (n + 1) / 2; }

/// Fills codes[kv_q4_bytes(n)] and returns the scale; 0, with codes of 0, for a group of zeros. An
/// odd n leaves the last half byte 0. An element that is not finite makes the scale, and so the
/// group, not finite.
float kv_q4_encode(const float* x, size_t n, uint8_t* codes) noexcept;
void kv_q4_decode(const uint8_t* codes, size_t n, float scale, float* x) noexcept;

}  // namespace gen::quant

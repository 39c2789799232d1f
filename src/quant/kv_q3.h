// SPDX-License-Identifier: Apache-2.0
// Groups of keys or values in 3 bits with eight centroids of their own: value = centroids[index].
// The centroids are fitted by weighted k-means: they start evenly spaced over [least, most], and in
// each of eight rounds become the means of the elements nearest to them, weighted by
// sqrt(|v|) + 1e-4. They are kept as binary16, so magnitudes above 65504 are kept as 65504. An
// element gets the centroid nearest to it as kept, the lowest of equally near ones. Index i takes
// bits 3i to 3i + 2 of a little-endian stream.
// Error: the weighted mean square is at most (range / 14)^2, as even spacing gives, before the
// centroids' own rounding (2^-11 of their magnitude, at least 2^-25).
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::quant {

inline constexpr size_t kKvQ3Centroids = 8;
/// Maximum elements of a group.
inline constexpr size_t kKvQ3Group = 256;

constexpr size_t kv_q3_bytes(size_t n) noexcept { return (3 * n + 7) / 8; }

/// n in [1, kKvQ3Group]. Infinities are stored as 65504 with their sign; a NaN counts as 0. Fills
/// centroids[8], ascending binary16, and codes[kv_q3_bytes(n)]; bits after the last index are 0.
void kv_q3_encode(const float* x, size_t n, uint16_t* centroids, uint8_t* codes) noexcept;
void kv_q3_decode(const uint16_t* centroids, const uint8_t* codes, size_t n, float* x) noexcept;

}  // namespace gen::quant

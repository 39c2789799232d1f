// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the codecs: all types, inputs, and bytes as numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "quant/format.h"
#include "support/low_bit_types.h"
#include "tensor/half.h"

namespace gen::quant {

inline constexpr DType kAll[] = {DType::kF32,    DType::kF16,   DType::kBF16, DType::kQ8_0,
                                 DType::kQ4_0,   DType::kQ4_1,  DType::kQ5_0, DType::kQ5_1,
                                 DType::kIQ4_NL, DType::kMXFP4, DType::kQ2_K, DType::kQ3_K,
                                 DType::kQ4_K,   DType::kQ5_K,  DType::kQ6_K, DType::kIQ4_XS};

inline std::vector<float> random_floats(uint64_t seed, int64_t n, float size) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) {
    // A sum of uniforms is approximately normal, as weights are.
    double sum = 0.0;
    for (uint64_t j = 0; j < 4; ++j) sum += uniform_double(seed, j, i) - 0.5;
    x[i] = static_cast<float>(sum) * size;
  }
  return x;
}

inline std::vector<std::byte> random_bytes(uint64_t seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<int>(uniform_double(seed, 9, i) * 256.0));
  }
  return bytes;
}

inline int u8(const std::byte* bytes, int i) { return std::to_integer<int>(bytes[i]); }
inline int i8(const std::byte* bytes, int i) { return static_cast<int8_t>(u8(bytes, i)); }
inline double half_at(const std::byte* bytes, int i) {
  return static_cast<double>(
      f16_to_f32(static_cast<uint16_t>(u8(bytes, i) | (u8(bytes, i + 1) << 8))));
}
inline void put_half(std::byte* bytes, size_t i, float value) {
  const uint16_t bits = f32_to_f16(value);
  bytes[i] = static_cast<std::byte>(bits & 255);
  bytes[i + 1] = static_cast<std::byte>(bits >> 8);
}

inline std::vector<std::byte> encode(DType type, const std::vector<float>& x) {
  uint64_t bytes = 0;
  EXPECT_TRUE(dtype_row_bytes(type, x.size(), &bytes));
  std::vector<std::byte> blocks(bytes);
  find_format(type)->encode(x.data(), blocks.data(), static_cast<int64_t>(x.size()));
  return blocks;
}

/// `importance` is of each weight.
inline std::vector<std::byte> encode(DType type, const std::vector<float>& x,
                                     const std::vector<float>& importance) {
  uint64_t bytes = 0;
  EXPECT_TRUE(dtype_row_bytes(type, x.size(), &bytes));
  std::vector<std::byte> blocks(bytes);
  find_format(type)->encode_by(x.data(), importance.data(), blocks.data(),
                               static_cast<int64_t>(x.size()));
  return blocks;
}

inline std::vector<float> decode(DType type, const std::vector<std::byte>& blocks, size_t n) {
  std::vector<float> x(n);
  find_format(type)->decode(blocks.data(), x.data(), static_cast<int64_t>(n));
  return x;
}

inline double rms(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double miss = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += miss * miss;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

}  // namespace gen::quant

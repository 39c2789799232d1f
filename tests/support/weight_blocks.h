// SPDX-License-Identifier: Apache-2.0
// Weights of any type for tests: encoded, or random blocks of the same size where encoding would
// take long. What they stand for is what decode() says.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/format.h"
#include "support/low_bit_types.h"
#include "tensor/half.h"

namespace gen::test {

/// The root mean square of the values of a block whose scale is 1.
inline double size_of_blocks(DType type) noexcept {
  switch (type) {
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
      return 50.0;
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
      return 140.0;
    case DType::kIQ1_S:
    case DType::kIQ1_M:
      return 7.0;
    default:
      return 1.0;
  }
}

/// Puts a scale into a random block.
inline void put_block_scale(DType type, uint16_t d, std::byte* block) noexcept {
  const size_t bytes = dtype_info(type)->block_bytes;
  if (type == DType::kNVFP4) {
    if ((d & 0x7FFF) == 0) {
      std::memset(block, 0, 4);
      return;
    }
    // Exponents and mantissas: half the scale has bits of its own, the rest stays random.
    const auto exponent = static_cast<int>(std::ilogb(static_cast<double>(f16_to_f32(d)))) + 5;
    for (size_t i = 0; i < 4; ++i) {
      const int random = std::to_integer<int>(block[i]);
      const int e = std::min(std::max(exponent + (random >> 6) % 2, 0), 14);
      block[i] = static_cast<std::byte>((random & 0x87) | (e << 3));
    }
    return;
  }
  if (type == DType::kIQ1_M) {
    for (size_t i = 0; i < 4; ++i) {
      std::byte& high = block[bytes - 7 + 2 * i];
      high = (high & std::byte{15}) | static_cast<std::byte>(((d >> (4 * i)) & 15) << 4);
    }
    return;
  }
  const bool behind = type == DType::kTQ1_0 || type == DType::kTQ2_0;
  std::memcpy(block + (behind ? bytes - 2 : 0), &d, sizeof(d));
}

/// Writes the blocks of n weights: x encoded, or random ones as large as x.
inline void write_weights(DType type, const float* x, std::byte* blocks, int64_t n) {
  const quant::Format& format = *quant::find_format(type);
  if (!is_low_bit(type)) {
    format.encode(x, blocks, n);
    return;
  }
  const DTypeInfo& info = *dtype_info(type);
  for (int64_t first = 0; first < n; first += info.block_elements, blocks += info.block_bytes) {
    double sum = 0.0;
    uint64_t state = 0x9E3779B97F4A7C15U;
    for (int64_t i = first; i < first + info.block_elements; ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      state = (state ^ std::bit_cast<uint32_t>(x[i])) * 0x100000001B3U;
    }
    for (size_t i = 0; i < info.block_bytes; ++i) {
      state = (state ^ (state >> 31)) * 0x94D049BB133111EBU + 1;
      blocks[i] = static_cast<std::byte>(state >> 56);
    }
    const double size = std::sqrt(sum / info.block_elements) / size_of_blocks(type);
    const float sign = (state & 1024U) != 0 ? -1.0F : 1.0F;
    put_block_scale(type, f32_to_f16(sign * static_cast<float>(size)), blocks);
  }
}

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// Weights as they lie in a file, decoded element by element: Codec<type>::at(block, i) is element i
// of a block, with the rounding of quant/decode.h, so that what a kernel multiplies is what the
// reference decodes. Neighbouring lanes take neighbouring elements, so a warp reads a block once.
// Layouts are those of quant/*.h. A new type is a Codec here and a row in for_type().
#pragma once

#include <cstdint>

#include "base/status.h"
#include "cuda/ops/device.cuh"
#include "tensor/dtype.h"

namespace gen::cuda {

using Bytes = const uint8_t*;

/// Little-endian, at an even address.
GEN_DEVICE uint16_t load_u16(Bytes at) { return *reinterpret_cast<const uint16_t*>(at); }
GEN_DEVICE float load_f16(Bytes at) { return f16_to_f32(load_u16(at)); }

/// Element i of sixteen bytes held in two words.
GEN_DEVICE int32_t pick16(uint64_t low, uint64_t high, int32_t i) {
  return static_cast<int32_t>(((i < 8 ? low : high) >> (8 * (i & 7))) & 0xFFU);
}
/// Levels of IQ4_NL and IQ4_XS.
GEN_DEVICE int32_t non_linear(int32_t code) {
  return pick16(0x766A5D4F3F2D1801ULL, 0xF1D9C5B5A6998D81ULL, code) - 128;
}
/// Levels of MXFP4.
GEN_DEVICE int32_t e2m1(int32_t code) {
  return pick16(0x1C18161413121110ULL, 0x04080A0C0D0E0F10ULL, code) - 16;
}

/// Code i of 32 in halves of 16 bytes.
GEN_DEVICE int32_t half_code(Bytes qs, int32_t i) { return (qs[i & 15] >> (i >= 16 ? 4 : 0)) & 15; }
/// Scale and minimum of run s of Q4_K and Q5_K.
GEN_DEVICE void scale_min(Bytes packed, int32_t s, int32_t* scale, int32_t* minimum) {
  if (s < 4) {
    *scale = packed[s] & 63;
    *minimum = packed[s + 4] & 63;
  } else {
    *scale = (packed[s + 4] & 15) | ((packed[s - 4] >> 6) << 4);
    *minimum = (packed[s + 4] >> 4) | ((packed[s] >> 6) << 4);
  }
}

template <DType kType>
struct Codec;

template <>
struct Codec<DType::kF32> {
  static constexpr int32_t kElements = 1;
  static constexpr int32_t kBytes = 4;
  GEN_DEVICE static float at(Bytes block, int32_t) {
    return *reinterpret_cast<const float*>(block);
  }
};
template <>
struct Codec<DType::kF16> {
  static constexpr int32_t kElements = 1;
  static constexpr int32_t kBytes = 2;
  GEN_DEVICE static float at(Bytes block, int32_t) { return load_f16(block); }
};
template <>
struct Codec<DType::kBF16> {
  static constexpr int32_t kElements = 1;
  static constexpr int32_t kBytes = 2;
  GEN_DEVICE static float at(Bytes block, int32_t) {
    return float_from_bits(static_cast<uint32_t>(load_u16(block)) << 16);
  }
};
template <>
struct Codec<DType::kQ8_0> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 34;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    return load_f16(block) * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  }
};
template <>
struct Codec<DType::kQ4_0> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 18;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    return load_f16(block) * static_cast<float>(half_code(block + 2, i) - 8);
  }
};
template <>
struct Codec<DType::kQ4_1> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 20;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const float product = load_f16(block) * static_cast<float>(half_code(block + 4, i));
    return product + load_f16(block + 2);
  }
};
template <>
struct Codec<DType::kQ5_0> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 22;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const int32_t high = (block[2 + i / 8] >> (i & 7)) & 1;
    return load_f16(block) * static_cast<float>((half_code(block + 6, i) | (high << 4)) - 16);
  }
};
template <>
struct Codec<DType::kQ5_1> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 24;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const int32_t high = (block[4 + i / 8] >> (i & 7)) & 1;
    const float product =
        load_f16(block) * static_cast<float>(half_code(block + 8, i) | (high << 4));
    return product + load_f16(block + 2);
  }
};
template <>
struct Codec<DType::kIQ4_NL> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 18;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    return load_f16(block) * static_cast<float>(non_linear(half_code(block + 2, i)));
  }
};
template <>
struct Codec<DType::kMXFP4> {
  static constexpr int32_t kElements = 32;
  static constexpr int32_t kBytes = 17;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const uint32_t e = block[0];
    const float scale = float_from_bits(e < 2 ? 0x00200000U << e : (e - 1) << 23);
    return scale * static_cast<float>(e2m1(half_code(block + 1, i)));
  }
};
template <>
struct Codec<DType::kQ2_K> {
  static constexpr int32_t kElements = 256;
  static constexpr int32_t kBytes = 84;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const int32_t both = block[i / 16];
    const int32_t code = (block[16 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    const float scale = load_f16(block + 80) * static_cast<float>(both & 15);
    const float minimum = load_f16(block + 82) * static_cast<float>(both >> 4);
    return scale * static_cast<float>(code) - minimum;
  }
};
template <>
struct Codec<DType::kQ3_K> {
  static constexpr int32_t kElements = 256;
  static constexpr int32_t kBytes = 110;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const int32_t s = i / 16;
    const int32_t low = (block[96 + s % 8] >> (s / 8 * 4)) & 15;
    const int32_t high = (block[104 + s % 4] >> (s / 4 * 2)) & 3;
    const int32_t third = (block[i % 32] >> (i / 32)) & 1;
    const int32_t two = (block[32 + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    const float scale = load_f16(block + 108) * static_cast<float>((low | (high << 4)) - 32);
    return scale * static_cast<float>((two | (third << 2)) - 4);
  }
};
template <>
struct Codec<DType::kQ4_K> {
  static constexpr int32_t kElements = 256;
  static constexpr int32_t kBytes = 144;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    int32_t scale = 0;
    int32_t minimum = 0;
    scale_min(block + 4, i / 32, &scale, &minimum);
    const int32_t code = (block[16 + 32 * (i / 64) + i % 32] >> (i / 32 % 2 * 4)) & 15;
    return load_f16(block) * static_cast<float>(scale) * static_cast<float>(code) -
           load_f16(block + 2) * static_cast<float>(minimum);
  }
};
template <>
struct Codec<DType::kQ5_K> {
  static constexpr int32_t kElements = 256;
  static constexpr int32_t kBytes = 176;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    int32_t scale = 0;
    int32_t minimum = 0;
    scale_min(block + 4, i / 32, &scale, &minimum);
    const int32_t low = (block[48 + 32 * (i / 64) + i % 32] >> (i / 32 % 2 * 4)) & 15;
    const int32_t high = (block[16 + i % 32] >> (i / 32)) & 1;
    return load_f16(block) * static_cast<float>(scale) * static_cast<float>(low | (high << 4)) -
           load_f16(block + 2) * static_cast<float>(minimum);
  }
};
template <>
struct Codec<DType::kQ6_K> {
  static constexpr int32_t kElements = 256;
  static constexpr int32_t kBytes = 210;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const int32_t half = i / 128;
    const int32_t group = i % 128 / 32;
    const int32_t low = block[64 * half + 32 * (group % 2) + i % 32] >> (group < 2 ? 0 : 4);
    const int32_t high = block[128 + 32 * half + i % 32] >> (2 * group);
    const int32_t code = (low & 15) | ((high & 3) << 4);
    const auto scale = static_cast<int32_t>(static_cast<int8_t>(block[192 + i / 16]));
    return load_f16(block + 208) * static_cast<float>(scale) * static_cast<float>(code - 32);
  }
};
template <>
struct Codec<DType::kIQ4_XS> {
  static constexpr int32_t kElements = 256;
  static constexpr int32_t kBytes = 136;
  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const int32_t s = i / 32;
    const int32_t low = (block[4 + s / 2] >> (s % 2 * 4)) & 15;
    const int32_t high = (load_u16(block + 2) >> (2 * s)) & 3;
    const int32_t code = half_code(block + 8 + 16 * s, i % 32);
    return load_f16(block) * static_cast<float>((low | (high << 4)) - 32) *
           static_cast<float>(non_linear(code));
  }
};

/// Element c of a row of a table.
template <typename Codec>
GEN_DEVICE float row_element(Bytes row, int64_t c) {
  return Codec::at(row + c / Codec::kElements * Codec::kBytes,
                   static_cast<int32_t>(c % Codec::kElements));
}

/// What use(Codec of type) gives. On the host.
template <typename Use>
Status for_type(DType type, Use&& use) {
  switch (type) {
    case DType::kF32:
      return use(Codec<DType::kF32>());
    case DType::kF16:
      return use(Codec<DType::kF16>());
    case DType::kBF16:
      return use(Codec<DType::kBF16>());
    case DType::kQ8_0:
      return use(Codec<DType::kQ8_0>());
    case DType::kQ4_0:
      return use(Codec<DType::kQ4_0>());
    case DType::kQ4_1:
      return use(Codec<DType::kQ4_1>());
    case DType::kQ5_0:
      return use(Codec<DType::kQ5_0>());
    case DType::kQ5_1:
      return use(Codec<DType::kQ5_1>());
    case DType::kIQ4_NL:
      return use(Codec<DType::kIQ4_NL>());
    case DType::kMXFP4:
      return use(Codec<DType::kMXFP4>());
    case DType::kQ2_K:
      return use(Codec<DType::kQ2_K>());
    case DType::kQ3_K:
      return use(Codec<DType::kQ3_K>());
    case DType::kQ4_K:
      return use(Codec<DType::kQ4_K>());
    case DType::kQ5_K:
      return use(Codec<DType::kQ5_K>());
    case DType::kQ6_K:
      return use(Codec<DType::kQ6_K>());
    case DType::kIQ4_XS:
      return use(Codec<DType::kIQ4_XS>());
    default:
      return error(Code::kUnsupported, "weights of type %s have no kernel", dtype_name(type));
  }
}

}  // namespace gen::cuda

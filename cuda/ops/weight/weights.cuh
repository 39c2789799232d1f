// SPDX-License-Identifier: Apache-2.0
// Weights as they lie in a file. TypeParts<type> says where a quantised type has its codes, scales
// and minima, four codes at a time; Codec<type>::at(block, i) is element i of a block, with the
// rounding of quant/decode.h, so that what a kernel computes is what the reference decodes.
// Neighbouring lanes take neighbouring elements, so a warp reads a block once. Layouts are those of
// quant/*.h. A new type is a TypeParts here and a row in for_type(), or it is one of device_type.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/weight/device_type.h"
#include "quant/traits.h"
#include "tensor/dtype.h"

namespace gen::cuda {

using Bytes = const uint8_t*;

/// Little-endian, at an even address.
GEN_DEVICE uint16_t load_u16(Bytes at) { return *reinterpret_cast<const uint16_t*>(at); }
GEN_DEVICE uint32_t load_u32(Bytes at) {
  return load_u16(at) | static_cast<uint32_t>(load_u16(at + 2)) << 16;
}
GEN_DEVICE float load_f16(Bytes at) { return f16_to_f32(load_u16(at)); }

/// Element i of sixteen bytes held in two words.
GEN_DEVICE int32_t pick16(uint64_t low, uint64_t high, int32_t i) {
  return static_cast<int32_t>(((i < 8 ? low : high) >> (8 * (i & 7))) & 0xFFU);
}
/// Values [first, first + 8) of a table of sixteen.
constexpr uint64_t eight_values(quant::CodeTable table, int32_t first) noexcept {
  uint64_t eight = 0;
  for (int32_t i = 0; i < 8; ++i) {
    eight |= uint64_t{quant::table_values(table)[first + i]} << (8 * i);
  }
  return eight;
}
template <typename Parts>
GEN_DEVICE int32_t level_of(int32_t code) {
  if constexpr (Parts::kTraits.table != quant::CodeTable::kNone) {
    constexpr uint64_t kLow = eight_values(Parts::kTraits.table, 0);
    constexpr uint64_t kHigh = eight_values(Parts::kTraits.table, 8);
    code = pick16(kLow, kHigh, code);
  }
  return code - Parts::kTraits.zero;
}

// Quad g of a block: codes 4 g to 4 g + 3, a byte each, the first one lowest.

/// Of 32 codes of four bits in halves of sixteen bytes.
GEN_DEVICE uint32_t half_quad(Bytes qs, int32_t g) {
  return (load_u32(qs + 4 * (g & 3)) >> (g / 4 * 4)) & 0x0F0F0F0FU;
}
/// One bit of each of the four: bits 4 g to 4 g + 3 of 32.
GEN_DEVICE uint32_t bit_quad(Bytes bits, int32_t g) {
  return (((load_u32(bits) >> (4 * g)) & 15U) * 0x00204081U) & 0x01010101U;
}
/// One bit of each: bit g / 8 of 32 bytes.
GEN_DEVICE uint32_t plane_quad(Bytes bits, int32_t g) {
  return (load_u32(bits + 4 * (g & 7)) >> (g / 8)) & 0x01010101U;
}
/// Two bits of each: 128 codes in 32 bytes, byte i has those of i, i + 32, i + 64 and i + 96.
GEN_DEVICE uint32_t quarter_quad(Bytes bits, int32_t g) {
  return (load_u32(bits + 32 * (g / 32) + 4 * (g & 7)) >> (g % 32 / 8 * 2)) & 0x03030303U;
}
/// Four bits of each: 64 codes in 32 bytes, byte i has those of i and i + 32.
GEN_DEVICE uint32_t pair_quad(Bytes qs, int32_t g) {
  return (load_u32(qs + 32 * (g / 16) + 4 * (g & 7)) >> (g % 16 / 8 * 4)) & 0x0F0F0F0FU;
}

/// Scale and minimum of run s of Q4_K and Q5_K.
GEN_DEVICE int32_t six_bit_scale(Bytes packed, int32_t s) {
  return s < 4 ? packed[s] & 63 : (packed[s + 4] & 15) | ((packed[s - 4] >> 6) << 4);
}
GEN_DEVICE int32_t six_bit_minimum(Bytes packed, int32_t s) {
  return s < 4 ? packed[s + 4] & 63 : (packed[s + 4] >> 4) | ((packed[s] >> 6) << 4);
}

template <DType kType>
struct PartsBase {
  static constexpr quant::Traits kTraits = *quant::find_traits(kType);
  static constexpr int32_t kD = 0;
  static constexpr int32_t kDmin = 2;
};

/// Of a quantised type: kBytes of a block, where its d (and dmin) are, quad(block, g); for blocks
/// of 256 scale(block, run), with minima minimum(block, run). This one is of types whose blocks
/// arrive as quant::BlockParts.
template <DType kType>
struct TypeParts : PartsBase<kType> {
  static_assert(arrives_in_parts(kType) && device_type(kType) == kType);
  using Parts = quant::BlockParts;
  static constexpr int32_t kBytes = sizeof(Parts);
  static constexpr int32_t kD = offsetof(Parts, d);
  static constexpr int32_t kDmin = offsetof(Parts, dmin);
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) { return load_u32(block + 4 * g); }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) {
    return static_cast<int8_t>(block[static_cast<int32_t>(offsetof(Parts, scales)) + run]);
  }
  GEN_DEVICE static int32_t minimum(Bytes block, int32_t run) {
    return block[static_cast<int32_t>(offsetof(Parts, minima)) + run];
  }
};

template <>
struct TypeParts<DType::kQ8_0> : PartsBase<DType::kQ8_0> {
  static constexpr int32_t kBytes = 34;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    return load_u32(block + 2 + 4 * g) ^ 0x80808080U;
  }
};
template <>
struct TypeParts<DType::kQ4_0> : PartsBase<DType::kQ4_0> {
  static constexpr int32_t kBytes = 18;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) { return half_quad(block + 2, g); }
};
template <>
struct TypeParts<DType::kQ4_1> : PartsBase<DType::kQ4_1> {
  static constexpr int32_t kBytes = 20;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) { return half_quad(block + 4, g); }
};
template <>
struct TypeParts<DType::kQ5_0> : PartsBase<DType::kQ5_0> {
  static constexpr int32_t kBytes = 22;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    return half_quad(block + 6, g) | bit_quad(block + 2, g) << 4;
  }
};
template <>
struct TypeParts<DType::kQ5_1> : PartsBase<DType::kQ5_1> {
  static constexpr int32_t kBytes = 24;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    return half_quad(block + 8, g) | bit_quad(block + 4, g) << 4;
  }
};
template <>
struct TypeParts<DType::kIQ4_NL> : PartsBase<DType::kIQ4_NL> {
  static constexpr int32_t kBytes = 18;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) { return half_quad(block + 2, g); }
};
template <>
struct TypeParts<DType::kMXFP4> : PartsBase<DType::kMXFP4> {
  static constexpr int32_t kBytes = 17;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    const Bytes qs = block + 1 + 4 * (g & 3);  // blocks begin anywhere
    const uint32_t four = qs[0] | static_cast<uint32_t>(qs[1]) << 8 |
                          static_cast<uint32_t>(qs[2]) << 16 | static_cast<uint32_t>(qs[3]) << 24;
    return (four >> (g / 4 * 4)) & 0x0F0F0F0FU;
  }
};
template <>
struct TypeParts<DType::kQ2_K> : PartsBase<DType::kQ2_K> {
  static constexpr int32_t kBytes = 84;
  static constexpr int32_t kD = 80;
  static constexpr int32_t kDmin = 82;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) { return quarter_quad(block + 16, g); }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) { return block[run] & 15; }
  GEN_DEVICE static int32_t minimum(Bytes block, int32_t run) { return block[run] >> 4; }
};
template <>
struct TypeParts<DType::kQ3_K> : PartsBase<DType::kQ3_K> {
  static constexpr int32_t kBytes = 110;
  static constexpr int32_t kD = 108;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    return quarter_quad(block + 32, g) | plane_quad(block, g) << 2;
  }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) {
    const int32_t low = (block[96 + run % 8] >> (run / 8 * 4)) & 15;
    const int32_t high = (block[104 + run % 4] >> (run / 4 * 2)) & 3;
    return (low | (high << 4)) - 32;
  }
};
template <>
struct TypeParts<DType::kQ4_K> : PartsBase<DType::kQ4_K> {
  static constexpr int32_t kBytes = 144;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) { return pair_quad(block + 16, g); }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) {
    return six_bit_scale(block + 4, run);
  }
  GEN_DEVICE static int32_t minimum(Bytes block, int32_t run) {
    return six_bit_minimum(block + 4, run);
  }
};
template <>
struct TypeParts<DType::kQ5_K> : PartsBase<DType::kQ5_K> {
  static constexpr int32_t kBytes = 176;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    return pair_quad(block + 48, g) | plane_quad(block + 16, g) << 4;
  }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) {
    return six_bit_scale(block + 4, run);
  }
  GEN_DEVICE static int32_t minimum(Bytes block, int32_t run) {
    return six_bit_minimum(block + 4, run);
  }
};
template <>
struct TypeParts<DType::kQ6_K> : PartsBase<DType::kQ6_K> {
  static constexpr int32_t kBytes = 210;
  static constexpr int32_t kD = 208;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    const int32_t group = g % 32 / 8;
    const Bytes low = block + 64 * (g / 32) + 32 * (group % 2) + 4 * (g & 7);
    return ((load_u32(low) >> (group / 2 * 4)) & 0x0F0F0F0FU) | quarter_quad(block + 128, g) << 4;
  }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) {
    return static_cast<int8_t>(block[192 + run]);
  }
};
template <>
struct TypeParts<DType::kIQ4_XS> : PartsBase<DType::kIQ4_XS> {
  static constexpr int32_t kBytes = 136;
  GEN_DEVICE static uint32_t quad(Bytes block, int32_t g) {
    return half_quad(block + 8 + 16 * (g / 8), g & 7);
  }
  GEN_DEVICE static int32_t scale(Bytes block, int32_t run) {
    const int32_t low = (block[4 + run / 2] >> (run % 2 * 4)) & 15;
    const int32_t high = (load_u16(block + 2) >> (2 * run)) & 3;
    return (low | (high << 4)) - 32;
  }
};

template <DType kType>
struct Codec {
  using Of = TypeParts<kType>;
  static constexpr int32_t kElements = Of::kTraits.block;
  static constexpr int32_t kBytes = Of::kBytes;

  GEN_DEVICE static float at(Bytes block, int32_t i) {
    const auto code = static_cast<int32_t>((Of::quad(block, i / 4) >> (i % 4 * 8)) & 0xFFU);
    const auto level = static_cast<float>(level_of<Of>(code));
    float d = scale_of(block);
    if constexpr (kElements == 256) {
      d = d * static_cast<float>(Of::scale(block, i / Of::kTraits.run));
    }
    const float product = d * level;
    if constexpr (!Of::kTraits.minima) {
      return product;
    } else if constexpr (kElements == 256) {
      const int32_t minimum = Of::minimum(block, i / Of::kTraits.run);
      return product - load_f16(block + Of::kDmin) * kUnit * static_cast<float>(minimum);
    } else {
      return product + load_f16(block + Of::kDmin);
    }
  }

 private:
  GEN_DEVICE static float scale_of(Bytes block) {
    if constexpr (Of::kTraits.scale == quant::ScaleKind::kE8M0) {
      const uint32_t e = block[Of::kD];
      return float_from_bits(e < 2 ? 0x00200000U << e : (e - 1) << 23);
    } else {
      return load_f16(block + Of::kD) * kUnit;
    }
  }
  static constexpr float kUnit = quant::unit_of(Of::kTraits);
};
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
    case DType::kIQ2_XXS:
      return use(Codec<DType::kIQ2_XXS>());
    case DType::kIQ2_XS:
      return use(Codec<DType::kIQ2_XS>());
    case DType::kIQ3_XXS:
      return use(Codec<DType::kIQ3_XXS>());
    case DType::kIQ3_S:
      return use(Codec<DType::kIQ3_S>());
    case DType::kIQ1_S:
      return use(Codec<DType::kIQ1_S>());
    case DType::kIQ1_M:
      return use(Codec<DType::kIQ1_M>());
    case DType::kTQ1_0:
      return use(Codec<DType::kTQ1_0>());
    default:
      return error(Code::kUnsupported, "weights of type %s have no kernel", dtype_name(type));
  }
}

}  // namespace gen::cuda

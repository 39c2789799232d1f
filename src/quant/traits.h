// SPDX-License-Identifier: Apache-2.0
// A uniform description of quantised types: codes of a few bits, runs that share a scale, blocks.
// Engines repack and multiply weights using only these facts and BlockParts, so a type adds its
// codec file and a row here, but no kernel of its own. Read next: format.h.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace gen::quant {

/// Sixteen values of 4-bit codes, each with the type's zero added.
/// kNonLinear: IQ4_NL and IQ4_XS, -127 to 113, plus 128. kE2M1: MXFP4, twice the value of a float
/// with 2 bits of exponent and 1 of mantissa, plus 16.
enum class CodeTable : int32_t { kNone, kNonLinear, kE2M1 };

inline constexpr uint8_t kNonLinearValues[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                 129, 141, 153, 166, 181, 197, 217, 241};
inline constexpr uint8_t kE2M1Values[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                            16, 15, 14, 13, 12, 10, 8,  4};

/// How the scale of a block is stored.
enum class ScaleKind : int32_t {
  kF16,   // binary16
  kE8M0,  // an exponent e: 2^(e - 128), half of the OCP value because kE2M1 holds doubled values
};

/// level = value(code) - zero, where value(code) is the code itself or from the table.
///   Blocks of 32:  w = d * level, or d * level + m with minima.
///   Blocks of 256: w = d * scale[run] * level, or that minus dmin * minimum[run] with minima.
struct Traits {
  DType type = DType::kF32;
  int block = 0;  // elements of a block, 32 or 256
  int bits = 0;   // of a code: 2, 3, 4, 5, 6 or 8
  int run = 0;    // elements that share a scale: 16 or 32
  int zero = 0;   // a power of two, or 0
  bool minima = false;
  CodeTable table = CodeTable::kNone;
  ScaleKind scale = ScaleKind::kF16;
};

inline constexpr Traits kTraits[] = {
    {DType::kQ8_0, 32, 8, 32, 128},
    {DType::kQ4_0, 32, 4, 32, 8},
    {DType::kQ4_1, 32, 4, 32, 0, true},
    {DType::kQ5_0, 32, 5, 32, 16},
    {DType::kQ5_1, 32, 5, 32, 0, true},
    {DType::kIQ4_NL, 32, 4, 32, 128, false, CodeTable::kNonLinear},
    {DType::kMXFP4, 32, 4, 32, 16, false, CodeTable::kE2M1, ScaleKind::kE8M0},
    {DType::kQ2_K, 256, 2, 16, 0, true},
    {DType::kQ3_K, 256, 3, 16, 4},
    {DType::kQ4_K, 256, 4, 32, 0, true},
    {DType::kQ5_K, 256, 5, 32, 0, true},
    {DType::kQ6_K, 256, 6, 16, 32},
    {DType::kIQ4_XS, 256, 4, 32, 128, false, CodeTable::kNonLinear},
};

/// nullptr for plain and unknown types.
constexpr const Traits* find_traits(DType type) noexcept {
  for (const Traits& traits : kTraits) {
    if (traits.type == type) return &traits;
  }
  return nullptr;
}

/// One block split into its parts. Blocks of 32 have no scales or minima; d and dmin are binary16,
/// except that kE8M0 puts its exponent in d. For blocks of 32 with minima, dmin is m.
struct BlockParts {
  uint8_t codes[256];  // in the order of the elements
  uint16_t d;
  uint16_t dmin;
  int8_t scales[16];   // [run]
  uint8_t minima[16];  // [run]
};

}  // namespace gen::quant

// SPDX-License-Identifier: Apache-2.0
// A uniform description of quantised types: codes of a few bits, runs that share a scale, blocks.
// Engines repack and multiply weights using only these facts and BlockParts, so a type adds its
// codec file and a row here, but no kernel of its own. Read next: format.h.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace gen::quant {

/// Values of codes of up to 4 bits, each with the type's zero added; see table_values.
enum class CodeTable : int32_t {
  kNone,
  kNonLinear,  // IQ4_NL and IQ4_XS: -127 to 113, plus 128
  kE2M1,       // MXFP4: twice the value of a float of 2 bits exponent and 1 mantissa, plus 16
  kE2M1At128,  // NVFP4: the same plus 128
  kIq2,        // magnitude 8, 25 or 43 in bits 0 and 1, sign in bit 2, plus 64
  kIq3Xxs,     // one of eight magnitudes, 4 to 62, in bits 0 to 2, sign in bit 3, plus 64
  kIq3S,       // magnitude 2 * c + 1 of bits 0 to 2, sign in bit 3, plus 16
  kIq1,        // -8, 0 or 8 in bits 0 and 1, then 1 added or, with bit 2, subtracted, plus 16
  kSign,       // bit 0: -1 or 1, plus 1
};

inline constexpr uint8_t kNonLinearValues[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                 129, 141, 153, 166, 181, 197, 217, 241};
inline constexpr uint8_t kE2M1Values[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                            16, 15, 14, 13, 12, 10, 8,  4};
inline constexpr uint8_t kE2M1At128Values[16] = {128, 129, 130, 131, 132, 134, 136, 140,
                                                 128, 127, 126, 125, 124, 122, 120, 116};
inline constexpr uint8_t kIq2Values[16] = {72, 89, 107, 64, 56, 39, 21, 64,
                                           72, 89, 107, 64, 56, 39, 21, 64};
inline constexpr uint8_t kIq3XxsValues[16] = {68, 76, 84, 92, 100, 108, 116, 126,
                                              60, 52, 44, 36, 28,  20,  12,  2};
inline constexpr uint8_t kIq3SValues[16] = {17, 19, 21, 23, 25, 27, 29, 31,
                                            15, 13, 11, 9,  7,  5,  3,  1};
inline constexpr uint8_t kIq1Values[16] = {9, 17, 25, 16, 7, 15, 23, 16,
                                           9, 17, 25, 16, 7, 15, 23, 16};
inline constexpr uint8_t kSignValues[16] = {0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2};

/// The sixteen values of a table; nullptr for kNone. Codes of fewer bits use the first of them.
constexpr const uint8_t* table_values(CodeTable table) noexcept {
  switch (table) {
    case CodeTable::kNonLinear:
      return kNonLinearValues;
    case CodeTable::kE2M1:
      return kE2M1Values;
    case CodeTable::kE2M1At128:
      return kE2M1At128Values;
    case CodeTable::kIq2:
      return kIq2Values;
    case CodeTable::kIq3Xxs:
      return kIq3XxsValues;
    case CodeTable::kIq3S:
      return kIq3SValues;
    case CodeTable::kIq1:
      return kIq1Values;
    case CodeTable::kSign:
      return kSignValues;
    case CodeTable::kNone:
      break;
  }
  return nullptr;
}

/// How the scale of a block is stored.
enum class ScaleKind : int32_t {
  kF16,   // binary16
  kE8M0,  // an exponent e: 2^(e - 128), half of the OCP value because kE2M1 holds doubled values
};

/// level = value(code) - zero, where value(code) is the code itself or from the table.
///   Blocks of 32:  w = d * level, or d * level + m with minima. With runs of 16, d of the run.
///   Blocks of 256: w = d * scale[run] * level, or that minus dmin * minimum[run] with minima.
/// d and dmin are what is stored times 2^-halvings.
struct Traits {
  DType type = DType::kF32;
  int block = 0;  // elements of a block, 32 or 256
  int bits = 0;   // of a code: 1, 2, 3, 4, 5, 6 or 8
  int run = 0;    // elements that share a scale: 16 or 32
  int zero = 0;   // a power of two, or 0
  bool minima = false;
  CodeTable table = CodeTable::kNone;
  ScaleKind scale = ScaleKind::kF16;
  int halvings = 0;  // of blocks of 256
  int stored = 0;    // elements of a file's block, if that is several blocks of 32
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
    {DType::kIQ2_XXS, 256, 3, 32, 64, false, CodeTable::kIq2, ScaleKind::kF16, 3},
    {DType::kIQ2_XS, 256, 3, 16, 64, false, CodeTable::kIq2, ScaleKind::kF16, 3},
    {DType::kIQ2_S, 256, 3, 16, 64, false, CodeTable::kIq2, ScaleKind::kF16, 3},
    {DType::kIQ3_XXS, 256, 4, 32, 64, false, CodeTable::kIq3Xxs, ScaleKind::kF16, 2},
    {DType::kIQ3_S, 256, 4, 32, 16, false, CodeTable::kIq3S},
    {DType::kIQ1_S, 256, 2, 32, 0, true, CodeTable::kNone, ScaleKind::kF16, 3},
    {DType::kIQ1_M, 256, 3, 16, 16, false, CodeTable::kIq1, ScaleKind::kF16, 3},
    {DType::kTQ1_0, 256, 2, 32, 1},
    {DType::kTQ2_0, 256, 2, 32, 1},
    {DType::kQ1_0, 32, 1, 32, 1, false, CodeTable::kSign, ScaleKind::kF16, 0, 128},
    {DType::kQ2_0, 32, 2, 32, 1, false, CodeTable::kNone, ScaleKind::kF16, 0, 64},
    {DType::kNVFP4, 32, 4, 16, 128, false, CodeTable::kE2M1At128, ScaleKind::kF16, 0, 64},
};

/// nullptr for plain and unknown types.
constexpr const Traits* find_traits(DType type) noexcept {
  for (const Traits& traits : kTraits) {
    if (traits.type == type) return &traits;
  }
  return nullptr;
}

/// Elements of a block as a file has it, that which Format::unpack takes.
constexpr int stored_block(const Traits& t) noexcept { return t.stored != 0 ? t.stored : t.block; }

/// 2^-halvings.
constexpr float unit_of(const Traits& t) noexcept {
  return 1.0F / static_cast<float>(1 << t.halvings);
}

/// One stored block split into its parts. d and dmin are binary16, except that kE8M0 puts its
/// exponent in d. Blocks of 32 have no scales or minima; with minima, dmin is m, and with `stored`
/// the runs have a d each, in run_d.
struct BlockParts {
  uint8_t codes[256];  // in the order of the elements
  uint16_t d;
  uint16_t dmin;
  int8_t scales[16];   // [run]
  uint8_t minima[16];  // [run]
  uint16_t run_d[8];   // [run]
};

}  // namespace gen::quant

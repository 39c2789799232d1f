// SPDX-License-Identifier: Apache-2.0
// Proves the decoders of the quantised types, and with them unpack and traits.h: random blocks
// against second formulas, written type by type from the descriptions of the formats as the place
// of each weight's bits. Equality is exact: the order of the roundings is part of the contract.
#include "quant/format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "quant/codec_cases.h"

namespace gen::quant {
namespace {

// What the bits say of one weight: w = (d * scale) * level + sign * (second * minimum).
struct Weight {
  int level;
  int scale = 1;
  int minimum = 0;
};

// `count` bits from bit `from` of byte `byte`.
int bits(const std::byte* block, int byte, int from, int count) {
  return (u8(block, byte) >> from) & ((1 << count) - 1);
}

// Weight i of 32 in bytes of which each holds two, 16 apart.
int half_of(const std::byte* qs, int i) { return bits(qs, i % 16, i < 16 ? 0 : 4, 4); }

constexpr int kUneven[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                           1,    13,   25,  38,  53,  69,  89,  113};

Weight q8_0(const std::byte* b, int i) { return {i8(b, 2 + i)}; }
Weight q4_0(const std::byte* b, int i) { return {half_of(b + 2, i) - 8}; }
Weight q4_1(const std::byte* b, int i) { return {half_of(b + 4, i), 1, 1}; }
Weight q5_0(const std::byte* b, int i) {
  return {half_of(b + 6, i) + 16 * bits(b, 2 + i / 8, i % 8, 1) - 16};
}
Weight q5_1(const std::byte* b, int i) {
  return {half_of(b + 8, i) + 16 * bits(b, 4 + i / 8, i % 8, 1), 1, 1};
}
Weight iq4_nl(const std::byte* b, int i) { return {kUneven[half_of(b + 2, i)]}; }
Weight mxfp4(const std::byte* b, int i) {
  const int code = half_of(b + 1, i);
  const int exponent = code / 2 % 4;
  const int mantissa = code % 2;
  // 2^(exponent - 1) * (1 + mantissa / 2), or mantissa / 2 at exponent 0; all twice.
  const int twice = exponent == 0 ? mantissa : (2 + mantissa) << (exponent - 1);
  return {code < 8 ? twice : -twice};
}
Weight q2_k(const std::byte* b, int i) {
  const int q = bits(b, 16 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
  return {q, bits(b, i / 16, 0, 4), bits(b, i / 16, 4, 4)};
}
Weight q3_k(const std::byte* b, int i) {
  const int low = bits(b, 32 + i / 128 * 32 + i % 32, i % 128 / 32 * 2, 2);
  const int high = bits(b, i % 32, i / 32, 1);
  const int run = i / 16;
  const int scale_low = run < 8 ? bits(b, 96 + run, 0, 4) : bits(b, 96 + run - 8, 4, 4);
  const int scale_high = bits(b, 104 + run % 4, run / 4 * 2, 2);
  return {low - (high == 1 ? 0 : 4), scale_low + 16 * scale_high - 32};
}
// The twelve bytes of scales and minima, addressed bit by bit.
int k_scale(const std::byte* b, int run) {
  return run < 4 ? bits(b, 4 + run, 0, 6)
                 : bits(b, 4 + run + 4, 0, 4) + 16 * bits(b, 4 + run - 4, 6, 2);
}
int k_minimum(const std::byte* b, int run) {
  return run < 4 ? bits(b, 4 + run + 4, 0, 6)
                 : bits(b, 4 + run + 4, 4, 4) + 16 * bits(b, 4 + run, 6, 2);
}
Weight q4_k(const std::byte* b, int i) {
  const int byte = u8(b, 16 + i / 64 * 32 + i % 32);
  return {i % 64 < 32 ? byte % 16 : byte / 16, k_scale(b, i / 32), k_minimum(b, i / 32)};
}
Weight q5_k(const std::byte* b, int i) {
  const int byte = u8(b, 48 + i / 64 * 32 + i % 32);
  const int high = bits(b, 16 + i % 32, i / 32, 1);
  return {(i % 64 < 32 ? byte % 16 : byte / 16) + 16 * high, k_scale(b, i / 32),
          k_minimum(b, i / 32)};
}
Weight q6_k(const std::byte* b, int i) {
  const int half = i / 128;
  const int l = i % 32;
  const std::byte* low = b + 64 * half;
  const std::byte* high = b + 128 + 32 * half;
  const int q[4] = {(u8(low, l) & 15) | ((u8(high, l) & 3) << 4),
                    (u8(low, l + 32) & 15) | (((u8(high, l) >> 2) & 3) << 4),
                    (u8(low, l) >> 4) | (((u8(high, l) >> 4) & 3) << 4),
                    (u8(low, l + 32) >> 4) | ((u8(high, l) >> 6) << 4)};
  return {q[i % 128 / 32] - 32, i8(b, 192 + i / 16)};
}
Weight iq4_xs(const std::byte* b, int i) {
  const int run = i / 32;
  const int low = bits(b, 4 + run / 2, run % 2 * 4, 4);
  const int high = bits(b, 2 + run / 4, run % 4 * 2, 2);
  return {kUneven[half_of(b + 8 + 16 * run, i % 32)], low + 16 * high - 32};
}

struct Case {
  DType type;
  Weight (*weight)(const std::byte* block, int i);
  int d;            // byte at which d is, -1 for an exponent in byte 0
  int second = -1;  // byte of dmin or m, -1 if there is none
  float sign = -1.0F;
};

constexpr Case kCases[] = {
    {DType::kQ8_0, q8_0, 0},     {DType::kQ4_0, q4_0, 0},          {DType::kQ4_1, q4_1, 0, 2, 1.0F},
    {DType::kQ5_0, q5_0, 0},     {DType::kQ5_1, q5_1, 0, 2, 1.0F}, {DType::kIQ4_NL, iq4_nl, 0},
    {DType::kMXFP4, mxfp4, -1},  {DType::kQ2_K, q2_k, 80, 82},     {DType::kQ3_K, q3_k, 108},
    {DType::kQ4_K, q4_k, 0, 2},  {DType::kQ5_K, q5_k, 0, 2},       {DType::kQ6_K, q6_k, 208},
    {DType::kIQ4_XS, iq4_xs, 0},
};

TEST(Decode, IsTheByteFormula) {
  for (const Case& test : kCases) {
    const DTypeInfo* info = dtype_info(test.type);
    const auto elements = static_cast<int>(info->block_elements);
    for (uint64_t seed = 0; seed < 50; ++seed) {
      // Two blocks, so that the step from one to the next is seen.
      std::vector<std::byte> bytes = random_bytes(seed, size_t{2} * info->block_bytes);
      for (size_t at = 0; at < bytes.size(); at += info->block_bytes) {
        const float size = 0.01F * static_cast<float>(seed + 1) + static_cast<float>(at);
        if (test.d >= 0) put_half(bytes.data() + at, static_cast<size_t>(test.d), -size);
        if (test.second >= 0) {
          put_half(bytes.data() + at, static_cast<size_t>(test.second), 0.3F * size);
        }
      }
      const std::vector<float> y = decode(test.type, bytes, static_cast<size_t>(2 * elements));
      for (int i = 0; i < 2 * elements; ++i) {
        const std::byte* block = bytes.data() + (i < elements ? 0 : info->block_bytes);
        const Weight weight = test.weight(block, i % elements);
        const float d = test.d >= 0 ? static_cast<float>(half_at(block, test.d))
                                    : std::ldexp(1.0F, u8(block, 0) - 128);
        float expected = d * static_cast<float>(weight.scale) * static_cast<float>(weight.level);
        if (test.second >= 0) {
          const auto second = static_cast<float>(half_at(block, test.second));
          expected += test.sign * (second * static_cast<float>(weight.minimum));
        }
        ASSERT_EQ(y[static_cast<size_t>(i)], expected)
            << dtype_name(test.type) << " weight " << i << " seed " << seed;
      }
    }
  }
}

TEST(Decode, EveryQuantisedTypeHasASecondFormulaAndTraits) {
  size_t quantised = 0;
  for (const DType type : kAll) {
    const bool plain = dtype_info(type)->block_elements == 1;
    EXPECT_EQ(find_traits(type) == nullptr, plain) << dtype_name(type);
    EXPECT_EQ(find_format(type)->unpack == nullptr, plain) << dtype_name(type);
    if (!plain) ++quantised;
  }
  EXPECT_EQ(quantised, std::size(kCases));
  for (const Format& format : formats()) {
    if (test::is_low_bit(format.type)) ++quantised;  // low_bit_test.cpp
  }
  EXPECT_EQ(quantised, std::size(kTraits));
}

TEST(Traits, SizesAreThoseOfTheTypes) {
  for (const Traits& traits : kTraits) {
    const DTypeInfo* info = dtype_info(traits.type);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(stored_block(traits), static_cast<int>(info->block_elements)) << info->name;
    EXPECT_EQ(stored_block(traits) % traits.block, 0) << info->name;
    EXPECT_EQ(traits.block % traits.run, 0) << info->name;
    if (test::is_low_bit(traits.type)) continue;
    // What is not codes is scales: less than two bytes a run and six a block.
    const int codes = traits.block * traits.bits / 8;
    const int rest = static_cast<int>(info->block_bytes) - codes;
    EXPECT_GT(rest, 0) << info->name;
    EXPECT_LE(rest, 6 + 2 * (traits.block / traits.run)) << info->name;
  }
}

TEST(Unpack, CodesAreInRangeAndOnlyTheBlockIsWritten) {
  for (const Case& test : kCases) {
    const Traits& traits = *find_traits(test.type);
    const std::vector<std::byte> bytes = random_bytes(3, dtype_info(test.type)->block_bytes);
    BlockParts parts;
    std::memset(&parts, 0xA5, sizeof(parts));
    find_format(test.type)->unpack(bytes.data(), parts);
    for (int i = 0; i < 256; ++i) {
      if (i < traits.block) {
        EXPECT_LT(parts.codes[i], 1 << traits.bits) << dtype_name(test.type) << ' ' << i;
      } else {
        EXPECT_EQ(parts.codes[i], 0xA5) << dtype_name(test.type) << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace gen::quant

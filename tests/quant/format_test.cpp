// SPDX-License-Identifier: Apache-2.0
// Proves the reference codecs: blocks worked out by hand, and encoders by error bounds that follow
// from each format's step. Decoders against a second formula: decode_test.cpp.
#include "quant/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "quant/codec_cases.h"

namespace gen::quant {
namespace {

TEST(Format, TableHoldsWhatItPromises) {
  for (const DType type : kAll) {
    ASSERT_NE(find_format(type), nullptr) << dtype_name(type);
    EXPECT_EQ(find_format(type)->type, type);
  }
  EXPECT_EQ(find_format(DType::kQ8_1), nullptr);
  EXPECT_EQ(find_format(static_cast<DType>(12345)), nullptr);
}

TEST(Plain, KnownBitPatterns) {
  EXPECT_EQ(decode(DType::kF16, {std::byte{0x00}, std::byte{0x3C}}, 1)[0], 1.0F);
  EXPECT_EQ(decode(DType::kF16, {std::byte{0x01}, std::byte{0x80}}, 1)[0], -0x1p-24F);
  EXPECT_EQ(decode(DType::kBF16, {std::byte{0x80}, std::byte{0xBF}}, 1)[0], -1.0F);
  EXPECT_EQ(
      decode(DType::kF32, {std::byte{0}, std::byte{0}, std::byte{0x20}, std::byte{0x40}}, 1)[0],
      2.5F);
  EXPECT_EQ(decode(DType::kF16, encode(DType::kF16, {1e9F, -1e9F}), 2),
            (std::vector<float>{65504.0F, -65504.0F}));
}

TEST(Plain, RoundTripErrorIsHalfAUnit) {
  const std::vector<float> x = random_floats(1, 1000, 3.0F);
  EXPECT_EQ(decode(DType::kF32, encode(DType::kF32, x), x.size()), x);
  const std::vector<float> f16 = decode(DType::kF16, encode(DType::kF16, x), x.size());
  const std::vector<float> bf16 = decode(DType::kBF16, encode(DType::kBF16, x), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::fabs(f16[i] - x[i]), std::fabs(x[i]) * 0x1p-11F + 0x1p-25F) << i;
    EXPECT_LE(std::fabs(bf16[i] - x[i]), std::fabs(x[i]) * 0x1p-8F) << i;
  }
}

TEST(Q8_0, KnownBlock) {
  std::vector<std::byte> block(34);
  put_half(block.data(), 0, 0.5F);
  block[2] = std::byte{1};
  block[3] = std::byte{0x80};
  block[33] = std::byte{0xFF};
  const std::vector<float> x = decode(DType::kQ8_0, block, 32);
  EXPECT_EQ(x[0], 0.5F);
  EXPECT_EQ(x[1], -64.0F);
  EXPECT_EQ(x[2], 0.0F);
  EXPECT_EQ(x[31], -0.5F);
}

TEST(Q8_0, RoundTripErrorIsHalfAStep) {
  const std::vector<float> x = random_floats(2, 32 * 40, 0.7F);
  const std::vector<float> y = decode(DType::kQ8_0, encode(DType::kQ8_0, x), x.size());
  for (size_t start = 0; start < x.size(); start += 32) {
    float amax = 0.0F;
    for (size_t i = start; i < start + 32; ++i) amax = std::max(amax, std::fabs(x[i]));
    // Half a step, and the scale's rounding (2^-11) seen by a weight 127 steps out.
    const float bound = amax / 127.0F * (0.5F + 127.0F * 0x1p-11F) * 1.001F;
    for (size_t i = start; i < start + 32; ++i) EXPECT_LE(std::fabs(y[i] - x[i]), bound) << i;
  }
}

TEST(Q8_0, EncodesKnownWeights) {
  std::vector<float> x(32, 0.0F);
  x[0] = 127.0F;
  x[1] = -127.0F;
  x[2] = 2.5F;  // a tie goes to even
  x[3] = 3.5F;
  const std::vector<std::byte> block = encode(DType::kQ8_0, x);
  EXPECT_EQ(half_at(block.data(), 0), 1.0);
  EXPECT_EQ(i8(block.data(), 2), 127);
  EXPECT_EQ(i8(block.data(), 3), -127);
  EXPECT_EQ(i8(block.data(), 4), 2);
  EXPECT_EQ(i8(block.data(), 5), 4);
}

TEST(Q4_0, KnownBlock) {
  std::vector<std::byte> block(18);
  put_half(block.data(), 0, -2.0F);
  block[2] = std::byte{0xF0};  // weight 0 is 0 - 8, weight 16 is 15 - 8
  block[17] = std::byte{0x89};
  const std::vector<float> x = decode(DType::kQ4_0, block, 32);
  EXPECT_EQ(x[0], 16.0F);
  EXPECT_EQ(x[16], -14.0F);
  EXPECT_EQ(x[15], -2.0F);
  EXPECT_EQ(x[31], 0.0F);
}

TEST(RoundSigned, ErrorIsHalfAStepAndOneOnTheShortSide) {
  for (const auto& [type, reach] :
       {std::pair{DType::kQ4_0, 8.0F}, std::pair{DType::kQ5_0, 16.0F}}) {
    const std::vector<float> x = random_floats(3, 32 * 40, 0.7F);
    const std::vector<float> y = decode(type, encode(type, x), x.size());
    for (size_t start = 0; start < x.size(); start += 32) {
      float extreme = 0.0F;
      for (size_t i = start; i < start + 32; ++i) {
        if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
      }
      const float step = std::fabs(extreme) / reach;
      for (size_t i = start; i < start + 32; ++i) {
        // The side opposite to the extreme ends one step short of it.
        const bool is_short = x[i] * extreme < 0.0F && std::fabs(x[i]) > (reach - 0.5F) * step;
        const float bound = step * ((is_short ? 1.0F : 0.5F) + reach * 0x1p-11F) * 1.001F;
        EXPECT_LE(std::fabs(y[i] - x[i]), bound) << dtype_name(type) << ' ' << i;
      }
    }
  }
}

TEST(RoundBetween, ErrorIsHalfAStep) {
  for (const auto& [type, top] : {std::pair{DType::kQ4_1, 15.0F}, std::pair{DType::kQ5_1, 31.0F}}) {
    std::vector<float> x = random_floats(4, 32 * 40, 0.7F);
    for (float& value : x) value += 0.4F;
    const std::vector<float> y = decode(type, encode(type, x), x.size());
    for (size_t start = 0; start < x.size(); start += 32) {
      const auto from = x.begin() + static_cast<std::ptrdiff_t>(start);
      const auto [least, most] = std::minmax_element(from, from + 32);
      const float step = (*most - *least) / top;
      // Half a step, and the roundings of scale and offset to binary16.
      const float bound = (step * (0.5F + top * 0x1p-11F) + std::fabs(*least) * 0x1p-11F) * 1.001F;
      for (size_t i = start; i < start + 32; ++i) {
        EXPECT_LE(std::fabs(y[i] - x[i]), bound) << dtype_name(type) << ' ' << i;
      }
    }
  }
}

// The error that rounding to `levels` even steps between the extremes of each run would leave with
// scales of unlimited precision: what the K formats must come close to or beat.
double even_steps_rms(const std::vector<float>& x, size_t run, int levels, bool symmetric) {
  std::vector<float> y(x.size());
  for (size_t start = 0; start < x.size(); start += run) {
    float low = 0.0F;
    float high = 0.0F;
    for (size_t i = start; i < start + run; ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    if (symmetric) {
      high = std::max(high, -low);
      low = -high;
    }
    const float step = (high - low) / static_cast<float>(levels);
    for (size_t i = start; i < start + run; ++i) {
      y[i] = step > 0.0F ? low + step * std::round((x[i] - low) / step) : 0.0F;
    }
  }
  return rms(x, y);
}

TEST(KFits, ErrorIsNoLargerThanThatOfEvenSteps) {
  struct Bound {
    DType type;
    size_t run;
    int levels;
    bool symmetric;
  };
  // The searches gain what scales of few bits lose. The uneven levels of IQ4 beat even ones.
  for (const Bound& bound : {Bound{DType::kQ2_K, 16, 3, false}, Bound{DType::kQ3_K, 16, 7, true},
                             Bound{DType::kQ4_K, 32, 15, false}, Bound{DType::kQ5_K, 32, 31, false},
                             Bound{DType::kQ6_K, 16, 63, true}, Bound{DType::kIQ4_NL, 32, 15, true},
                             Bound{DType::kIQ4_XS, 32, 15, true}}) {
    const std::vector<float> x = random_floats(4, 256 * 40, 0.7F);
    const std::vector<float> y = decode(bound.type, encode(bound.type, x), x.size());
    const double even = even_steps_rms(x, bound.run, bound.levels, bound.symmetric);
    EXPECT_LE(rms(x, y), even) << dtype_name(bound.type);
    EXPECT_GE(rms(x, y), even * 0.5) << dtype_name(bound.type);
  }
}

TEST(Q4_K, FollowsAnOffset) {
  std::vector<float> x = random_floats(5, 256 * 10, 0.1F);
  for (float& value : x) value -= 1.0F;
  const std::vector<float> y = decode(DType::kQ4_K, encode(DType::kQ4_K, x), x.size());
  // Width about 0.4 without the offset: steps of 0.03, an offset of 6 bits errs by up to 1/126.
  EXPECT_LE(rms(x, y), 0.02);
}

// The value of `code` in place of weight i, by the formula of traits.h in double precision.
double value_of(const Traits& traits, const BlockParts& parts, int i, int code) {
  int level = code;
  if (traits.table == CodeTable::kNonLinear) level = kNonLinearValues[code];
  if (traits.table == CodeTable::kE2M1) level = kE2M1Values[code];
  level -= traits.zero;
  const double d = traits.scale == ScaleKind::kE8M0 ? std::ldexp(1.0, parts.d - 128)
                                                    : static_cast<double>(f16_to_f32(parts.d));
  const double second = traits.minima ? static_cast<double>(f16_to_f32(parts.dmin)) : 0.0;
  if (traits.block == 32) return d * level + second;
  const int run = i / traits.run;
  return d * parts.scales[run] * level - (traits.minima ? second * parts.minima[run] : 0.0);
}

TEST(Encode, EveryCodeIsTheNearestThatItsScaleOffers) {
  for (const Traits& traits : kTraits) {
    if (test::is_low_bit(traits.type)) continue;  // low_bit_encode_test.cpp
    std::vector<float> x = random_floats(6, 256 * 8, 0.7F);
    for (size_t i = 0; i < 512; ++i) x[i] -= 0.5F;
    const std::vector<std::byte> blocks = encode(traits.type, x);
    const size_t bytes = dtype_info(traits.type)->block_bytes;
    for (size_t block = 0; block * bytes < blocks.size(); ++block) {
      BlockParts parts;
      find_format(traits.type)->unpack(blocks.data() + block * bytes, parts);
      for (int i = 0; i < traits.block; ++i) {
        const auto index = block * static_cast<size_t>(traits.block) + static_cast<size_t>(i);
        const auto weight = static_cast<double>(x[index]);
        const double miss = std::fabs(value_of(traits, parts, i, parts.codes[i]) - weight);
        const int first = traits.type == DType::kQ8_0 ? 1 : 0;  // -128 is not used
        for (int code = first; code < 1 << traits.bits; ++code) {
          const double other = std::fabs(value_of(traits, parts, i, code) - weight);
          ASSERT_LE(miss, other + 1e-6) << dtype_name(traits.type) << ' ' << index;
        }
      }
    }
  }
}

TEST(Mxfp4, WhatItCanHoldComesBack) {
  std::vector<float> x(256);
  const float values[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  for (size_t i = 0; i < x.size(); ++i) {
    const float scale = std::ldexp(1.0F, static_cast<int>(i / 32) * 5 - 20);
    x[i] = (i % 3 == 0 ? -1.0F : 1.0F) * values[i % 8] * scale;
  }
  EXPECT_EQ(decode(DType::kMXFP4, encode(DType::kMXFP4, x), x.size()), x);
}

TEST(Mxfp4, ThePowerOfTwoIsTheBetterOne) {
  const std::vector<float> x = random_floats(9, 32 * 40, 0.7F);
  const std::vector<float> y = decode(DType::kMXFP4, encode(DType::kMXFP4, x), x.size());
  for (size_t start = 0; start < x.size(); start += 32) {
    double best = 1e30;
    double got = 0.0;
    for (size_t i = start; i < start + 32; ++i)
      got += std::pow(static_cast<double>(y[i] - x[i]), 2);
    for (int exponent = -12; exponent < 4; ++exponent) {
      double error = 0.0;
      for (size_t i = start; i < start + 32; ++i) {
        double least = 1e30;
        for (const double value : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0}) {
          least = std::min(
              least, std::fabs(std::ldexp(value, exponent) - std::fabs(static_cast<double>(x[i]))));
        }
        error += least * least;
      }
      best = std::min(best, error);
    }
    EXPECT_LE(got, best * 1.0001) << start;
  }
}

TEST(Format, ZerosStayZeros) {
  const std::vector<float> zeros(512, 0.0F);
  for (const Format& format : formats()) {
    const DType type = format.type;
    EXPECT_EQ(decode(type, encode(type, zeros), zeros.size()), zeros) << dtype_name(type);
  }
}

TEST(Format, ExtremesStayFinite) {
  for (const float size : {1e-42F, 1e-30F, 1e-7F, 1e5F, 1e30F, 1e38F}) {
    std::vector<float> x = random_floats(7, 768, size);
    std::fill(x.begin() + 512, x.end(), 0.0F);
    x[600] = size;  // alone among zeros
    for (const float most : {0.0F, 1e-44F, 1.0F, 3e38F}) {
      std::vector<float> importance = random_floats(8, 768, 1.0F);
      for (float& one : importance) one = std::fabs(one) * most;
      for (const Format& format : formats()) {
        for (const float y : decode(format.type, encode(format.type, x), x.size())) {
          ASSERT_TRUE(std::isfinite(y)) << dtype_name(format.type) << ' ' << size;
        }
        for (const float y : decode(format.type, encode(format.type, x, importance), x.size())) {
          ASSERT_TRUE(std::isfinite(y)) << dtype_name(format.type) << ' ' << size << ' ' << most;
        }
      }
    }
  }
}

TEST(Format, BlocksMayLieAnywhere) {
  const std::vector<float> x = random_floats(8, 512, 1.0F);
  for (const DType type : kAll) {
    const std::vector<std::byte> blocks = encode(type, x);
    std::vector<std::byte> shifted(blocks.size() + 1);
    find_format(type)->encode(x.data(), shifted.data() + 1, 512);
    EXPECT_EQ(std::memcmp(shifted.data() + 1, blocks.data(), blocks.size()), 0);
    std::vector<float> y(512);
    find_format(type)->decode(shifted.data() + 1, y.data(), 512);
    EXPECT_EQ(y, decode(type, blocks, 512)) << dtype_name(type);
  }
}

}  // namespace
}  // namespace gen::quant

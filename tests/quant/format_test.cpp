// SPDX-License-Identifier: Apache-2.0
// Proves the reference codecs: decoders against a second formula written byte by byte from the
// format's description and against patterns worked out by hand, encoders by error bounds that
// follow from each format's step.
#include "quant/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr DType kAll[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                          DType::kQ4_0, DType::kQ4_K, DType::kQ6_K};

std::vector<float> random_floats(uint64_t seed, int64_t n, float size) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) {
    // The sum of uniforms is close to a bell, as weights are.
    double sum = 0.0;
    for (uint64_t j = 0; j < 4; ++j) sum += uniform_double(seed, j, i) - 0.5;
    x[i] = static_cast<float>(sum) * size;
  }
  return x;
}

std::vector<std::byte> random_bytes(uint64_t seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<int>(uniform_double(seed, 9, i) * 256.0));
  }
  return bytes;
}

int u8(const std::byte* bytes, int i) { return std::to_integer<int>(bytes[i]); }
int i8(const std::byte* bytes, int i) { return static_cast<int8_t>(u8(bytes, i)); }
double half_at(const std::byte* bytes, int i) {
  return static_cast<double>(
      f16_to_f32(static_cast<uint16_t>(u8(bytes, i) | (u8(bytes, i + 1) << 8))));
}
void put_half(std::byte* bytes, size_t i, float value) {
  const uint16_t bits = f32_to_f16(value);
  bytes[i] = static_cast<std::byte>(bits & 255);
  bytes[i + 1] = static_cast<std::byte>(bits >> 8);
}

std::vector<std::byte> encode(DType type, const std::vector<float>& x) {
  uint64_t bytes = 0;
  EXPECT_TRUE(dtype_row_bytes(type, x.size(), &bytes));
  std::vector<std::byte> blocks(bytes);
  find_format(type)->encode(x.data(), blocks.data(), static_cast<int64_t>(x.size()));
  return blocks;
}

std::vector<float> decode(DType type, const std::vector<std::byte>& blocks, size_t n) {
  std::vector<float> x(n);
  find_format(type)->decode(blocks.data(), x.data(), static_cast<int64_t>(n));
  return x;
}

double rms(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double miss = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += miss * miss;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST(Format, TableHoldsWhatItPromises) {
  for (const DType type : kAll) {
    ASSERT_NE(find_format(type), nullptr) << dtype_name(type);
    EXPECT_EQ(find_format(type)->type, type);
  }
  EXPECT_EQ(find_format(DType::kIQ1_S), nullptr);
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

TEST(Q4_0, RoundTripErrorIsAtMostAStep) {
  const std::vector<float> x = random_floats(3, 32 * 40, 0.7F);
  const std::vector<float> y = decode(DType::kQ4_0, encode(DType::kQ4_0, x), x.size());
  for (size_t start = 0; start < x.size(); start += 32) {
    float extreme = 0.0F;
    for (size_t i = start; i < start + 32; ++i) {
      if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    }
    const float step = std::fabs(extreme) / 8.0F;
    for (size_t i = start; i < start + 32; ++i) {
      // The side opposite to the extreme ends one step short of it.
      const float reach = x[i] * extreme < 0.0F && std::fabs(x[i]) > 7.5F * step ? 1.0F : 0.5F;
      EXPECT_LE(std::fabs(y[i] - x[i]), step * (reach + 8.0F * 0x1p-11F) * 1.001F) << i;
    }
  }
}

TEST(Q4_K, DecodesAsTheByteFormulaSays) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::byte> bytes = random_bytes(seed, 144);
    put_half(bytes.data(), 0, 0.01F * static_cast<float>(seed + 1));
    put_half(bytes.data(), 2, 0.003F * static_cast<float>(seed + 1));
    const std::vector<float> y = decode(DType::kQ4_K, bytes, 256);
    for (int i = 0; i < 256; ++i) {
      const int run = i / 32;
      // All 96 bits of the packed scales, addressed one by one.
      const auto bits = [&](int byte, int from, int count) {
        return (u8(bytes.data(), 4 + byte) >> from) & ((1 << count) - 1);
      };
      const int scale = run < 4 ? bits(run, 0, 6) : bits(run + 4, 0, 4) + 16 * bits(run - 4, 6, 2);
      const int minimum =
          run < 4 ? bits(run + 4, 0, 6) : bits(run + 4, 4, 4) + 16 * bits(run, 6, 2);
      const int byte = u8(bytes.data(), 16 + i / 64 * 32 + i % 32);
      const int q = i % 64 < 32 ? byte % 16 : byte / 16;
      const double expected =
          half_at(bytes.data(), 0) * scale * q - half_at(bytes.data(), 2) * minimum;
      const double size = half_at(bytes.data(), 0) * scale * q + half_at(bytes.data(), 2) * minimum;
      EXPECT_NEAR(static_cast<double>(y[static_cast<size_t>(i)]), expected, size * 0x1p-22) << i;
    }
  }
}

TEST(Q6_K, DecodesAsTheByteFormulaSays) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::byte> bytes = random_bytes(seed, 210);
    put_half(bytes.data(), 208, 0.01F * static_cast<float>(seed + 1));
    const std::vector<float> y = decode(DType::kQ6_K, bytes, 256);
    const double d = half_at(bytes.data(), 208);
    for (int half = 0; half < 2; ++half) {
      const std::byte* low = bytes.data() + 64 * half;
      const std::byte* high = bytes.data() + 128 + 32 * half;
      for (int l = 0; l < 32; ++l) {
        const int q[4] = {(u8(low, l) & 15) | ((u8(high, l) & 3) << 4),
                          (u8(low, l + 32) & 15) | (((u8(high, l) >> 2) & 3) << 4),
                          (u8(low, l) >> 4) | (((u8(high, l) >> 4) & 3) << 4),
                          (u8(low, l + 32) >> 4) | ((u8(high, l) >> 6) << 4)};
        for (int g = 0; g < 4; ++g) {
          const int index = 128 * half + 32 * g + l;
          const double expected = d * i8(bytes.data(), 192 + index / 16) * (q[g] - 32);
          EXPECT_NEAR(static_cast<double>(y[static_cast<size_t>(index)]), expected,
                      std::fabs(expected) * 0x1p-22)
              << index;
        }
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

TEST(Q4_K, ErrorIsNoLargerThanEvenSteps) {
  const std::vector<float> x = random_floats(4, 256 * 40, 0.7F);
  const std::vector<float> y = decode(DType::kQ4_K, encode(DType::kQ4_K, x), x.size());
  // The search gains what 6-bit scales lose.
  EXPECT_LE(rms(x, y), even_steps_rms(x, 32, 15, false) * 1.02);
  EXPECT_GE(rms(x, y), even_steps_rms(x, 32, 15, false) * 0.5);
}

TEST(Q4_K, FollowsAnOffset) {
  std::vector<float> x = random_floats(5, 256 * 10, 0.1F);
  for (float& value : x) value -= 1.0F;
  const std::vector<float> y = decode(DType::kQ4_K, encode(DType::kQ4_K, x), x.size());
  // Width about 0.4 without the offset: steps of 0.03, an offset of 6 bits errs by up to 1/126.
  EXPECT_LE(rms(x, y), 0.02);
}

TEST(Q6_K, ErrorIsNoLargerThanEvenSteps) {
  const std::vector<float> x = random_floats(6, 256 * 40, 0.7F);
  const std::vector<float> y = decode(DType::kQ6_K, encode(DType::kQ6_K, x), x.size());
  EXPECT_LE(rms(x, y), even_steps_rms(x, 16, 63, true) * 1.02);
}

TEST(Format, ZerosStayZeros) {
  const std::vector<float> zeros(512, 0.0F);
  for (const DType type : kAll) {
    EXPECT_EQ(decode(type, encode(type, zeros), zeros.size()), zeros) << dtype_name(type);
  }
}

TEST(Format, ExtremesStayFinite) {
  for (const float size : {1e-30F, 1e-7F, 1e5F, 1e30F}) {
    const std::vector<float> x = random_floats(7, 512, size);
    for (const DType type : kAll) {
      for (const float y : decode(type, encode(type, x), x.size())) {
        ASSERT_TRUE(std::isfinite(y)) << dtype_name(type) << ' ' << size;
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

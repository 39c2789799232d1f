// SPDX-License-Identifier: Apache-2.0
// Proves the codecs of keys and values: published bytes, every code, error bounds from the formulas
// in double precision, and the k-means against one in double precision that is written plainly.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "quant/kv_fp8.h"
#include "quant/kv_q3.h"
#include "quant/kv_q4.h"
#include "tensor/e4m3.h"
#include "tensor/half.h"

namespace gen::quant {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// n numbers of a spread that is itself drawn, some of them zero, so that many scales occur.
std::vector<float> draw(std::mt19937& random, size_t n) {
  const int exponent = static_cast<int>(random() % 24) - 16;
  std::vector<float> x(n);
  for (float& value : x) {
    const double unit = static_cast<double>(random()) / 0x1p31 - 1.0;
    value = random() % 16 == 0 ? 0.0F : static_cast<float>(std::ldexp(unit, exponent));
  }
  return x;
}

double largest(const std::vector<float>& x) {
  double most = 0;
  for (float value : x) most = std::max(most, std::fabs(static_cast<double>(value)));
  return most;
}

/// The formula of the format, not the bits of the implementation.
double e4m3_value(int code) {
  const int exponent = (code >> 3) & 15;
  const double mantissa = (code & 7) / 8.0;
  const double value =
      exponent == 0 ? mantissa * std::ldexp(1, -6) : (1 + mantissa) * std::ldexp(1, exponent - 7);
  return (code & 0x80) != 0 ? -value : value;
}

TEST(E4m3, HasThePublishedBytes) {
  const std::pair<float, int> golden[] = {
      {1.0F, 0x38},   {448.0F, 0x7E},   {0.1F, 0x1D},      {-2.5F, 0xC2},   {17.0F, 0x58},
      {18.0F, 0x59},  {1.0625F, 0x38},  {0.015625F, 0x08}, {-0.02F, 0x8A},  {0.0F, 0x00},
      {-0.0F, 0x80},  {0x1p-10F, 0x00}, {0x1.8p-9F, 0x02}, {0x1p-9F, 0x01}, {449.0F, 0x7E},
      {470.0F, 0x7E}, {kInf, 0x7E},     {-kInf, 0xFE}};
  for (const auto& [value, code] : golden) EXPECT_EQ(f32_to_e4m3(value), code) << value;
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7F, 0x7E);
}

TEST(E4m3, EveryCodeHasItsValueAndComesBack) {
  for (int code = 0; code < 256; ++code) {
    const float value = e4m3_to_f32(static_cast<uint8_t>(code));
    EXPECT_EQ(static_cast<double>(value), e4m3_value(code)) << code;
    if ((code & 0x7F) != 0x7F) {
      EXPECT_EQ(f32_to_e4m3(value), code);
    }
  }
}

TEST(E4m3, RoundsToTheNearestAndToEven) {
  for (int code = 0; code < 0x7E; ++code) {
    const double low = e4m3_value(code);
    const double high = e4m3_value(code + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: four bits of mantissa
    const int even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(f32_to_e4m3(middle), even) << code;
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, kInf)), code + 1);
    EXPECT_EQ(f32_to_e4m3(-middle), even | 0x80);
  }
}

TEST(KvFp8, HasThePublishedRow) {
  const float row[] = {1.0F, -0.5F, 0.1F, 0.001F, 1e-5F};
  const uint8_t want[] = {0x7E, 0xF6, 0x63, 0x2E, 0x02};
  const double decoded[] = {1, -0.5, 0.098214291, 0.0009765625, 8.7193e-6};
  uint8_t codes[5];
  const float scale = kv_fp8_encode(row, 5, codes);
  EXPECT_EQ(std::bit_cast<uint32_t>(scale), 0x3B124925U);
  float back[5];
  kv_fp8_decode(codes, 5, scale, back);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(codes[i], want[i]);
    EXPECT_NEAR(back[i], decoded[i], std::fabs(decoded[i]) * 1e-5);
  }
}

TEST(KvFp8, StaysWithinTheFormulasBound) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::vector<float> x = draw(random, 1 + random() % 300);
    std::vector<uint8_t> codes(x.size());
    std::vector<float> back(x.size());
    const float scale = kv_fp8_encode(x.data(), x.size(), codes.data());
    EXPECT_NEAR(scale, largest(x) / 448, largest(x) * 1e-9);
    kv_fp8_decode(codes.data(), x.size(), scale, back.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const auto value = static_cast<double>(x[i]);
      const double bound = std::max(std::fabs(value) / 16, static_cast<double>(scale) / 1024);
      ASSERT_LE(std::fabs(static_cast<double>(back[i]) - value), bound * (1 + 0x1p-20));
      ASSERT_NE(codes[i] & 0x7F, 0x7F);
    }
  }
}

TEST(KvQ4, HasThePublishedGroups) {
  const float first[] = {7.0F, -3.5F, 1.0F, 0.49F, -0.51F, 2.2F, 6.6F, -7.0F};
  const float second[] = {1.0F, -0.5F, 0.25F, 0.0F, 0.9F, -1.0F, 0.0714F, 0.4F};
  const uint8_t bytes[2][4] = {{0xC7, 0x01, 0x2F, 0x97}, {0xD7, 0x02, 0x96, 0x30}};
  const int q[2][8] = {{7, -4, 1, 0, -1, 2, 7, -7}, {7, -3, 2, 0, 6, -7, 0, 3}};
  const float scales[] = {1.0F, 0.14285715F};
  for (int group = 0; group < 2; ++group) {
    uint8_t codes[4];
    float back[8];
    const float scale = kv_q4_encode(group == 0 ? first : second, 8, codes);
    EXPECT_EQ(scale, scales[group]);
    kv_q4_decode(codes, 8, scale, back);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(codes[i], bytes[group][i]);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(back[i], static_cast<float>(q[group][i]) * scale);
  }
}

TEST(KvQ4, RoundsHalfAwayFromZero) {
  // A scale of exactly 1; the element below a half must not be lifted to it by the addition of one.
  const float x[] = {7.0F, 0.5F, -0.5F, 1.5F, -2.5F, 0.49999997F, -0.49999997F, 6.5F};
  const float want[] = {7, 1, -1, 2, -3, 0, 0, 7};
  uint8_t codes[4];
  float back[8];
  ASSERT_EQ(kv_q4_encode(x, 8, codes), 1.0F);
  kv_q4_decode(codes, 8, 1.0F, back);
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(back[i], want[i]);
}

TEST(KvQ4, StaysWithinTheFormulasBound) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::vector<float> x = draw(random, 1 + random() % 300);
    std::vector<uint8_t> codes(kv_q4_bytes(x.size()) + 1, 0x5A);
    std::vector<float> back(x.size());
    const float scale = kv_q4_encode(x.data(), x.size(), codes.data());
    kv_q4_decode(codes.data(), x.size(), scale, back.data());
    const double bound = largest(x) / 14 * (1 + 0x1p-20);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(std::fabs(static_cast<double>(back[i]) - static_cast<double>(x[i])), bound);
    }
    EXPECT_EQ(codes.back(), 0x5A);
    if (x.size() % 2 != 0) {
      EXPECT_EQ(codes[x.size() / 2] >> 4, 0);
    }
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NE((codes[i / 2] >> (4 * (i % 2))) & 15, 8);
  }
}

TEST(KvScales, WhatIsNotFiniteStaysSo) {
  for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    const float x[] = {1.0F, bad, -2.0F, 0.5F};
    uint8_t codes[4];
    float back[4];
    kv_q4_decode(codes, 4, kv_q4_encode(x, 4, codes), back);
    EXPECT_FALSE(std::isfinite(back[1])) << bad;
    kv_fp8_decode(codes, 4, kv_fp8_encode(x, 4, codes), back);
    EXPECT_FALSE(std::isfinite(back[1])) << bad;
  }
}

/// Whatever the sign and payload of a NaN, and whatever the machine's arithmetic makes of it.
TEST(KvFp8, WhatIsNotFiniteHasOneForm) {
  for (const uint32_t bits : {0x7FC00000U, 0xFFC00000U, 0x7FFFFFFFU, 0xFF800001U}) {
    const float x[] = {1.0F, std::bit_cast<float>(bits), -kInf};
    uint8_t codes[3];
    EXPECT_EQ(std::bit_cast<uint32_t>(kv_fp8_encode(x, 3, codes)), 0x7FC00000U);
    for (const uint8_t code : codes) EXPECT_EQ(code, 0x7E);
  }
  const float x[] = {1.0F, -kInf, 0.0F};
  uint8_t codes[3];
  EXPECT_EQ(kv_fp8_encode(x, 3, codes), kInf);
  for (const uint8_t code : codes) EXPECT_EQ(code, 0x7E);
}

TEST(KvScales, ExtremesKeepTheirMagnitude) {
  // Scales whose inverse overflows, scales that vanish, and the largest numbers there are.
  for (const float top : {0x1p-126F, 0x1p-130F, 0x1p-140F, 0x1p-149F, 0.0F, 3e38F}) {
    const float x[] = {top, -top, top / 2, 0.0F};
    uint8_t codes[4];
    float back[4];
    kv_q4_decode(codes, 4, kv_q4_encode(x, 4, codes), back);
    // A scale is a multiple of 2^-149, so seven of them can be off by as many halves.
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(back[i], x[i], static_cast<double>(top) / 13.9 + 0x1p-147);
    }
    kv_fp8_decode(codes, 4, kv_fp8_encode(x, 4, codes), back);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(back[i], x[i], static_cast<double>(top) / 16 + 0x1p-141);
    }
  }
}

/// The k-means of the format in double precision, written for reading.
struct Reference {
  std::vector<double> centroids;
  std::vector<int> indices;
};

std::vector<int> nearest(const std::vector<float>& x, const std::vector<double>& centroids) {
  std::vector<int> indices;
  for (float value : x) {
    int best = 0;
    for (int c = 1; c < 8; ++c) {
      const auto at = static_cast<size_t>(c);
      if (std::fabs(value - centroids[at]) <
          std::fabs(value - centroids[static_cast<size_t>(best)])) {
        best = c;
      }
    }
    indices.push_back(best);
  }
  return indices;
}

double weight_of(float value) { return std::sqrt(std::fabs(static_cast<double>(value))) + 1e-4; }

Reference reference_k_means(const std::vector<float>& x) {
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  Reference out;
  for (int c = 0; c < 8; ++c) {
    out.centroids.push_back(static_cast<double>(*least) +
                            c / 7.0 * (static_cast<double>(*most) - static_cast<double>(*least)));
  }
  for (int round = 0; round < 8; ++round) {
    out.indices = nearest(x, out.centroids);
    for (int c = 0; c < 8; ++c) {
      double sum = 0;
      double total = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        if (out.indices[i] != c) continue;
        sum += weight_of(x[i]) * static_cast<double>(x[i]);
        total += weight_of(x[i]);
      }
      if (total > 0) out.centroids[static_cast<size_t>(c)] = sum / total;
    }
  }
  out.indices = nearest(x, out.centroids);
  return out;
}

struct Encoded {
  uint16_t centroids[8];
  std::vector<uint8_t> codes;
  std::vector<float> back;
  std::vector<int> indices;
};

Encoded encode(const std::vector<float>& x) {
  Encoded out;
  out.codes.assign(kv_q3_bytes(x.size()) + 1, 0x5A);
  out.back.resize(x.size());
  kv_q3_encode(x.data(), x.size(), out.centroids, out.codes.data());
  EXPECT_EQ(out.codes.back(), 0x5A);
  kv_q3_decode(out.centroids, out.codes.data(), x.size(), out.back.data());
  for (size_t i = 0; i < x.size(); ++i) {  // bit by bit, as the format is described
    int index = 0;
    for (size_t bit = 0; bit < 3; ++bit) {
      const size_t at = 3 * i + bit;
      index |= ((out.codes[at / 8] >> (at % 8)) & 1) << bit;
    }
    out.indices.push_back(index);
    EXPECT_EQ(out.back[i], f16_to_f32(out.centroids[index]));
  }
  return out;
}

TEST(KvQ3, HasThePublishedGroup) {
  const std::vector<float> x = {-1.0F, -0.9F, -0.5F, -0.1F, 0.0F, 0.05F,
                                0.1F,  0.3F,  0.55F, 0.6F,  0.8F, 1.0F};
  const double centroids[] = {-0.9513165, -0.7142857, -0.5,      -0.1,
                              0.0792731,  0.4437952,  0.7071788, 1};
  const uint8_t bytes[] = {0x80, 0x46, 0xB2, 0xB5, 0x0F};
  const Encoded got = encode(x);
  EXPECT_EQ(got.indices, (std::vector<int>{0, 0, 2, 3, 4, 4, 4, 5, 5, 6, 6, 7}));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(got.codes[i], bytes[i]);
  for (size_t c = 0; c < 8; ++c) {
    EXPECT_NEAR(f16_to_f32(got.centroids[c]), centroids[c],
                std::fabs(centroids[c]) * 0x1p-11 + 1e-7);
  }
}

TEST(KvQ3, PacksAsPublished) {
  std::vector<float> x;
  for (int i = 0; i < 8; ++i) x.push_back(static_cast<float>(i));
  const Encoded got = encode(x);
  const uint8_t bytes[] = {0x88, 0xC6, 0xFA};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(got.codes[i], bytes[i]);
  EXPECT_EQ(got.back, x);
}

TEST(KvQ3, TiesGoToTheLowestCentroid) {
  // 3.5 is as far from centroid 3 as from centroid 4 when the rounds begin.
  const Encoded got = encode({0.0F, 7.0F, 3.5F});
  EXPECT_EQ(got.indices, (std::vector<int>{0, 7, 3}));
  EXPECT_EQ(got.back[2], 3.5F);
}

TEST(KvQ3, EqualElementsAreOneCentroid) {
  const Encoded got = encode(std::vector<float>(77, -0.375F));
  for (uint16_t centroid : got.centroids) EXPECT_EQ(f16_to_f32(centroid), -0.375F);
  for (int index : got.indices) EXPECT_EQ(index, 0);
  const Encoded one = encode({5.0F});
  EXPECT_EQ(one.back[0], 5.0F);
}

TEST(KvQ3, AgreesWithDoublePrecision) {
  std::mt19937 random(3);
  int same = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    const size_t n = 2 + random() % 255;
    std::vector<float> x = draw(random, n);
    for (float& value : x) value *= 16.0F;  // so that binary16 holds the centroids normally
    const Encoded got = encode(x);
    const Reference want = reference_k_means(x);
    same += got.indices == want.indices ? 1 : 0;
    double own = 0;
    double reference = 0;
    for (size_t i = 0; i < n; ++i) {
      const double kept = want.centroids[static_cast<size_t>(want.indices[i])];
      const auto value = static_cast<double>(x[i]);
      const double slack = std::fabs(kept) * 0x1p-11;
      own += weight_of(x[i]) * std::pow(static_cast<double>(got.back[i]) - value, 2);
      reference += weight_of(x[i]) * std::pow(std::fabs(kept - value) + slack, 2);
    }
    // A tie that falls the other way may lead to another minimum, about as deep.
    ASSERT_LE(own, reference * 1.2) << "trial " << trial;
  }
  EXPECT_GE(same, kTrials * 95 / 100);
}

TEST(KvQ3, StaysWithinTheFormulasBound) {
  std::mt19937 random(33);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::vector<float> x = draw(random, 1 + random() % 256);
    const Encoded got = encode(x);
    const auto [least, most] = std::minmax_element(x.begin(), x.end());
    const double even = (static_cast<double>(*most) - static_cast<double>(*least)) / 14;
    double squares = 0;
    double weights = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const auto value = static_cast<double>(x[i]);
      const double apart = std::fabs(static_cast<double>(got.back[i]) - value);
      // No kept centroid is nearer, and of equally near ones it is the lowest.
      for (int c = 0; c < 8; ++c) {
        const double other = std::fabs(static_cast<double>(f16_to_f32(got.centroids[c])) - value);
        ASSERT_LE(apart, other * (1 + 0x1p-20) + 1e-22);
        ASSERT_LE(f16_to_f32(got.centroids[std::max(c - 1, 0)]), f16_to_f32(got.centroids[c]));
      }
      const double rounding = largest(x) * 0x1p-11 + 0x1p-25;
      squares += weight_of(x[i]) * std::pow(std::max(0.0, apart - rounding), 2);
      weights += weight_of(x[i]);
    }
    ASSERT_LE(squares, even * even * weights * (1 + 1e-5));
  }
}

TEST(KvQ3, AnElementThatIsNotFiniteLeavesTheOthers) {
  const Encoded infinite = encode({1.0F, -kInf, 2.0F});
  EXPECT_EQ(infinite.back[1], -65504.0F);
  const Encoded nan = encode({1.0F, std::numeric_limits<float>::quiet_NaN(), 2.0F});
  EXPECT_EQ(nan.back[0], 1.0F);
  EXPECT_EQ(nan.back[1], 0.0F);
  EXPECT_EQ(nan.back[2], 2.0F);
}

TEST(KvQ3, HugeNumbersAreKeptAs65504) {
  const Encoded got = encode({3e38F, -3e38F, 1e5F, 0.0F});
  EXPECT_EQ(got.back[0], 65504.0F);
  EXPECT_EQ(got.back[1], -65504.0F);
  EXPECT_EQ(got.back[2], 65504.0F);
  EXPECT_EQ(got.back[3], f16_to_f32(got.centroids[got.indices[3]]));
}

}  // namespace
}  // namespace gen::quant

// SPDX-License-Identifier: Apache-2.0
// Proves each scaling rule of rotary tables against what it promises: wavelengths, limits on both
// sides of a ramp and values worked out by hand.
#include "model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace gen::model {
namespace {

RopeParams params(int32_t n_dims, double base) {
  RopeParams p;
  p.n_dims = n_dims;
  p.base = base;
  p.original_context = 8192;
  return p;
}

graph::RopeSpec table(engine::RopeKind kind, RopeParams p, std::span<const float> factors = {}) {
  p.kind = kind;
  return make_rope_table(p, factors);
}

TEST(RopeTable, PlainFrequenciesFallGeometrically) {
  const graph::RopeSpec spec = table(engine::RopeKind::kAdjacent, params(8, 10000.0));
  EXPECT_EQ(spec.kind, engine::RopeKind::kAdjacent);
  EXPECT_EQ(spec.n_dims, 8);
  EXPECT_EQ(spec.magnitude, 1.0F);
  ASSERT_EQ(spec.inv_freq.size(), 4U);
  // 10000^(-2i/8) = 10^-i
  EXPECT_FLOAT_EQ(spec.inv_freq[0], 1.0F);
  EXPECT_FLOAT_EQ(spec.inv_freq[1], 0.1F);
  EXPECT_FLOAT_EQ(spec.inv_freq[2], 0.01F);
  EXPECT_FLOAT_EQ(spec.inv_freq[3], 0.001F);
}

TEST(RopeTable, FactorsDivide) {
  const float factors[] = {1.0F, 2.0F, 4.0F, 0.5F};
  const graph::RopeSpec spec = table(engine::RopeKind::kHalves, params(8, 10000.0), factors);
  EXPECT_FLOAT_EQ(spec.inv_freq[1], 0.05F);
  EXPECT_FLOAT_EQ(spec.inv_freq[2], 0.0025F);
  EXPECT_FLOAT_EQ(spec.inv_freq[3], 0.002F);
}

TEST(RopeTable, LinearStretchesPositions) {
  RopeParams p = params(8, 10000.0);
  p.scaling = RopeScaling::kLinear;
  p.factor = 4.0;
  const graph::RopeSpec spec = table(engine::RopeKind::kHalves, p);
  EXPECT_FLOAT_EQ(spec.inv_freq[0], 0.25F);
  EXPECT_FLOAT_EQ(spec.inv_freq[3], 0.00025F);
  EXPECT_EQ(spec.magnitude, 1.0F);
}

TEST(RopeTable, Llama3KeepsFastAndSlowsSlow) {
  // Llama 3.1: base 500000, heads of 128, factor 8 of an original context of 8192.
  RopeParams p = params(128, 500000.0);
  p.scaling = RopeScaling::kLlama3;
  p.factor = 8.0;
  const graph::RopeSpec spec = table(engine::RopeKind::kAdjacent, p);
  int kept = 0;
  int slowed = 0;
  int between = 0;
  for (size_t i = 0; i < 64; ++i) {
    const double plain = std::pow(500000.0, -static_cast<double>(i) / 64.0);
    const double wavelength = 2.0 * std::numbers::pi / plain;
    const double divisor = plain / static_cast<double>(spec.inv_freq[i]);
    if (wavelength < 8192.0 / 4.0) {
      EXPECT_NEAR(divisor, 1.0, 1e-6) << i;
      ++kept;
    } else if (wavelength > 8192.0) {
      EXPECT_NEAR(divisor, 8.0, 1e-5) << i;
      ++slowed;
    } else {
      EXPECT_GT(divisor, 1.0) << i;
      EXPECT_LT(divisor, 8.0) << i;
      ++between;
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(slowed, 20);
  EXPECT_GT(between, 3);
  // Pair 32: f = 500000^-0.5, wavelength 4442.88; s = (8192 / 4442.88 - 1) / 3 = 0.281283;
  // divisor 1 / (0.718717 / 8 + 0.281282) = 2.694530.
  const double plain = 1.0 / std::sqrt(500000.0);
  EXPECT_NEAR(plain / static_cast<double>(spec.inv_freq[32]), 2.694530, 2e-5);
}

TEST(RopeTable, FactorsOfAFileReplaceTheLlama3Rule) {
  RopeParams p = params(8, 10000.0);
  p.scaling = RopeScaling::kLlama3;
  p.factor = 8.0;
  const float ones[] = {1.0F, 1.0F, 1.0F, 1.0F};
  p.original_context = 1024;  // the slowest pair's wavelength of 6283 is beyond it
  EXPECT_FLOAT_EQ(table(engine::RopeKind::kAdjacent, p, ones).inv_freq[3], 0.001F);
  EXPECT_FLOAT_EQ(table(engine::RopeKind::kAdjacent, p).inv_freq[3], 0.000125F);
}

TEST(RopeTable, YarnMixesByTurnsWithinTheOriginalContext) {
  RopeParams p = params(128, 10000.0);
  p.original_context = 4096;
  p.scaling = RopeScaling::kYarn;
  p.factor = 16.0;
  const graph::RopeSpec spec = table(engine::RopeKind::kHalves, p);
  EXPECT_NEAR(static_cast<double>(spec.magnitude), 1.0 + 0.1 * std::log(16.0), 1e-6);
  // Turns of pair i: 4096 / (2 pi) * 10000^(-i / 64). 32 turns at i = 20.94, one at i = 45.03, so
  // the ramp runs from 20 to 46.
  for (size_t i = 0; i < 64; ++i) {
    const double plain = std::pow(10000.0, -static_cast<double>(i) / 64.0);
    const double found = static_cast<double>(spec.inv_freq[i]) / plain;
    double expected = 0.0;
    if (i <= 20) {
      expected = 1.0;
    } else if (i >= 46) {
      expected = 1.0 / 16.0;
    } else {
      const double keep = 1.0 - (static_cast<double>(i) - 20.0) / 26.0;
      expected = keep + (1.0 - keep) / 16.0;
    }
    EXPECT_NEAR(found, expected, 1e-6) << i;
  }
}

TEST(RopeTable, YarnFactorsMultiply) {
  RopeParams p = params(8, 10000.0);
  p.scaling = RopeScaling::kYarn;
  p.factor = 1.0;
  p.attn_factor = 0.7;
  EXPECT_FLOAT_EQ(table(engine::RopeKind::kHalves, p).magnitude, 0.7F);
  p.factor = 4.0;
  EXPECT_NEAR(static_cast<double>(table(engine::RopeKind::kHalves, p).magnitude),
              0.7 * (1.0 + 0.1 * std::log(4.0)), 1e-6);
  // Without extrapolation it is linear scaling.
  p.yarn_ext_factor = 0.0;
  const graph::RopeSpec spec = table(engine::RopeKind::kHalves, p);
  EXPECT_FLOAT_EQ(spec.magnitude, 0.7F);
  EXPECT_FLOAT_EQ(spec.inv_freq[0], 0.25F);
}

}  // namespace
}  // namespace gen::model

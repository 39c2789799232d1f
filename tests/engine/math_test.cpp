// SPDX-License-Identifier: Apache-2.0
// Proves that exp, tanh, silu and their kin are as accurate as they say against libm in double,
// that sums take the promised tree, that halves convert like tensor/half.h, and that every level
// gives equal bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/math_kernels-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/math_kernels-inl.h"

#include <cmath>
#include <limits>

#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

const MathKernels& kernels(CpuLevel level) { return *GEN_LANES_PICK(level, kMath); }

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Every `step`-th float between two of one sign, by counting representations.
std::vector<float> sweep(float from, float to, uint32_t step) {
  std::vector<float> values;
  const uint32_t last = std::bit_cast<uint32_t>(to);
  for (uint64_t bits = std::bit_cast<uint32_t>(from); bits <= last; bits += step) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  while (values.size() % 16 != 0) values.push_back(to);
  return values;
}

// Distance in units of the reference's last place.
double ulps(float got, double want) {
  if (std::isinf(got) && std::fabs(want) > 3.4028235e38) return 0.0;
  int exponent = 0;
  std::frexp(want, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(static_cast<double>(got) - want) / unit;
}

template <typename Reference>
double worst(void (*function)(const float*, float*), const std::vector<float>& x,
             Reference reference) {
  double result = 0.0;
  float y[16];
  for (size_t i = 0; i < x.size(); i += 16) {
    function(x.data() + i, y);
    for (size_t j = 0; j < 16; ++j) {
      const double off = ulps(y[j], reference(static_cast<double>(x[i + j])));
      if (!(off <= result)) result = off;
    }
  }
  return result;
}

class MathTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, MathTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

// Also of levels that this machine does not run: the copy is only looked at.
TEST(MathTargets, EachLevelHasTheCopyForItsInstructions) {
  const auto target = [](CpuLevel level) { return kernels(level).target; };
  const int64_t scalar = HWY_TARGETS & (HWY_EMU128 | HWY_SCALAR);
  EXPECT_EQ(target(CpuLevel::kScalar), scalar);
#if defined(__x86_64__)
  EXPECT_EQ(target(CpuLevel::kAvx2), HWY_AVX2);
  for (const CpuLevel level : {CpuLevel::kAvx512, CpuLevel::kAvx512Vnni, CpuLevel::kAvx512Bf16}) {
    EXPECT_EQ(target(level), HWY_AVX3) << cpu_level_name(level);
  }
  EXPECT_EQ(target(CpuLevel::kNeon), scalar);
#elif defined(__aarch64__)
  EXPECT_EQ(target(CpuLevel::kNeon), HWY_NEON);
#endif
}

TEST_P(MathTest, ExpIsWithinTwoUlp) {
  const auto reference = [](double x) { return std::exp(x); };
  const auto function = kernels(GetParam()).exp16;
  EXPECT_LE(worst(function, sweep(1e-8F, 88.8F, 4999), reference), 2.0);
  EXPECT_LE(worst(function, sweep(-1e-8F, -103.9F, 4999), reference), 2.0);
}

TEST_P(MathTest, Exp2WeightIsWithinTwoAndAHalfUlpAndEndsAtZero) {
  const auto function = kernels(GetParam()).exp2_weight16;
  const auto reference = [](double x) { return std::exp2(x); };
  EXPECT_LE(worst(function, sweep(-1e-8F, -125.0F, 4999), reference), 2.5);
  const float x[16] = {0.0F,   -0.0F,   -kInfinity, kNan,    -125.1F, -126.0F,  -150.0F, -1e10F,
                       -1e38F, -1e-40F, -125.01F,   -127.0F, -255.0F, -1000.0F, -3e38F,  -500.0F};
  float y[16];
  function(x, y);
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[1], 1.0F);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[9], 1.0F);
  for (size_t i = 0; i < 16; ++i) {
    if (x[i] < -125.0F) {
      EXPECT_EQ(y[i], 0.0F) << x[i];
    }
  }
}

TEST_P(MathTest, ExpAtItsEnds) {
  const float x[16] = {0.0F,  -0.0F,  -kInfinity, kInfinity, kNan,  -104.0F, -1000.F, 88.72F,
                       89.0F, -87.5F, -103.9F,    200.0F,    1e38F, -1e38F,  1e-40F,  1.0F};
  float y[16];
  kernels(GetParam()).exp16(x, y);
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[1], 1.0F);
  EXPECT_EQ(y[2], 0.0F);
  EXPECT_EQ(y[3], kInfinity);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], 0.0F);
  EXPECT_EQ(y[6], 0.0F);
  EXPECT_TRUE(std::isfinite(y[7]));
  EXPECT_EQ(y[8], kInfinity);
  EXPECT_GT(y[9], 0.0F);   // below the normal numbers
  EXPECT_GT(y[10], 0.0F);  // the last subnormal
  EXPECT_EQ(y[11], kInfinity);
  EXPECT_EQ(y[12], kInfinity);
  EXPECT_EQ(y[13], 0.0F);
  EXPECT_EQ(y[14], 1.0F);
}

TEST_P(MathTest, TanhIsWithinThreeUlp) {
  const auto reference = [](double x) { return std::tanh(x); };
  const auto function = kernels(GetParam()).tanh16;
  EXPECT_LE(worst(function, sweep(1e-20F, 100.0F, 9973), reference), 3.0);
  EXPECT_LE(worst(function, sweep(-1e-20F, -100.0F, 9973), reference), 3.0);
  const float x[16] = {0.0F, -0.0F, kInfinity, -kInfinity, kNan, 1e30F, -1e30F};
  float y[16];
  function(x, y);
  EXPECT_TRUE(same_bits(y[0], 0.0F));
  EXPECT_TRUE(same_bits(y[1], -0.0F));
  EXPECT_EQ(y[2], 1.0F);
  EXPECT_EQ(y[3], -1.0F);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], 1.0F);
  EXPECT_EQ(y[6], -1.0F);
}

TEST_P(MathTest, SiluIsWithinFourUlp) {
  const auto reference = [](double x) { return x / (1.0 + std::exp(-x)); };
  const auto function = kernels(GetParam()).silu16;
  EXPECT_LE(worst(function, sweep(1e-20F, 1000.0F, 9973), reference), 4.0);
  EXPECT_LE(worst(function, sweep(-1e-20F, -87.0F, 9973), reference), 4.0);
  const float x[16] = {0.0F, -200.0F, kNan, 3e38F, -3e38F};
  float y[16];
  function(x, y);
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], 3e38F);
  EXPECT_EQ(y[4], 0.0F);
}

TEST_P(MathTest, ExpLessOneIsWithinThreeUlp) {
  const auto function = kernels(GetParam()).expm1_negative16;
  const auto reference = [](double x) { return std::expm1(x); };
  EXPECT_LE(worst(function, sweep(-1e-30F, -200.0F, 9973), reference), 3.0);
  const float x[16] = {0.0F, -0.0F, -kInfinity, kNan, -1e-40F};
  float y[16];
  function(x, y);
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_EQ(y[2], -1.0F);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], -1e-40F);
}

TEST_P(MathTest, TheNormalDistributionsTailIsWithinFiveUlp) {
  const auto function = kernels(GetParam()).normal_tail16;
  const auto reference = [](double t) { return 0.5 * std::erfc(t / std::sqrt(2.0)); };
  EXPECT_LE(worst(function, sweep(1e-20F, 14.4F, 997), reference), 5.0);
  const float x[16] = {0.0F, 14.5F, kNan};
  float y[16];
  function(x, y);
  EXPECT_EQ(y[0], 0.5F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_TRUE(std::isnan(y[2]));
}

TEST_P(MathTest, SoftplusIsWithinThreeUlp) {
  const auto function = kernels(GetParam()).softplus16;
  const auto reference = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  };
  EXPECT_LE(worst(function, sweep(1e-20F, 1000.0F, 997), reference), 3.0);
  EXPECT_LE(worst(function, sweep(-1e-20F, -87.0F, 997), reference), 3.0);
  const float x[16] = {0.0F, -0.0F, kInfinity, -kInfinity, kNan, -200.0F, 3e38F};
  float y[16];
  function(x, y);
  EXPECT_FLOAT_EQ(y[0], 0.693147181F);
  EXPECT_TRUE(same_bits(y[0], y[1]));
  EXPECT_EQ(y[2], kInfinity);
  EXPECT_EQ(y[3], 0.0F);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], 0.0F);
  EXPECT_EQ(y[6], 3e38F);
}

TEST_P(MathTest, SumsTakeTheTree) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::vector<float> x = random_floats(16, seed, 1000.0F);
    const float got = kernels(GetParam()).sum16(x.data());
    const float got_max = kernels(GetParam()).max16(x.data());
    EXPECT_EQ(got_max, *std::max_element(x.begin(), x.end()));
    for (size_t half = 8; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) x[i] += x[i + half];
    }
    EXPECT_TRUE(same_bits(got, x[0]));
  }
}

TEST_P(MathTest, EveryHalfWidensAndComesBack) {
  const MathKernels& table = kernels(GetParam());
  for (uint32_t first = 0; first < 65536; first += 16) {
    uint16_t bits[16];
    float wide[16];
    uint16_t back[16];
    for (uint32_t i = 0; i < 16; ++i) bits[i] = static_cast<uint16_t>(first + i);
    table.from_half(bits, wide);
    table.to_half(wide, back);
    for (uint32_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(same_bits(wide[i], f16_to_f32(bits[i]))) << bits[i];
      ASSERT_EQ(back[i], f32_to_f16(f16_to_f32(bits[i]))) << bits[i];
    }
  }
}

TEST_P(MathTest, NarrowingRoundsLikeTheReference) {
  const MathKernels& table = kernels(GetParam());
  std::mt19937 random(7);
  for (int round = 0; round < 40000; ++round) {
    float x[16];
    uint16_t y[16];
    for (float& value : x) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    table.to_half(x, y);
    for (size_t i = 0; i < 16; ++i) ASSERT_EQ(y[i], f32_to_f16(x[i])) << x[i];
  }
}

TEST(MathLevels, GiveTheSameBits) {
  const MathKernels& scalar = kernels(CpuLevel::kScalar);
  std::mt19937 random(11);
  for (CpuLevel level : levels_here()) {
    const MathKernels& table = kernels(level);
    for (int round = 0; round < 20000; ++round) {
      float x[16];
      for (float& value : x) value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      float want[16];
      float got[16];
      for (auto member : {&MathKernels::exp16, &MathKernels::exp2_weight16, &MathKernels::tanh16,
                          &MathKernels::silu16, &MathKernels::expm1_negative16,
                          &MathKernels::normal_tail16, &MathKernels::softplus16}) {
        (scalar.*member)(x, want);
        (table.*member)(x, got);
        for (size_t i = 0; i < 16; ++i) {
          ASSERT_TRUE(same_bits(got[i], want[i])) << cpu_level_name(level) << ' ' << x[i];
        }
      }
      ASSERT_TRUE(same_bits(table.sum16(x), scalar.sum16(x)));
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

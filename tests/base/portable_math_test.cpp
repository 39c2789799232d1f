// SPDX-License-Identifier: Apache-2.0
// Proves that exp and log are accurate, and that their bits are those of the written formulas: the
// hexadecimal values were computed by a separate program (Python, whose floats are IEEE doubles)
// from the same series, so a fused multiply-add or another order of operations shows.
#include "base/portable_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gen {
namespace {

TEST(PortableMath, BitsAreFrozen) {
  EXPECT_EQ(portable_exp(-0.1), 0x1.cf46d99d52b3ap-1);
  EXPECT_EQ(portable_exp(-1.0), 0x1.78b56362cef38p-2);
  EXPECT_EQ(portable_exp(-2.5), 0x1.50385c094f425p-4);
  EXPECT_EQ(portable_exp(-10.0), 0x1.7cd79b5647c9ap-15);
  EXPECT_EQ(portable_exp(-87.3), 0x1.09874c0b9cacbp-126);
  EXPECT_EQ(portable_exp(-700.25), 0x1.af5fe9a485c8ep-1011);
  EXPECT_EQ(portable_log(0.75), -0x1.269621134db92p-2);
  EXPECT_EQ(portable_log(1.5), 0x1.9f323ecbf984cp-2);
  EXPECT_EQ(portable_log(2.0), 0x1.62e42fefa39efp-1);
  EXPECT_EQ(portable_log(10.0), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(portable_log(4096.5), 0x1.0a2c23efbacc9p+3);
  EXPECT_EQ(portable_log(1e300), 0x1.5963447f87fb5p+9);
}

TEST(PortableMath, EndsOfTheRange) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-0.0), 1.0);
  EXPECT_EQ(portable_exp(-709.0), 0.0);
  EXPECT_EQ(portable_exp(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(portable_log(1.0), 0.0);
}

TEST(PortableMath, AgreesWithTheCLibrary) {
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  for (int i = 1; i < 200000; ++i) {
    const double x = -708.0 * i / 200000.0;
    const double expected = std::exp(x);
    ASSERT_NEAR(portable_exp(x), expected, 2 * kUnit * expected) << x;
  }
  for (int i = 1; i < 200000; ++i) {
    const double x = std::exp(i * 1e-3 - 50.0) * (1.0 + i * 1e-7);
    const double expected = std::log(x);
    ASSERT_NEAR(portable_log(x), expected, 3 * kUnit * std::abs(expected) + 1e-16) << x;
  }
}

}  // namespace
}  // namespace gen

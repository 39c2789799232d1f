// SPDX-License-Identifier: Apache-2.0
// Proves overflow detection at the ends of the types, against 128-bit arithmetic.
#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gen {
namespace {

TEST(Checked, AgreesWithWideArithmetic) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t values[] = {0,
                             1,
                             2,
                             255,
                             65536,
                             0x7FFFFFFF,
                             0x80000000,
                             1ULL << 32,
                             0xFFFFFFFFULL,
                             1ULL << 63,
                             UINT64_MAX - 1,
                             UINT64_MAX};
  for (uint64_t a : values) {
    for (uint64_t b : values) {
      uint64_t out = 0;
      const auto sum = static_cast<Wide>(a) + b;
      EXPECT_EQ(checked_add(a, b, &out), sum <= UINT64_MAX);
      if (sum <= UINT64_MAX) {
        EXPECT_EQ(out, static_cast<uint64_t>(sum));
      }
      const auto product = static_cast<Wide>(a) * b;
      EXPECT_EQ(checked_mul(a, b, &out), product <= UINT64_MAX);
      if (product <= UINT64_MAX) {
        EXPECT_EQ(out, static_cast<uint64_t>(product));
      }
      int32_t narrow = 0;  // mixed types: the result's type decides
      const bool fits = product <= static_cast<Wide>(INT32_MAX);
      EXPECT_EQ(checked_mul(a, b, &narrow), fits);
    }
  }
}

TEST(Checked, AlignsUp) {
  uint64_t out = 0;
  EXPECT_TRUE(checked_align_up<uint64_t>(0, 32, &out));
  EXPECT_EQ(out, 0U);
  EXPECT_TRUE(checked_align_up<uint64_t>(1, 32, &out));
  EXPECT_EQ(out, 32U);
  EXPECT_TRUE(checked_align_up<uint64_t>(32, 32, &out));
  EXPECT_EQ(out, 32U);
  EXPECT_TRUE(checked_align_up<uint64_t>(UINT64_MAX - 31, 32, &out));
  EXPECT_EQ(out, UINT64_MAX - 31);
  EXPECT_FALSE(checked_align_up<uint64_t>(UINT64_MAX - 30, 32, &out));
}

}  // namespace
}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// Proves the scale by position against the product of one float by another, row by row, with equal
// bits on every level and thread count, in place too, and that nothing is written beside the rows.
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

class PositionScaleTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, PositionScaleTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(PositionScaleTest, IsTheFactorOfEachPosition) {
  // Factors of positions 0 to 4, 5 to 9, and from 10 on.
  const std::vector<float> factors = {1.0F, 1.7F, 0.3F};
  const std::vector<int32_t> positions = {0, 4, 5, 9, 10, 14, 15, 2147483647, 7, 0};
  const std::vector<float> want_factors = {1.0F, 1.0F, 1.7F, 1.7F, 0.3F,
                                           0.3F, 0.3F, 0.3F, 1.7F, 1.0F};
  const auto rows = static_cast<int64_t>(positions.size());
  for (const int64_t cols : {1, 17, 64, 4001}) {
    const int64_t stride = cols + 3;
    const auto x = random_floats(static_cast<size_t>(rows * stride) + 1, 1, 5.0F);
    std::vector<float> want(x.size(), 7.0F);
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t c = 0; c < cols; ++c) {
        const auto at = static_cast<size_t>(1 + t * stride + c);
        want[at] = x[at] * want_factors[static_cast<size_t>(t)];
      }
    }
    for (const int32_t threads : {1, 3}) {
      CpuBench bench(GetParam(), threads);
      std::vector<float> y(x.size(), 7.0F);
      PositionScaleArgs args;
      args.x = {engine_ptr(x.data() + 1), rows, cols, stride};
      args.positions = engine_ptr(positions.data());
      args.factors = engine_ptr(factors.data());
      args.n_factors = static_cast<int32_t>(factors.size());
      args.every = 5;
      args.y = {engine_ptr(y.data() + 1), rows, cols, stride};
      ASSERT_TRUE(run(*bench, args).ok());
      EXPECT_EQ(y, want) << cols << " " << threads;
      std::vector<float> both = x;
      args.x.data = engine_ptr(std::as_const(both).data() + 1);
      args.y.data = engine_ptr(both.data() + 1);
      ASSERT_TRUE(run(*bench, args).ok());
      for (int64_t t = 0; t < rows; ++t) {
        for (int64_t c = 0; c < stride; ++c) {
          const auto at = static_cast<size_t>(1 + t * stride + c);
          if (at >= both.size()) continue;
          EXPECT_EQ(both[at], c < cols ? want[at] : x[at]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

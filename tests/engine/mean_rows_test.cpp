// SPDX-License-Identifier: Apache-2.0
// Proves means of rows against sums in double precision, row by row, with equal bits on every level
// and thread count, and that nothing is written beside them.
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

class MeanRowsTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, MeanRowsTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(MeanRowsTest, AreSumsInOrder) {
  constexpr int64_t kRows = 40;
  const std::vector<int32_t> first = {0, 3, 3, 39, 0, 17};
  const std::vector<int32_t> last = {0, 3, 9, 39, 39, 30};
  const auto n = static_cast<int64_t>(first.size());
  for (const int64_t cols : {1, 15, 63, 64, 65, 200, 4000}) {
    const int64_t stride = cols + 3;
    const auto x = random_floats(static_cast<size_t>(kRows * stride) + 1, 1, 5.0F);
    std::vector<float> want(static_cast<size_t>(n * stride) + 1, 7.0F);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < cols; ++c) {
        double sum = 0.0;
        for (int64_t t = first[static_cast<size_t>(i)]; t <= last[static_cast<size_t>(i)]; ++t) {
          sum += static_cast<double>(x[static_cast<size_t>(1 + t * stride + c)]);
        }
        const int32_t rows = last[static_cast<size_t>(i)] - first[static_cast<size_t>(i)] + 1;
        want[static_cast<size_t>(1 + i * stride + c)] = static_cast<float>(sum / rows);
      }
    }
    for (const int32_t threads : {1, 3}) {
      CpuBench bench(GetParam(), threads);
      std::vector<float> y(want.size(), 7.0F);
      MeanRowsArgs args;
      args.x = {engine_ptr(x.data() + 1), kRows, cols, stride};
      args.first = engine_ptr(first.data());
      args.last = engine_ptr(last.data());
      args.y = {engine_ptr(y.data() + 1), n, cols, stride};
      ASSERT_TRUE(run(*bench, args).ok());
      EXPECT_EQ(y, want) << cols << " " << threads;
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

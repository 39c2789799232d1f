// SPDX-License-Identifier: Apache-2.0
// Proves add, swiglu and select_rows: values against double precision, any size and alignment, y as
// an input, nothing written beside a row, equal bits on every level and thread count.
#include "engine/cpu/elementwise.h"

#include <cmath>

#include "engine/cpu/ops_run.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

class ElementwiseTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, ElementwiseTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

TEST_P(ElementwiseTest, AddsAnySizeAndAlignment) {
  const ElementwiseKernels& kernels = *elementwise_kernels(GetParam());
  const std::vector<float> a = random_floats(200, 1);
  const std::vector<float> b = random_floats(200, 2);
  for (int64_t n : {0, 1, 15, 16, 17, 35, 64, 100}) {
    for (int64_t shift : {0, 1, 3}) {
      std::vector<float> y(200, 7.0F);
      kernels.add(a.data() + shift, b.data() + 2 * shift, y.data() + shift, n);
      for (int64_t i = 0; i < 200; ++i) {
        const auto index = static_cast<size_t>(i);
        const bool inside = i >= shift && i < shift + n;
        const float want = inside ? a[index] + b[index + static_cast<size_t>(shift)] : 7.0F;
        ASSERT_EQ(y[index], want) << n << ' ' << i;
      }
    }
  }
}

TEST_P(ElementwiseTest, SwigluIsCloseToDouble) {
  const ElementwiseKernels& kernels = *elementwise_kernels(GetParam());
  const std::vector<float> gate = random_floats(1003, 1, 20.0F);
  const std::vector<float> up = random_floats(1003, 2, 3.0F);
  std::vector<float> y(1003);
  kernels.swiglu(gate.data(), up.data(), y.data(), 1003);
  for (size_t i = 0; i < y.size(); ++i) {
    const double g = gate[i];
    const double want = g / (1.0 + std::exp(-g)) * up[i];
    ASSERT_NEAR(y[i], want, std::fabs(want) * 5 * 0x1p-23) << gate[i];  // 5 ulp
  }
}

TEST_P(ElementwiseTest, HasTheBitsOfTheScalarLevel) {
  const ElementwiseKernels& kernels = *elementwise_kernels(GetParam());
  const ElementwiseKernels& scalar = *elementwise_kernels(CpuLevel::kScalar);
  const std::vector<float> a = random_floats(300, 1, 90.0F);
  const std::vector<float> b = random_floats(300, 2);
  for (int64_t n : {1, 16, 33, 299}) {
    std::vector<float> got(300);
    std::vector<float> want(300);
    kernels.swiglu(a.data() + 1, b.data(), got.data(), n);
    scalar.swiglu(a.data() + 1, b.data(), want.data(), n);
    EXPECT_TRUE(same_bits(got, want));
    std::vector<uint16_t> got_half(300);
    std::vector<uint16_t> want_half(300);
    kernels.to_half(a.data() + 1, got_half.data(), n);
    scalar.to_half(a.data() + 1, want_half.data(), n);
    EXPECT_EQ(got_half, want_half);
  }
}

TEST_P(ElementwiseTest, RowsHaveStridesAndThreadsDoNotShow) {
  const int64_t rows = 70;
  const int64_t cols = 301;
  const int64_t stride = 310;
  const auto size = static_cast<size_t>(rows * stride);
  const std::vector<float> a = random_floats(size, 1);
  const std::vector<float> b = random_floats(size, 2);
  std::vector<float> sums[2];
  std::vector<float> gated[2];
  for (int32_t threads : {1, 4}) {
    CpuBench bench(GetParam(), threads);
    std::vector<float>& sum = sums[threads / 4];
    sum = a;  // y is a
    AddArgs add;
    add.a = {sum.data(), rows, cols, stride};
    add.b = {b.data(), rows, cols, stride};
    add.y = {sum.data(), rows, cols, stride};
    ASSERT_TRUE(run_add(*bench, add).ok());
    std::vector<float>& product = gated[threads / 4];
    product = b;
    SwiGluArgs swiglu;
    swiglu.gate = {a.data(), rows, cols, stride};
    swiglu.up = {product.data(), rows, cols, stride};
    swiglu.y = {product.data(), rows, cols, stride};
    ASSERT_TRUE(run_swiglu(*bench, swiglu).ok());
  }
  EXPECT_TRUE(same_bits(sums[0], sums[1]));
  EXPECT_TRUE(same_bits(gated[0], gated[1]));
  for (size_t i = 0; i < size; ++i) {
    const bool gap = static_cast<int64_t>(i) % stride >= cols;
    ASSERT_EQ(sums[0][i], gap ? a[i] : a[i] + b[i]);
    if (gap) {
      ASSERT_EQ(gated[0][i], b[i]);
    }
  }
}

TEST_P(ElementwiseTest, SelectsRowsInAnyOrder) {
  const std::vector<float> x = random_floats(5 * 9, 1);
  std::vector<float> y(4 * 8, 7.0F);
  const int32_t rows[] = {4, 0, 4, 2};
  SelectRowsArgs args;
  args.x = {x.data(), 5, 7, 9};
  args.rows = rows;
  args.y = {y.data(), 4, 7, 8};
  CpuBench bench(GetParam());
  ASSERT_TRUE(run_select_rows(*bench, args).ok());
  for (size_t i = 0; i < 4; ++i) {
    for (size_t d = 0; d < 8; ++d) {
      const float want = d < 7 ? x[static_cast<size_t>(rows[i]) * 9 + d] : 7.0F;
      EXPECT_EQ(y[i * 8 + d], want);
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves add, activations, gates and select_rows: values against double precision, any size and
// alignment, y as an input, nothing written beside a row, equal bits on every level and thread
// count.
#include "engine/cpu/elementwise/elementwise.h"

#include <cmath>
#include <limits>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"
#include "support/reference_engine.h"

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

constexpr Activation kActivations[] = {
    {Act::kNone},
    {Act::kSilu},
    {Act::kGelu},
    {Act::kRelu2},
    {Act::kClampedSwiglu, 1.702F, 7.0F},
    {Act::kScaled, 0.22F},
    {Act::kSoftCapped, 0.7F, 6.5F},
    {Act::kSigmoid},
    {Act::kGeluErf},
    {Act::kXielu, 0.8F, -0.25F, 0.5F, 1.3F},
    {Act::kSoftplus},
    {Act::kCutSwiglu, 1.0F, 3.5F},
};
static_assert(std::size(kActivations) == kActs);

/// Ulps of the value that may be lost: five, and the rounding of the exponential's argument, which
/// counts as often as the argument is large.
double allowed_ulps(const Activation& activation, float gate) {
  const double g = gate;
  if (activation.kind == Act::kGelu) return 5 + 2 * std::fabs(1.5958 * (g + 0.044715 * g * g * g));
  if (activation.kind == Act::kClampedSwiglu) return 5 + std::fabs(g * activation.alpha);
  return 5;
}

TEST_P(ElementwiseTest, ActivationsAreCloseToDouble) {
  const ElementwiseKernels& kernels = *elementwise_kernels(GetParam());
  const std::vector<float> gate = random_floats(1003, 1, 20.0F);
  const std::vector<float> up = random_floats(1003, 2, 9.0F);
  constexpr double kDenormal = 1e-37;
  for (const Activation& activation : kActivations) {
    const auto act = static_cast<size_t>(activation.kind);
    std::vector<float> y(1003);
    kernels.gated[act](gate.data(), up.data(), y.data(), 1003, activation);
    for (size_t i = 0; i < y.size(); ++i) {
      const double want = test::reference_gated(activation, gate[i], up[i]);
      const double ulps = allowed_ulps(activation, gate[i]);
      // tanh of the reference itself is 1 too early, which e^-2u is not.
      double reference = activation.kind == Act::kGelu ? 1e-15 : kDenormal;
      // Its parts cancel where it crosses 0.
      if (activation.kind == Act::kXielu) reference += 0x1p-20 * std::fabs(gate[i] * up[i]);
      ASSERT_NEAR(y[i], want, std::fabs(want) * ulps * 0x1p-23 + reference)
          << act << ' ' << gate[i] << ' ' << up[i];
    }
    if (kernels.activate[act] == nullptr) continue;
    std::vector<float> alone(1003);
    const std::vector<float> ones(1003, 1.0F);
    kernels.activate[act](gate.data(), alone.data(), 1003, activation);
    kernels.gated[act](gate.data(), ones.data(), y.data(), 1003, activation);
    EXPECT_TRUE(same_bits(alone, y)) << act;
  }
}

TEST_P(ElementwiseTest, ActivationsHaveLimits) {
  const ElementwiseKernels& kernels = *elementwise_kernels(GetParam());
  const float inf = std::numeric_limits<float>::infinity();
  const float x[] = {-1e30F, -100.0F, -0.0F, 0.0F, 100.0F, std::nanf(""), inf};
  float y[7];
  kernels.activate[static_cast<size_t>(Act::kGelu)](x, y, 7, {Act::kGelu});
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_EQ(y[3], 0.0F);
  EXPECT_EQ(y[4], 100.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], inf);
  kernels.activate[static_cast<size_t>(Act::kRelu2)](x, y, 7, {Act::kRelu2});
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[4], 10000.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  kernels.activate[static_cast<size_t>(Act::kSoftCapped)](x, y, 7, {Act::kSoftCapped, 1.0F, 30.0F});
  EXPECT_EQ(y[0], -30.0F);
  EXPECT_EQ(y[3], 0.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], 30.0F);
  kernels.activate[static_cast<size_t>(Act::kSigmoid)](x, y, 7, {Act::kSigmoid});
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[3], 0.5F);
  EXPECT_EQ(y[4], 1.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], 1.0F);
  kernels.activate[static_cast<size_t>(Act::kGeluErf)](x, y, 7, {Act::kGeluErf});
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_EQ(y[3], 0.0F);
  EXPECT_EQ(y[4], 100.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], inf);
  kernels.activate[static_cast<size_t>(Act::kSoftplus)](x, y, 7, {Act::kSoftplus});
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_FLOAT_EQ(y[3], 0.693147181F);
  EXPECT_EQ(y[4], 100.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], inf);
  kernels.activate[static_cast<size_t>(Act::kXielu)](x, y, 7,
                                                     {Act::kXielu, 0.5F, -1e-6F, 0.5F, 1.0F});
  EXPECT_EQ(y[0], 0.5e30F);  // -1 - x + x / 2
  EXPECT_EQ(y[1], 49.0F);
  EXPECT_EQ(y[4], 5050.0F);
  EXPECT_TRUE(std::isnan(y[5]));
  EXPECT_EQ(y[6], inf);
}

TEST_P(ElementwiseTest, HasTheBitsOfTheScalarLevel) {
  const ElementwiseKernels& kernels = *elementwise_kernels(GetParam());
  const ElementwiseKernels& scalar = *elementwise_kernels(CpuLevel::kScalar);
  const std::vector<float> a = random_floats(300, 1, 90.0F);
  const std::vector<float> b = random_floats(300, 2);
  for (int64_t n : {1, 16, 33, 299}) {
    std::vector<float> got(300);
    std::vector<float> want(300);
    for (const Activation& activation : kActivations) {
      const auto act = static_cast<size_t>(activation.kind);
      kernels.gated[act](a.data() + 1, b.data(), got.data(), n, activation);
      scalar.gated[act](a.data() + 1, b.data(), want.data(), n, activation);
      EXPECT_TRUE(same_bits(got, want)) << act;
    }
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
    add.a = {engine_ptr(sum.data()), rows, cols, stride};
    add.b = {engine_ptr(b.data()), rows, cols, stride};
    add.y = {engine_ptr(sum.data()), rows, cols, stride};
    ASSERT_TRUE(run(*bench, add).ok());
    std::vector<float>& product = gated[threads / 4];
    product = b;
    GatedArgs gate;
    gate.gate = {engine_ptr(a.data()), rows, cols, stride};
    gate.up = {engine_ptr(product.data()), rows, cols, stride};
    gate.y = {engine_ptr(product.data()), rows, cols, stride};
    gate.activation.kind = Act::kSilu;
    ASSERT_TRUE(run(*bench, gate).ok());
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

/// A gate for each run of columns, as if it were repeated.
TEST_P(ElementwiseTest, GatesOfRuns) {
  constexpr int64_t kRows = 9;
  for (const int64_t run : {1, 3, 16, 63, 64, 65, 200}) {
    for (const Activation& activation : kActivations) {
      constexpr int64_t kGates = 5;
      const int64_t cols = kGates * run;
      const std::vector<float> gate = random_floats(kRows * (kGates + 2), 1, 9.0F);
      const std::vector<float> up = random_floats(static_cast<size_t>(kRows * cols), 2, 5.0F);
      std::vector<float> repeated(up.size());
      for (int64_t i = 0; i < kRows * cols; ++i) {
        const int64_t from = i / cols * (kGates + 2) + i % cols / run;
        repeated[static_cast<size_t>(i)] = gate[static_cast<size_t>(from)];
      }
      CpuBench bench(GetParam(), 3);
      std::vector<float> y = up;  // in place
      GatedArgs args;
      args.gate = {engine_ptr(gate.data()), kRows, kGates, kGates + 2};
      args.up = {engine_ptr(y.data()), kRows, cols, cols};
      args.y = {engine_ptr(y.data()), kRows, cols, cols};
      args.activation = activation;
      ASSERT_TRUE(gen::engine::cpu::run(*bench, args).ok());
      std::vector<float> want(up.size());
      elementwise_kernels(CpuLevel::kScalar)
          ->gated[static_cast<size_t>(activation.kind)](repeated.data(), up.data(), want.data(),
                                                        kRows * cols, activation);
      EXPECT_TRUE(same_bits(y, want)) << run;
      for (size_t i = 0; i < y.size(); ++i) {
        const double defined = test::reference_gated(activation, repeated[i], up[i]);
        const double product = static_cast<double>(repeated[i]) * static_cast<double>(up[i]);
        ASSERT_NEAR(y[i], defined, std::fabs(defined) * 0x1p-18 + std::fabs(product) * 0x1p-20);
      }
    }
  }
}

TEST_P(ElementwiseTest, SelectsRowsInAnyOrder) {
  const std::vector<float> x = random_floats(5 * 9, 1);
  std::vector<float> y(4 * 8, 7.0F);
  const int32_t rows[] = {4, 0, 4, 2};
  SelectRowsArgs args;
  args.x = {engine_ptr(x.data()), 5, 7, 9};
  args.rows = engine_ptr(rows);
  args.y = {engine_ptr(y.data()), 4, 7, 8};
  CpuBench bench(GetParam());
  ASSERT_TRUE(run(*bench, args).ok());
  for (size_t i = 0; i < 4; ++i) {
    for (size_t d = 0; d < 8; ++d) {
      const float want = d < 7 ? x[static_cast<size_t>(rows[i]) * 9 + d] : 7.0F;
      EXPECT_EQ(y[i * 8 + d], want);
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

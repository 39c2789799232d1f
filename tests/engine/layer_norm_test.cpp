// SPDX-License-Identifier: Apache-2.0
// Proves layer norm against double precision, with and without weight, bias and mean, whole rows
// and groups; equal bits on every level and thread count; and that a packed row is the packing of
// the float row.
#include <cmath>
#include <cstring>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

class LayerNormTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, LayerNormTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

constexpr int64_t kGap = 3;  // floats between rows

/// Rows around 2, so that a variance about 0 would show.
std::vector<float> rows_of(int64_t rows, int64_t cols, uint32_t seed) {
  std::vector<float> x = random_floats(static_cast<size_t>(rows * (cols + kGap)) + 1, seed, 5.0F);
  for (float& value : x) value += 2.0F;
  return x;
}

struct Case {
  int64_t cols;
  int32_t groups;
  bool weight;
  bool bias;
  bool centred = true;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t cols : {1, 2, 15, 16, 17, 31, 32, 35, 64, 257, 1000, 4096}) {
    all.push_back({cols, 1, cols % 3 != 0, cols % 2 != 0});
  }
  for (const bool weight : {false, true}) {
    for (const bool bias : {false, true}) {
      all.push_back({100, 1, weight, bias});
      all.push_back({100, 5, weight, bias});  // of 20
      all.push_back({96, 3, weight, bias});
      all.push_back({96, 3, weight, bias, false});
    }
  }
  all.push_back({1, 1, false, false, false});
  all.push_back({257, 1, true, false, false});
  return all;
}

/// Operands of `rows` rows; y begins off the vector size.
struct Operands {
  Operands(const Case& of, int64_t n_rows)
      : rows(n_rows),
        cols(of.cols),
        x(rows_of(n_rows, of.cols, 1)),
        w(random_floats(static_cast<size_t>(of.cols), 2)),
        b(random_floats(static_cast<size_t>(of.cols), 4)),
        y(random_floats(x.size(), 3)) {
    args.x = {engine_ptr(std::as_const(x).data() + 1), rows, cols, cols + kGap};
    if (of.weight) args.w = engine_ptr(std::as_const(w).data());
    if (of.bias) args.b = engine_ptr(std::as_const(b).data());
    args.eps = 1e-5F;
    args.groups = of.groups;
    args.centred = of.centred;
    args.y = {engine_ptr(y.data() + 1), rows, cols, cols + kGap};
  }
  int64_t rows;
  int64_t cols;
  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> b;
  std::vector<float> y;
  LayerNormArgs args;
};

TEST_P(LayerNormTest, MatchesDoublePrecision) {
  CpuBench bench(GetParam());
  for (const Case& of : cases()) {
    Operands operands(of, 3);
    ASSERT_TRUE(run(*bench, operands.args).ok());
    const int64_t n = of.cols / of.groups;
    const double roundings = (static_cast<double>(n) / 16 + 10) * 0x1p-24;
    for (int64_t t = 0; t < 3; ++t) {
      const auto at = [&](const std::vector<float>& rows, int64_t d) {
        return static_cast<double>(rows[static_cast<size_t>(1 + t * (of.cols + kGap) + d)]);
      };
      for (int64_t first = 0; first < of.cols; first += n) {
        double mean = 0.0;
        double variance = 0.0;
        double size = 0.0;
        for (int64_t d = first; d < first + n; ++d) {
          if (of.centred) mean += at(operands.x, d) / static_cast<double>(n);
          size += std::fabs(at(operands.x, d)) / static_cast<double>(n);
        }
        for (int64_t d = first; d < first + n; ++d) {
          variance += std::pow(at(operands.x, d) - mean, 2.0) / static_cast<double>(n);
        }
        const double factor = 1.0 / std::sqrt(variance + static_cast<double>(1e-5F));
        for (int64_t d = first; d < first + n; ++d) {
          const auto index = static_cast<size_t>(d);
          const double w = of.weight ? static_cast<double>(operands.w[index]) : 1.0;
          const double b = of.bias ? static_cast<double>(operands.b[index]) : 0.0;
          const double normal = (at(operands.x, d) - mean) * factor;
          // The mean's error counts by how large the row is beside its spread.
          const double error = std::fabs(normal * w) + size * factor * std::fabs(w) + std::fabs(b);
          ASSERT_NEAR(at(operands.y, d), normal * w + b, error * roundings) << of.cols << ' ' << d;
        }
      }
    }
  }
}

TEST_P(LayerNormTest, HasTheBitsOfTheScalarLevelOnAnyThreads) {
  for (const Case& of : cases()) {
    Operands want(of, 37);
    CpuBench scalar;
    ASSERT_TRUE(run(*scalar, want.args).ok());
    for (int32_t threads = 1; threads <= 4; ++threads) {
      Operands got(of, 37);
      CpuBench bench(GetParam(), threads);
      ASSERT_TRUE(run(*bench, got.args).ok());
      ASSERT_TRUE(same_bits(got.y, want.y)) << of.cols;  // gaps included
    }
  }
}

TEST_P(LayerNormTest, WorksInPlaceAndPacks) {
  constexpr int64_t kRows = 70;
  const Case of = {256, 4, true, true};
  const uint32_t forms = kActF32 | kActQ8 | kActQ8K;
  const size_t bytes = static_cast<size_t>(kRows) * packed_row_bytes(forms, of.cols);
  std::vector<std::byte> both(bytes);
  std::vector<std::byte> only(bytes);
  std::vector<std::byte> want(bytes);
  CpuBench bench(GetParam(), 2);
  Operands operands(of, kRows);
  LayerNormArgs args = operands.args;
  args.packed = {engine_ptr(both.data()), forms, kRows, of.cols};
  ASSERT_TRUE(run(*bench, args).ok());
  for (int64_t t = 0; t < kRows; ++t) {
    pack_row(kernel_table(GetParam()), operands.y.data() + 1 + t * (of.cols + kGap),
             {want.data(), forms, kRows, of.cols}, t);
  }
  EXPECT_TRUE(both == want);
  args.y = {};
  args.packed.data = engine_ptr(only.data());
  ASSERT_TRUE(run(*bench, args).ok());
  EXPECT_TRUE(only == want);
  args.y = {engine_ptr(operands.x.data() + 1), kRows, of.cols, of.cols + kGap};
  args.packed = {};
  ASSERT_TRUE(run(*bench, args).ok());
  for (int64_t t = 0; t < kRows; ++t) {
    const auto at = static_cast<size_t>(1 + t * (of.cols + kGap));
    EXPECT_EQ(std::memcmp(operands.x.data() + at, operands.y.data() + at,
                          static_cast<size_t>(of.cols) * sizeof(float)),
              0);
  }
}

}  // namespace
}  // namespace gen::engine::cpu

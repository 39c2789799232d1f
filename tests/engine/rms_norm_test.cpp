// SPDX-License-Identifier: Apache-2.0
// Proves RMS norm against double precision, equal bits on every level and thread count, and that a
// packed row is the packing of the float row.
#include <cmath>
#include <cstring>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

// TestRows lie `gap` floats apart beyond their width and start off the vector size.
struct TestRows {
  int64_t rows;
  int64_t cols;
  int64_t stride;
  std::vector<float> memory;

  TestRows(int64_t n_rows, int64_t n_cols, uint32_t seed, float scale = 1.0F)
      : rows(n_rows),
        cols(n_cols),
        stride(n_cols + 3),
        memory(random_floats(static_cast<size_t>(n_rows * (n_cols + 3)) + 1, seed, scale)) {}
  [[nodiscard]] ConstMatrixView in() const {
    return {engine_ptr(memory.data() + 1), rows, cols, stride};
  }
  [[nodiscard]] MatrixView out() { return {engine_ptr(memory.data() + 1), rows, cols, stride}; }
};

class RmsNormTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, RmsNormTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

constexpr int64_t kWidths[] = {1, 2, 15, 16, 17, 31, 32, 35, 64, 257, 1000, 4096};

TEST_P(RmsNormTest, MatchesDoublePrecision) {
  CpuBench bench(GetParam());
  for (int64_t cols : kWidths) {
    const TestRows x(3, cols, 1, 5.0F);
    const std::vector<float> w = random_floats(static_cast<size_t>(cols), 2);
    TestRows y(3, cols, 3);
    RmsNormArgs args;
    args.x = x.in();
    args.w = engine_ptr(w.data());
    args.eps = 1e-5F;
    args.y = y.out();
    ASSERT_TRUE(run(*bench, args).ok());
    // The sum of squares has cols / 16 + 5 roundings, of which the root halves the error; then
    // root, reciprocal and two products.
    const double tolerance = ((static_cast<double>(cols) / 16 + 5) / 2 + 5) * 0x1p-24;
    for (int64_t t = 0; t < 3; ++t) {
      const float* row = x.memory.data() + 1 + t * x.stride;
      double squares = 0.0;
      for (int64_t d = 0; d < cols; ++d) squares += static_cast<double>(row[d]) * row[d];
      const double factor = 1.0 / std::sqrt(squares / static_cast<double>(cols) + 1e-5F);
      for (int64_t d = 0; d < cols; ++d) {
        const double want = row[d] * factor * w[static_cast<size_t>(d)];
        ASSERT_NEAR(y.memory[static_cast<size_t>(1 + t * y.stride + d)], want,
                    std::fabs(want) * tolerance + 1e-40);
      }
    }
  }
}

TEST_P(RmsNormTest, HasTheBitsOfTheScalarLevelOnAnyThreads) {
  for (int64_t cols : kWidths) {
    const TestRows x(37, cols, 1, 5.0F);
    const std::vector<float> w = random_floats(static_cast<size_t>(cols), 2);
    TestRows want(37, cols, 3);
    RmsNormArgs args;
    args.x = x.in();
    args.w = engine_ptr(w.data());
    args.eps = 1e-6F;
    args.y = want.out();
    CpuBench scalar;
    ASSERT_TRUE(run(*scalar, args).ok());
    for (int32_t threads = 1; threads <= 4; ++threads) {
      TestRows got(37, cols, 3);
      CpuBench bench(GetParam(), threads);
      args.y = got.out();
      ASSERT_TRUE(run(*bench, args).ok());
      ASSERT_TRUE(same_bits(got.memory, want.memory)) << cols;  // gaps included
    }
  }
}

TEST_P(RmsNormTest, WorksInPlaceAndPacks) {
  const int64_t cols = 256;
  CpuBench bench(GetParam(), 2);
  TestRows x(70, cols, 1);
  const std::vector<float> w = random_floats(static_cast<size_t>(cols), 2);
  TestRows y(70, cols, 3);
  const uint32_t forms = kActF32 | kActQ8 | kActQ8K;
  const size_t row_bytes = packed_row_bytes(forms, cols);
  Buffer both = std::move(Buffer::allocate(system_allocator(), 70 * row_bytes)).value();
  Buffer only = std::move(Buffer::allocate(system_allocator(), 70 * row_bytes)).value();
  Buffer want = std::move(Buffer::allocate(system_allocator(), 70 * row_bytes)).value();
  for (Buffer* buffer : {&both, &only, &want}) std::memset(buffer->data(), 0, buffer->size());
  RmsNormArgs args;
  args.x = x.in();
  args.w = engine_ptr(w.data());
  args.eps = 1e-6F;
  args.y = y.out();
  args.packed = {engine_ptr(both.data()), forms, 70, cols};
  ASSERT_TRUE(run(*bench, args).ok());
  for (int64_t t = 0; t < 70; ++t) {
    pack_row(kernel_table(GetParam()), y.memory.data() + 1 + t * y.stride,
             {want.data(), forms, 70, cols}, t);
  }
  EXPECT_EQ(std::memcmp(both.data(), want.data(), want.size()), 0);
  args.y = {};
  args.packed.data = engine_ptr(only.data());
  ASSERT_TRUE(run(*bench, args).ok());
  EXPECT_EQ(std::memcmp(only.data(), want.data(), want.size()), 0);
  args.y = x.out();
  args.packed = {};
  ASSERT_TRUE(run(*bench, args).ok());
  for (int64_t t = 0; t < 70; ++t) {
    EXPECT_EQ(std::memcmp(x.memory.data() + 1 + t * x.stride, y.memory.data() + 1 + t * y.stride,
                          static_cast<size_t>(cols) * sizeof(float)),
              0);
  }
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves products of quantised weights with rows in bfloat16: they are those of the decoded values,
// rounded once, in double precision, for every format and odd sizes, in one slice or several, gated
// or not; what comes after the sums is as ever; which weights want such rows, on which devices.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "cuda/engine/linear_case.h"
#include "cuda/ops/weight/device_type.h"

namespace gen::test {
namespace {

using engine::Act;

std::vector<DType> quantised_types() {
  std::vector<DType> types;
  for (const quant::Traits& traits : quant::kTraits) {
    if (cuda::device_type(traits.type) != DType::kF16) types.push_back(traits.type);
  }
  return types;
}

void expect_exact(const Matrix& w, int64_t rows, const std::vector<float>& x,
                  const std::vector<float>& y) {
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t n = 0; n < w.rows; ++n) {
      const Sum want = exact_bf16(w, n, x.data() + t * w.cols);
      ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(t * (w.rows + 2) + n)]), want.value,
                  want.bound)
          << "row " << t << " output " << n;
    }
  }
}

/// A gated product of two weights, with what comes after its sums.
void expect_exact_gate(OpBench& bench, LinearCase c, const std::vector<float>& x) {
  const Matrix& w = *c.weights[0];
  const Matrix& up = *c.weights[1];
  c.role = WeightRole::kGated;
  c.activation.kind = Act::kRelu2;
  c.bias = c.residual = true;
  const auto got = run(bench, c, x);
  const auto bias = random_row(static_cast<size_t>(2 * w.rows), 21);
  const auto before = random_row(static_cast<size_t>(c.rows * (w.rows + 2)), 22);
  for (int64_t t = 0; t < c.rows; ++t) {
    for (int64_t n = 0; n < w.rows; ++n) {
      const auto biased = [&](const Matrix& of, int64_t first) {
        return exact_bf16(of, n, x.data() + t * w.cols).value +
               static_cast<double>(bias[static_cast<size_t>(first + n)]);
      };
      const double gate = std::fmax(biased(w, 0), 0.0);
      const auto at = static_cast<size_t>(t * (w.rows + 2) + n);
      const double want = gate * gate * biased(up, w.rows) + static_cast<double>(before[at]);
      ASSERT_NEAR(static_cast<double>(got[at]), want, 1e-4 * (1.0 + std::fabs(want)))
          << "row " << t << " output " << n;
    }
  }
}

/// Gates whose outputs fill an odd number of tiles, of which one has more than half.
TEST(CudaUnpacked, GatesOfOddTiles) {
  for (const int64_t outputs : {3, 8, 24, 40}) {
    SCOPED_TRACE(outputs);
    OpBench bench(cuda_engine());
    constexpr int64_t kCols = 1024;
    constexpr int64_t kRows = 10;
    const Matrix w(DType::kQ8_0, outputs, kCols, 1);
    const Matrix up(DType::kQ8_0, outputs, kCols, 2);
    LinearCase c;
    c.weights = {&w, &up};
    c.rows = kRows;
    c.bf16 = true;
    expect_exact_gate(bench, c, random_row(kRows * kCols, 3));
  }
}

/// Tiles and steps that are not full, one step and several.
TEST(CudaUnpacked, EveryFormat) {
  OpBench bench(cuda_engine());
  for (const DType type : quantised_types()) {
    const bool small = dtype_info(type)->block_elements == 32;
    for (const auto& [outputs, cols, rows] :
         {std::tuple(75, small ? 160 : 256, 20), std::tuple(8, small ? 1024 + 96 : 3 * 256, 9)}) {
      SCOPED_TRACE(testing::Message() << dtype_name(type) << ", " << outputs << " x " << cols);
      const Matrix w(type, outputs, cols, 1);
      LinearCase c;
      c.weights = {&w};
      c.rows = rows;
      c.bf16 = true;
      const auto x = random_row(static_cast<size_t>(rows * w.cols), 2, 2.0F);
      expect_exact(w, rows, x, run(bench, c, x));
    }
  }
}

#ifndef GEN_ON_DEVICE
/// A device whose second cache is small: three slices, the last one short. Of a gate both halves,
/// with what comes after them.
TEST(CudaUnpacked, Slices) {
  cuda::emulator::configure({.l2_bytes = size_t{96} << 10});
  {
    OpBench bench(cuda_engine());
    constexpr int64_t kOutputs = 600;
    constexpr int64_t kCols = 96;
    constexpr int64_t kRows = 10;
    const Matrix w(DType::kQ5_1, kOutputs, kCols, 1);
    const Matrix up(DType::kQ5_1, kOutputs, kCols, 2);
    const auto x = random_row(kRows * kCols, 3);
    LinearCase c;
    c.weights = {&w};
    c.rows = kRows;
    c.bf16 = true;
    expect_exact(w, kRows, x, run(bench, c, x));
    c.weights.push_back(&up);
    expect_exact_gate(bench, c, x);
  }
  cuda::emulator::configure({});
}

/// Bfloat16 from more rows on than few where tensor cores have it; quantised weights where that is
/// faster, unless they lie in a stack with others.
TEST(CudaUnpacked, WhoWantsRowsInBFloat16) {
  const Matrix bf16(DType::kBF16, 8, 256, 1);
  const Matrix odd(DType::kBF16, 8, 75, 1);
  const Matrix f16(DType::kF16, 8, 256, 1);
  const Matrix f32(DType::kF32, 8, 256, 1);
  const Matrix q8(DType::kQ8_0, 8, 256, 1);
  const Matrix q6(DType::kQ6_K, 8, 256, 1);
  constexpr int64_t kNever = engine::kAnyRows;
  struct Want {
    std::vector<const Matrix*> stack;
    int64_t bf16_rows;
    int64_t one_result_rows;
  };
  const auto expect = [](int major, int minor, const std::vector<Want>& all) {
    cuda::emulator::configure({.major = major, .minor = minor});
    {
      const auto engine = cuda_engine();
      for (const Want& want : all) {
        SCOPED_TRACE(testing::Message() << major << minor << dtype_name(want.stack[0]->type));
        std::vector<WeightSource> sources;
        for (const Matrix* matrix : want.stack) sources.push_back(matrix->source());
        const auto weight = engine->prepare(WeightRole::kLinear, sources, nullptr);
        ASSERT_TRUE(weight.ok());
        EXPECT_EQ(weight.value()->bf16_rows(), want.bf16_rows);
        EXPECT_EQ(std::min(weight.value()->one_result_rows(), kNever - 1),
                  std::min(want.one_result_rows, kNever - 1));
      }
    }
    cuda::emulator::configure({});
  };
  const std::vector<Want> floats = {
      {{&bf16}, 9, 0}, {{&odd}, kNever, 0}, {{&f16}, kNever, 0}, {{&f32}, kNever, kNever}};
  for (const auto& [major, minor] : {std::pair(8, 0), std::pair(9, 0), std::pair(10, 0)}) {
    expect(major, minor, floats);
    expect(major, minor,
           {{{&q8}, 512, 511}, {{&q6, &q8}, 512, 511}, {{&q8, &f32}, kNever, kNever}});
  }
  for (const auto& [major, minor] : {std::pair(8, 6), std::pair(8, 9), std::pair(12, 0)}) {
    expect(major, minor, floats);
    expect(major, minor, {{{&q8}, kNever, kNever}});
  }
  expect(7, 5, {{{&bf16}, kNever, 0}, {{&q8}, kNever, kNever}});
}
#endif

}  // namespace
}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// The parts that gpu_bench times on a device run on the emulator, small, and pass their own checks.
#include "bench/gpu_layer.h"

#include "cuda/engine/op_bench.h"

namespace gen::test {
namespace {

void expect_right(const Result<GpuFigure>& figure) {
  ASSERT_TRUE(figure.ok()) << figure.status().message();
  EXPECT_LE(figure.value().worst, 1.0) << figure.value().name;
  EXPECT_GT(figure.value().bytes, 0.0);
}

TEST(GpuBench, PartsAreRight) {
  auto ops = GpuOps::create(cuda_engine(), 256, 0.0);
  ASSERT_TRUE(ops.ok()) << ops.status().message();
  expect_right(ops.value()->copy(1000));
  expect_right(ops.value()->add(2));
  expect_right(ops.value()->rms_norm(2));
  for (const quant::Format& format : quant::formats()) expect_right(ops.value()->linear(format, 1));
  for (const DType type : {DType::kBF16, DType::kQ8_0, DType::kQ4_K}) {
    expect_right(ops.value()->linear(*quant::find_format(type), 17, true));
  }
  expect_right(ops.value()->attention(2, 1, 300, 4, 2, 16));
  expect_right(ops.value()->attention(1, 20, 40, 4, 2, 16));
  expect_right(ops.value()->capture(9));
  expect_right(ops.value()->step(*quant::find_format(DType::kQ4_K), 3));
  for (const DType type : {DType::kBF16, DType::kQ8_0}) {
    expect_right(ops.value()->layers(*quant::find_format(type), {256, 4, 2, 64, 512}, 2, 20));
  }
}

}  // namespace
}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// Proves that products of F16 and BF16 for many rows are made by cuBLASLt where it is found, here a
// stub, and right; that a product which it does not do, or all where it is missing, are as without
// it; and that nothing of it shows where rows must have one result.
#include <algorithm>
#include <string>
#include <tuple>

#include "base/log.h"
#include "cuda/emulator/emulator.h"
#include "cuda/engine/cublaslt_calls.h"
#include "cuda/engine/linear_case.h"

namespace gen::test {
namespace {

TEST(CudaLibraryProducts, AreRight) {
  OpBench bench(engine_with(GEN_CUBLASLT_STUB));
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const auto& [outputs, cols, rows] : {std::tuple(6, 320, 9), std::tuple(75, 75, 40)}) {
      SCOPED_TRACE(testing::Message() << dtype_name(type) << ", " << cols << ", " << rows);
      const Matrix w(type, outputs, cols, 1);
      LinearCase c;
      c.weights = {&w};
      c.rows = rows;
      auto x = random_row(static_cast<size_t>(rows * w.cols), 2, 2.0F);
      for (int64_t i = 0; i < cols; ++i) x[static_cast<size_t>(i)] *= 1e20F;
      const int before = calls().made;
      expect_near_exact(w, rows, x, run(bench, c, x), true);
      EXPECT_EQ(calls().made, before + 1);
    }
  }
}

TEST(CudaLibraryProducts, EndsAreAsWithoutIt) {
  OpBench with(engine_with(GEN_CUBLASLT_STUB));
  OpBench without(cuda_engine());
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const bool gated : {false, true}) {
      const Matrix a(type, 43, 96, 1);
      const Matrix b(type, 43, 96, 2);
      LinearCase c;
      c.weights = {&a, &b};
      if (gated) c.role = WeightRole::kGated;
      c.rows = 20;
      c.bias = c.residual = true;
      c.activation = {engine::Act::kSilu};
      const auto x = random_row(20 * 96, 4);
      const auto want = run(without, c, x);
      const auto got = run(with, c, x);
      // Equal apart from the order of additions.
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 1e-4F * (1.0F + std::fabs(want[i]))) << i;
      }
    }
  }
  EXPECT_EQ(calls().made, 8);
}

/// A residual, where nothing else comes after the sums and rows lie at multiples of 16 bytes, is
/// the library's to add.
TEST(CudaLibraryProducts, AddResiduals) {
  OpBench with(engine_with(GEN_CUBLASLT_STUB));
  OpBench without(cuda_engine());
  for (const auto& [outputs, bias, added] :
       {std::tuple(42, false, 1), std::tuple(42, true, 0), std::tuple(43, false, 0)}) {
    const Matrix w(DType::kBF16, outputs, 96, 1);
    LinearCase c;
    c.weights = {&w};
    c.rows = 20;
    c.residual = true;
    c.bias = bias;
    const auto x = random_row(20 * 96, 4);
    const auto want = run(without, c, x);
    calls() = {};
    const auto got = run(with, c, x);
    EXPECT_EQ(calls().made, 1);
    EXPECT_EQ(calls().residuals, added) << outputs << bias;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], 1e-4F * (1.0F + std::fabs(want[i]))) << i;
    }
  }
}

/// Quantised weights as bfloat16, in two slices: a product for each, of a gate two. A slice that
/// the library does not do is made without it.
TEST(CudaLibraryProducts, UnpackedWeights) {
  cuda::emulator::configure({.l2_bytes = size_t{96} << 10});
  {
    OpBench with(engine_with(GEN_CUBLASLT_STUB));
    OpBench without(cuda_engine());
    constexpr int64_t kOutputs = 598;  // in rows that are multiples of 16 bytes apart
    const Matrix w(DType::kQ4_0, kOutputs, 96, 1);
    const Matrix up(DType::kQ4_0, kOutputs, 96, 2);
    const auto x = random_row(10 * 96, 3);
    const auto expect = [&](const LinearCase& c, int products, int residuals) {
      const auto want = run(without, c, x);
      calls() = {};
      const auto got = run(with, c, x);
      EXPECT_EQ(calls().made, products);
      EXPECT_EQ(calls().residuals, residuals);
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 1e-4F * (1.0F + std::fabs(want[i]))) << i;
      }
    };
    LinearCase c;
    c.weights = {&w};
    c.rows = 10;
    c.bf16 = c.residual = true;
    expect(c, 2, 2);
    c.bias = true;
    expect(c, 2, 0);
    c.weights.push_back(&up);
    c.role = WeightRole::kGated;
    c.activation = {engine::Act::kSilu};
    expect(c, 4, 0);
    c.bias = c.residual = false;  // fours of outputs by one thread
    expect(c, 4, 0);
    const auto own = run(without, c, x);
    calls() = {};
    calls().answer = 13;
    OpBench failing(engine_with(GEN_CUBLASLT_STUB));
    calls().answer = 13;
    EXPECT_TRUE(same_bits(run(failing, c, x), own));
    EXPECT_EQ(calls().made, 2);  // once for each shape
    const auto engine = engine_with(GEN_CUBLASLT_STUB);
    const WeightSource source = w.source();
    EXPECT_EQ(engine->prepare(WeightRole::kLinear, {&source, 1}, nullptr).value()->bf16_rows(),
              256);
  }
  cuda::emulator::configure({});
}

TEST(CudaLibraryProducts, NothingOfItShowsWhereItIsNotUsed) {
  OpBench without(cuda_engine());
  OpBench with(engine_with(GEN_CUBLASLT_STUB));
  const Matrix w(DType::kBF16, 13, 96, 1);
  const auto x = random_row(20 * 96, 4);
  const auto case_of = [&](int64_t rows, bool deterministic) {
    LinearCase c;
    c.weights = {&w};
    c.rows = rows;
    c.deterministic = deterministic;
    return c;
  };
  const auto few = std::vector<float>(x.begin(), x.begin() + 8 * 96);
  EXPECT_TRUE(same_bits(run(with, case_of(8, false), few), run(without, case_of(8, false), few)));
  const auto own = run(without, case_of(20, true), x);
  EXPECT_TRUE(same_bits(run(with, case_of(20, true), x), own));
  EXPECT_EQ(calls().made, 0);
  calls().answer = 13;  // it fails
  EXPECT_TRUE(same_bits(run(with, case_of(20, false), x), own));
  EXPECT_EQ(calls().made, 1);
  EXPECT_TRUE(same_bits(run(with, case_of(20, false), x), own));
  EXPECT_EQ(calls().made, 1);  // and is not asked for this shape again
  for (const char* missing : {"off", "/nowhere/libcublasLt.so", "libc.so.6"}) {
    OpBench bench(engine_with(missing));
    EXPECT_TRUE(same_bits(run(bench, case_of(20, false), x), own)) << missing;
  }
}

/// A file that GEN_CUBLASLT names and that cannot be used is told once; that there is none, or that
/// none is wanted, only at the level for details.
TEST(CudaLibraryProducts, AFileThatCannotBeUsedIsTold) {
  const Matrix w(DType::kBF16, 13, 96, 1);
  LinearCase c;
  c.weights = {&w};
  c.rows = 20;
  static std::vector<std::string> lines;
  set_log_sink([](void*, int32_t level,
                  const char* line) { lines.push_back(std::to_string(level) + " " + line); },
               nullptr);
  set_log_level(LogLevel::kWarning);
  const auto said = [&](const char* library) {
    lines.clear();
    OpBench bench(engine_with(library));
    for (int32_t i = 0; i < 2; ++i) run(bench, c, random_row(20 * 96, 4));
    return lines;
  };
  EXPECT_EQ(said("off"), std::vector<std::string>());
  EXPECT_EQ(said(""), std::vector<std::string>());
  EXPECT_EQ(said(GEN_CUBLASLT_STUB), std::vector<std::string>());
  for (const char* file : {"/nowhere/libcublasLt.so", "libc.so.6"}) {
    const auto got = said(file);
    ASSERT_EQ(got.size(), 1U) << file;
    EXPECT_EQ(got[0].find("2 products without cuBLASLt, GEN_CUBLASLT is \"" + std::string(file)),
              0U)
        << got[0];
  }
  set_log_level(LogLevel::kOff);
  set_log_sink(nullptr, nullptr);
}

}  // namespace

}  // namespace gen::test

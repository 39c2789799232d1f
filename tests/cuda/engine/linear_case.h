// SPDX-License-Identifier: Apache-2.0
// Products for tests of the CUDA engine: a matrix in any format, one call of an operation over
// several, and the sum in double precision with the error it may have.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cuda/engine/op_bench.h"
#include "quant/format.h"
#include "tensor/half.h"
#include "support/weight_blocks.h"

namespace gen::test {

using engine::WeightRole;
using engine::WeightSource;

struct Matrix {
  Matrix(DType type_in, int64_t rows_in, int64_t cols_in, uint32_t seed)
      : type(type_in), rows(rows_in), cols(cols_in) {
    const quant::Format* format = quant::find_format(type);
    const DTypeInfo* info = dtype_info(type);
    const auto n = static_cast<size_t>(rows * cols);
    const auto x = random_row(n, seed, 0.4F);
    bytes.resize(n / info->block_elements * info->block_bytes);
    write_weights(type, x.data(), bytes.data(), rows * cols);
    values.resize(n);
    format->decode(bytes.data(), values.data(), rows * cols);
  }
  [[nodiscard]] WeightSource source() const { return {"w", type, rows, cols, bytes, false}; }

  DType type;
  int64_t rows;
  int64_t cols;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

struct LinearCase {
  std::vector<const Matrix*> weights;
  WeightRole role = WeightRole::kLinear;
  int64_t rows = 3;
  bool bias = false;
  bool residual = false;
  bool deterministic = false;
  bool bf16 = false;  // rows are bfloat16
  engine::Activation activation;
};

inline std::vector<float> run(OpBench& bench, const LinearCase& c, const std::vector<float>& x) {
  std::vector<WeightSource> sources;
  int64_t outputs = 0;
  for (const Matrix* matrix : c.weights) {
    sources.push_back(matrix->source());
    outputs += matrix->rows;
  }
  const int64_t all = outputs;
  if (c.role == WeightRole::kGated) outputs /= 2;
  const int64_t cols = c.weights[0]->cols;
  auto weight = bench.engine().prepare(c.role, sources, nullptr);
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  EXPECT_EQ(weight.value()->out_features(), outputs);
  EXPECT_EQ(weight.value()->in_features(), cols);
  const uint32_t forms = weight.value()->activation_forms();
  const auto stride = static_cast<int64_t>(bench.engine().activation_bytes(forms, cols));
  engine::LinearArgs args;
  args.weight = weight.value().get();
  // Elements after the columns of a row may be NaN.
  const std::vector<float> nothing(static_cast<size_t>(c.rows * stride / 4), std::nanf(""));
  args.x = {bench.put(nothing).as<std::byte>(), forms, c.rows, cols, c.bf16};
  bench.run(engine::PackArgs{{bench.put(x), c.rows, cols, cols}, args.x});
  if (c.bias) {
    args.bias = bench.put(random_row(static_cast<size_t>(all), 21));
  }
  args.activation = c.activation;
  args.deterministic = c.deterministic;
  const auto before = random_row(static_cast<size_t>(c.rows * (outputs + 2)), 22);
  args.y = {bench.put(before), c.rows, outputs, outputs + 2};
  if (c.residual) {
    args.residual = {args.y.data, c.rows, outputs, outputs + 2};
  }
  bench.run(args);
  const auto got = bench.get(args.y.data, c.rows * (outputs + 2));
  for (int64_t t = 0; t < c.rows; ++t) {  // only the rows are written
    for (int64_t n = outputs; n < outputs + 2; ++n) {
      const auto at = static_cast<size_t>(t * (outputs + 2) + n);
      EXPECT_EQ(got[at], before[at]);
    }
  }
  return got;
}

/// The sum of a product in double and how far it may be off: a rounding for each multiply-add of a
/// lane, those of adding lanes, and the end's. On tensor cores inputs are rounded to the weights'
/// type, to float16 as a share of the row's largest, and there are two roundings for every 16
/// columns.
struct Sum {
  double value = 0.0;
  double bound = 0.0;
};
inline Sum exact(const Matrix& w, int64_t output, const float* x, bool tensor_cores) {
  Sum sum;
  double size = 0.0;
  double weights = 0.0;
  double largest = 0.0;
  for (int64_t c = 0; c < w.cols; ++c) {
    const auto weight = static_cast<double>(w.values[static_cast<size_t>(output * w.cols + c)]);
    const double product = weight * static_cast<double>(x[c]);
    sum.value += product;
    size += std::fabs(product);
    weights += std::fabs(weight);
    largest = std::fmax(largest, std::fabs(static_cast<double>(x[c])));
  }
  sum.bound = size * (static_cast<double>(w.cols) / 32.0 + 15.0) * 0x1p-24;
  if (!tensor_cores) return sum;
  sum.bound = size * (static_cast<double>(w.cols) / 16.0 + 3.0) * 0x1p-23;
  sum.bound +=
      w.type == DType::kBF16 ? size * 0x1p-9 : size * 0x1p-12 + largest * weights * 0x1p-24;
  return sum;
}

/// Of factors that are rounded to bfloat16 first; then products are exact, and there are two
/// roundings for every 16 columns.
inline Sum exact_bf16(const Matrix& w, int64_t output, const float* x) {
  Sum sum;
  const auto rounded = [](float v) { return static_cast<double>(bf16_to_f32(f32_to_bf16(v))); };
  double size = 0.0;
  for (int64_t c = 0; c < w.cols; ++c) {
    const double product =
        rounded(w.values[static_cast<size_t>(output * w.cols + c)]) * rounded(x[c]);
    sum.value += product;
    size += std::fabs(product);
  }
  sum.bound = size * (static_cast<double>(w.cols) / 16.0 + 3.0) * 0x1p-23;
  return sum;
}

inline void expect_near_exact(const Matrix& w, int64_t rows, const std::vector<float>& x,
                              const std::vector<float>& y, bool tensor_cores) {
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t n = 0; n < w.rows; ++n) {
      const Sum want = exact(w, n, x.data() + t * w.cols, tensor_cores);
      ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>(t * (w.rows + 2) + n)]), want.value,
                  want.bound)
          << "row " << t << " output " << n;
    }
  }
}

}  // namespace gen::test

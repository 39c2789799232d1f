// SPDX-License-Identifier: Apache-2.0
// Code shared by all products: the epilogue and its arguments.
//   y[t, n] = act(sum (+ adapters) (+ bias[n])) (+ residual[t, n]), or act(gate) * up of two sums
// Each operation is rounded once; equal sums give the bits of the CPU engine.
#pragma once

#include "cuda/ops/activation_rows.cuh"
#include "cuda/ops/context.h"
#include "cuda/ops/device.cuh"
#include "cuda/ops/low_rank.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/weight/weight.h"

namespace gen::cuda {

/// Rows of x that share a pass over the weights.
constexpr int32_t kMatvecRows = 8;

struct LinearEnd {
  const float* bias;
  const float* up_bias;  // bias of the up matrix
  engine::Activation activation;
  ConstRowsView residual;
  RowsView y;
  bool bf16;  // y's rows are
  LowRankView low_rank;
  ConstRowsView u;
  int64_t rows;       // outputs of this segment
  int64_t first_row;  // its first one's place in the product
  bool gated;
};

/// A row that the product itself normalises (rms_norm.cu) before it is multiplied.
struct RowNorm {
  const float* x = nullptr;  // null: already normalised
  const float* w = nullptr;
  float eps = 0.0F;
  float* y = nullptr;  // also receives the normalised row
};

/// The epilogue of a product, without its segment.
inline LinearEnd linear_end(const engine::LinearArgs& args) noexcept {
  const bool gated = args.weight->role() == engine::WeightRole::kGated;
  const float* const bias = pointer(args.bias);
  return {bias,
          gated && bias != nullptr ? bias + args.y.cols : nullptr,
          args.activation,
          view(args.residual),
          view(args.y),
          args.bf16_y,
          view(args.low_rank),
          view(args.u),
          0,
          0,
          gated};
}

/// The residual of output `output` of the segment for row t; 0 if there is none.
GEN_DEVICE float residual_of(const LinearEnd& of, int64_t t, int64_t output) {
  if (of.residual.data == nullptr) return 0.0F;
  return of.residual.data[t * of.residual.stride + of.first_row + output];
}

/// Writes output `output` of the segment for row t. `up` is used by gated products. `residual()`
/// returns residual_of() the output; it is called last, unless the caller has loaded it before.
template <typename Residual>
GEN_DEVICE float finished(const LinearEnd& of, int64_t t, int64_t output, float sum, float up,
                          const Residual& residual) {
  const int64_t column = of.first_row + output;
  const float* const u = of.u.data != nullptr ? of.u.data + t * of.u.stride : nullptr;
  sum = add_adapters(of.low_rank, u, t, of.gated ? 0 : -1, column, sum);
  if (of.bias != nullptr) sum = sum + of.bias[column];
  if (of.gated) {
    up = add_adapters(of.low_rank, u, t, 1, column, up);
    if (of.up_bias != nullptr) up = up + of.up_bias[column];
    sum = gated(of.activation, sum, up);
  } else {
    sum = activated(of.activation, sum);
  }
  if (of.residual.data != nullptr) sum = sum + residual();
  return sum;
}
template <typename Residual>
GEN_DEVICE void finish_output(const LinearEnd& of, int64_t t, int64_t output, float sum, float up,
                              const Residual& residual) {
  of.y.data[t * of.y.stride + of.first_row + output] = finished(of, t, output, sum, up, residual);
}
GEN_DEVICE void finish_output(const LinearEnd& of, int64_t t, int64_t output, float sum, float up) {
  finish_output(of, t, output, sum, up, [&] { return residual_of(of, t, output); });
}
/// The same for many rows, which may be written as bfloat16.
GEN_DEVICE void finish_many(const LinearEnd& of, int64_t t, int64_t output, float sum, float up) {
  const auto residual = [&] { return residual_of(of, t, output); };
  put_column(reinterpret_cast<uint8_t*>(of.y.data + t * of.y.stride), of.bf16,
             of.first_row + output, finished(of, t, output, sum, up, residual));
}

/// The product of a segment, or of a gated pair of segments, by weight type. `up` is null if the
/// product is not gated. kUnsupported for types of another file. A norm is allowed only if
/// linear_floats_norm() says so.
Status linear_floats(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                     const WeightSegment& weight, const WeightSegment* up, const RowNorm& norm);
bool linear_floats_norm(const OpContext& context, const RowNorm& norm, int64_t cols, DType type);
Status linear_blocks_of_32(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                           const WeightSegment& weight, const WeightSegment* up);
Status linear_blocks_of_256(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                            const WeightSegment& weight, const WeightSegment* up);
/// The same for many rows. With float weights the result differs, and not every type and device is
/// supported. `own`: with the bits of our own kernel, which has one result for a row.
bool linear_float_rows_can(const OpContext& context, DType type);
Status linear_float_rows(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                         const WeightSegment& weight, const WeightSegment* up, bool own);
/// The same for one row in float32, and whether there is room for it; without a norm, or with one
/// that is the product's work.
Status linear_float_one(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                        const WeightSegment& weight, const WeightSegment* up, const RowNorm& norm);
bool linear_float_one_can(const OpContext& context, int64_t cols, const RowNorm& norm);
/// Products of quantised weights with rows in bfloat16.
Status linear_unpacked(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                       const WeightSegment& weight, const WeightSegment* up);
Status linear_rows_of_32(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                         const WeightSegment& weight, const WeightSegment* up);
Status linear_rows_of_256(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                          const WeightSegment& weight, const WeightSegment* up);

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// linear: selects the kernels of a product. They are in linear_floats.cu, in linear_blocks_of_*.cu
// for few rows and in linear_rows_of_*.cu for many. Quantised weights give the same result with
// either, except when rows are so many that they are in bfloat16 (linear_unpacked.cu). With float
// weights, many rows use tensor cores; if a row must have one result, all row counts do. The two
// products of a gate are fused; segments of a stack run in order.
#include <utility>

#include "cuda/ops/linear/bf16_rows.h"
#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/ops_run.h"
#include "cuda/ops/pairs.h"
#include "quant/traits.h"

namespace gen::cuda {

int64_t bf16_rows_from(const OpContext& context, DType type, int64_t cols) {
  if (context.compute < 80 || cols % 8 != 0) return engine::kAnyRows;
  if (type == DType::kBF16) return kMatvecRows + 1;
  if (quant::find_traits(type) == nullptr) return engine::kAnyRows;
  const int32_t family = context.compute / 10;
  if (context.compute != 80 && family != 9 && family != 10) return engine::kAnyRows;
  const bool library =
      context.products != nullptr && context.products->workspace_bytes(context.compute) > 0;
  return library && family >= 9 ? 256 : 512;
}

namespace {

const std::vector<WeightSegment>& segments_of(const engine::LinearArgs& args) {
  return static_cast<const DeviceWeight&>(*args.weight).segments();
}

/// Whether products of float weights go through tensor cores.
bool on_tensor_cores(const OpContext& context, const engine::LinearArgs& args, DType type) {
  return (args.y.rows > kMatvecRows || args.deterministic) && linear_float_rows_can(context, type);
}

RowNorm row_norm(const engine::RmsNormArgs& args) {
  return {pointer(args.x.data), pointer(args.w), args.eps, view(args.packed).data};
}

/// Whether two rows of floats overlap in memory.
bool overlap(const float* a, int64_t n, const float* b, int64_t m) {
  return a != nullptr && b != nullptr && a < b + m && b < a + n;
}

/// `norm` is applied before the first segment.
Status run_segments(const OpContext& context, const engine::LinearArgs& args, RowNorm norm) {
  const std::vector<WeightSegment>& segments = segments_of(args);
  const PackedRows x = packed_rows(args.x);
  LinearEnd end = linear_end(args);
  const bool many = end.y.rows > kMatvecRows;
  for (size_t i = 0; i < segments.size(); i += end.gated ? 2 : 1) {
    const WeightSegment& segment = segments[i];
    const WeightSegment* const up = end.gated ? &segments[i + 1] : nullptr;
    end.rows = segment.rows;
    end.first_row = segment.first_row;
    const quant::Traits* const traits = quant::find_traits(segment.type);
    if (traits == nullptr) {
      const RowNorm own = std::exchange(norm, {});
      if (!on_tensor_cores(context, args, segment.type)) {
        GEN_TRY(linear_floats(context, x, end, segment, up, own));
      } else if (end.y.rows == 1 && linear_float_one_can(context, x.cols, own)) {
        GEN_TRY(linear_float_one(context, x, end, segment, up, own));
      } else {
        GEN_TRY(linear_float_rows(context, x, end, segment, up, args.deterministic));
      }
    } else if (x.bf16) {
      GEN_TRY(linear_unpacked(context, x, end, segment, up));
    } else if (traits->block == 32) {
      GEN_TRY((many ? linear_rows_of_32 : linear_blocks_of_32)(context, x, end, segment, up));
    } else {
      GEN_TRY((many ? linear_rows_of_256 : linear_blocks_of_256)(context, x, end, segment, up));
    }
  }
  return {};
}

}  // namespace

Status run(const OpContext& context, const engine::LinearArgs& args) {
  return run_segments(context, args, {});
}

bool norm_pairs(const OpContext& context, const engine::RmsNormArgs& norm,
                const engine::LinearArgs& linear) {
  if (linear.y.rows != 1 || norm.packed != linear.x || norm.y.data) return false;
  if (norm.packed.bf16 || linear.bf16_y) return false;
  const DType type = segments_of(linear)[0].type;
  if (quant::find_traits(type) != nullptr) return false;
  const RowLayout at = row_layout(norm.packed.forms, norm.packed.cols);
  if (at.q8 != 0 || at.q8k != 0) return false;
  const RowNorm row = row_norm(norm);
  const int64_t cols = norm.x.cols;
  // Blocks write results while others still read the row.
  const float* const y = pointer(linear.y.data);
  if (overlap(y, linear.y.cols, row.x, cols) || overlap(y, linear.y.cols, row.y, cols))
    return false;
  if (overlap(row.y, cols, row.x, cols)) return false;
  return on_tensor_cores(context, linear, type) ? linear_float_one_can(context, cols, row)
                                                : linear_floats_norm(context, row, cols, type);
}

Status run_pair(const OpContext& context, const engine::RmsNormArgs& norm,
                const engine::LinearArgs& linear) {
  return run_segments(context, linear, row_norm(norm));
}

}  // namespace gen::cuda

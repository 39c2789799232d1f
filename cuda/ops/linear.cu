// SPDX-License-Identifier: Apache-2.0
// linear: which kernels a product takes; they are in linear_floats.cu, in linear_blocks_of_*.cu for
// few rows and in linear_rows_of_*.cu for many. Quantised ones have one result for either;
// of float weights many rows go through tensor cores, and all do where a row must have one result.
// Two products of a gate are one, segments of a stack are one after another.
#include "cuda/ops/bf16_rows.h"
#include "cuda/ops/linear_end.cuh"
#include "cuda/ops/ops_run.h"
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

Status run(const OpContext& context, const engine::LinearArgs& args) {
  const auto& weight = static_cast<const DeviceWeight&>(*args.weight);
  const std::vector<WeightSegment>& segments = weight.segments();
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
      if ((many || args.deterministic) && linear_float_rows_can(context, segment.type)) {
        GEN_TRY(linear_float_rows(context, x, end, segment, up, args.deterministic));
      } else {
        GEN_TRY(linear_floats(context, x, end, segment, up));
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

}  // namespace gen::cuda

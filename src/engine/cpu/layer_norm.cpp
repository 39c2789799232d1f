// SPDX-License-Identifier: Apache-2.0
// layer_norm: rows split over threads; a row goes out as floats, packed for products, or both.
#include "engine/cpu/layer_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/layer_norm-inl.h"
#include "engine/cpu/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/layer_norm-inl.h"

#include "engine/cpu/activations.h"
#include "engine/cpu/ops_run.h"
#include "engine/cpu/parallel_rows.h"

namespace gen::engine::cpu {

const LayerNormKernels* layer_norm_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kLayerNorm);
}

Status run(CpuContext& context, const LayerNormArgs& args) {
  const int64_t rows = args.x.rows;
  const int64_t cols = args.x.cols;
  // Packing alone still needs the floats of one row at a time, per thread.
  const int64_t row_floats = (cols + kLanes - 1) / kLanes * kLanes;
  float* temporary = nullptr;
  if (!args.y.data) {
    const auto threads = static_cast<size_t>(threads_for_rows(context, rows, cols));
    std::byte* memory = nullptr;
    GEN_TRY(
        context.stream.scratch(threads * static_cast<size_t>(row_floats) * sizeof(float), &memory));
    temporary = reinterpret_cast<float*>(memory);
  }
  if (context.dry_run) return {};
  const auto kernel = context.kernels.layer_norm->row;
  const ConstRows x = context.at(args.x);
  const Rows out = context.at(args.y);
  const PackedView packed = context.at(args.packed);
  const float* const w = context.at(args.w);
  const float* const b = context.at(args.b);
  const int64_t group = cols / args.groups;
  parallel_rows(context, rows, cols, [&](int64_t begin, int64_t end, int32_t thread) {
    for (int64_t t = begin; t < end; ++t) {
      float* y = out.data != nullptr ? out.row(t) : temporary + thread * row_floats;
      for (int64_t d = 0; d < cols; d += group) {
        kernel(x.row(t) + d, w != nullptr ? w + d : nullptr, b != nullptr ? b + d : nullptr,
               args.eps, y + d, group);
      }
      if (packed.data != nullptr) pack_row(context.kernels, y, packed, t);
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

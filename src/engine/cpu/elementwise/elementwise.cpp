// SPDX-License-Identifier: Apache-2.0
// Add, gate and activate: rows split over threads, kernels from elementwise.h.
#include "engine/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/elementwise/elementwise-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/elementwise/elementwise-inl.h"

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {

const ElementwiseKernels* elementwise_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kElementwise);
}

Status run(CpuContext& context, const AddArgs& args) {
  if (context.dry_run) return {};
  const auto kernel = context.kernels.elementwise->add;
  const ConstRows a = context.at(args.a);
  const ConstRows b = context.at(args.b);
  const Rows y = context.at(args.y);
  const int64_t cols = args.y.cols;
  parallel_rows(context, args.y.rows, cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      kernel(a.row(t), b.row(t), y.row(t), cols);
    }
  });
  return {};
}

Status run(CpuContext& context, const GatedArgs& args) {
  if (context.dry_run) return {};
  const auto kernel = context.kernels.elementwise->gated[static_cast<size_t>(args.activation.kind)];
  const ConstRows gate = context.at(args.gate);
  const ConstRows up = context.at(args.up);
  const Rows y = context.at(args.y);
  const int64_t cols = args.y.cols;
  parallel_rows(context, args.y.rows, cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      kernel(gate.row(t), up.row(t), y.row(t), cols, args.activation);
    }
  });
  return {};
}

Status run(CpuContext& context, const ActivateArgs& args) {
  if (context.dry_run) return {};
  const auto kernel =
      context.kernels.elementwise->activate[static_cast<size_t>(args.activation.kind)];
  const ConstRows x = context.at(args.x);
  const Rows y = context.at(args.y);
  const int64_t cols = args.y.cols;
  parallel_rows(context, args.y.rows, cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      kernel(x.row(t), y.row(t), cols, args.activation);
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

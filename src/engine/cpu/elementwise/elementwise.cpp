// SPDX-License-Identifier: Apache-2.0
// Add, gate and activate: rows split over threads, kernels from elementwise.h.
#include "engine/cpu/elementwise/elementwise.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/elementwise/elementwise-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/elementwise/elementwise-inl.h"

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {
namespace {

/// Elements that share a gate and go to a kernel at once.
constexpr int64_t kSameGates = 64;

}  // namespace

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
  const int64_t gates = args.gate.cols;
  parallel_rows(context, args.y.rows, cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) {
      if (gates == cols) {
        kernel(gate.row(t), up.row(t), y.row(t), cols, args.activation);
        continue;
      }
      const int64_t run = cols / gates;
      for (int64_t g = 0; g < gates; ++g) {
        float same[kSameGates];
        std::fill_n(same, std::min(run, kSameGates), gate.row(t)[g]);
        for (int64_t i = 0; i < run; i += kSameGates) {
          kernel(same, up.row(t) + g * run + i, y.row(t) + g * run + i,
                 std::min(run - i, kSameGates), args.activation);
        }
      }
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

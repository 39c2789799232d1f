// SPDX-License-Identifier: Apache-2.0
// Code shared by all norms: rows are split over threads, and a row is written as floats, packed for
// products, or both.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/base/context.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu/simd/lanes.h"

namespace gen::engine::cpu {

/// Calls norm(x, y) for each row of args.x; y has room for whole lanes.
template <typename Args, typename Norm>
Status norm_rows(CpuContext& context, const Args& args, const Norm& norm) {
  const int64_t rows = args.x.rows;
  const int64_t cols = args.x.cols;
  // If rows are only packed, each thread needs scratch for the floats of one row.
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
  const ConstRows x = context.at(args.x);
  const Rows out = context.at(args.y);
  const PackedView packed = context.at(args.packed);
  parallel_rows(context, rows, cols, [&](int64_t begin, int64_t end, int32_t thread) {
    for (int64_t t = begin; t < end; ++t) {
      float* const y = out.data != nullptr ? out.row(t) : temporary + thread * row_floats;
      norm(x.row(t), y);
      if (packed.data != nullptr) pack_row(context.kernels, y, packed, t);
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

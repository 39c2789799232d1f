// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights for groups of rows of an expert: those of linear_quant_rows.cuh
// with rows that are gathered, and so its bits.
//   Work    A block of threads is eight tiles of an expert by 64 or 32 rows of one of its groups.
//   Bytes   an expert's matrix once for a group of its rows; x once for every 64 outputs.
//   Shared  as there, and 4 bytes for each row.
#pragma once

#include "cuda/ops/experts/experts.cuh"
#include "cuda/ops/linear/linear_quant_rows.cuh"

namespace gen::cuda {

/// Rows anywhere.
struct GatheredRows {
  size_t row_bytes;
  const Shared<int32_t>& rows;

  [[nodiscard]] GEN_DEVICE size_t begin(int32_t) const { return 0; }
  [[nodiscard]] GEN_DEVICE const uint8_t* in_row(const uint8_t* at, int32_t first,
                                                 int32_t i) const {
    const int32_t row = rows[first + i];
    return at + static_cast<size_t>(row) * row_bytes;
  }
};

/// Of the type of a row of kTraits and a shape of kRowShapes. `of` is a segment of the first
/// expert.
template <size_t kIndex, size_t kShape>
GEN_KERNEL GEN_LAUNCH_BOUNDS(kRowsThreads, 2)
    experts_rows_kernel(ExpertsView of, ExpertGroups groups, size_t tile_bytes, int32_t n_tiles,
                        int32_t n_steps, int32_t n_blocks) {
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr RowsShape s = kRowShapes[kShape];
  constexpr int32_t kRows = block_rows(s);
  after_predecessor();
  const GroupPart part = part_of_groups<kRows>(groups, block_x());
  if (part.n <= 0) return;
  const Shared<int32_t> rows =
      dynamic_shared<int32_t>(rows_shared_bytes(t, s), static_cast<size_t>(kRows));
  if (thread_x() < kRows) {
    rows[thread_x()] = thread_x() < part.n ? x_row_of(of, part.places[thread_x()]) : 0;
  }
  sync_threads();
  const size_t matrix = static_cast<size_t>(part.expert) * of.pitch;
  const QuantSegment segment = {
      of.x,       of.end,  of.data + matrix, of.up_data != nullptr ? of.up_data + matrix : nullptr,
      tile_bytes, n_tiles, n_steps,          n_blocks};
  const auto finish = [&](int32_t row, int64_t output, float sum, float up) {
    finish_place(of, part.expert, part.places[row], output, sum, up);
  };
  multiply_rows<t, s>(segment, block_y() * tiles_of_block(of.end.gated), of.x.data,
                      GatheredRows{of.x.at.bytes, rows}, part.n, finish);
}

template <size_t kIndex, size_t kShape>
Status launch_experts_rows(const OpContext& context, const ExpertsView& of,
                           const ExpertGroups& groups, const QuantSegment& segment) {
  constexpr Traits t = quant::kTraits[kIndex];
  constexpr RowsShape s = kRowShapes[kShape];
  constexpr auto kRows = block_rows(s);
  constexpr size_t kBytes = rows_shared_bytes(t, s) + kRows * sizeof(int32_t);
  static_assert(kExpertGroup % kRows == 0);
  if constexpr (kShape + 1 < sizeof(kRowShapes) / sizeof(kRowShapes[0])) {
    if (kRows > groups.size || kBytes > context.shared_bytes) {
      return launch_experts_rows<kIndex, kShape + 1>(context, of, groups, segment);
    }
  }
  const int32_t tiles = tiles_of_block(of.end.gated);
  const device::Dim3 grid = {static_cast<unsigned>(groups.count * (groups.size / kRows)),
                             static_cast<unsigned>((segment.n_tiles + tiles - 1) / tiles), 1};
  return run_kernel(context, "experts_rows", experts_rows_kernel<kIndex, kShape>, grid,
                    kRowsThreads, kBytes, of, groups, segment.tile_bytes, segment.n_tiles,
                    segment.n_steps, segment.n_blocks);
}

/// The kernel of one of the types with blocks of kBlock.
template <int kBlock>
Status experts_rows_of(const OpContext& context, const ExpertsView& of, const ExpertGroups& groups,
                       const WeightSegment& segment) {
  constexpr size_t kFirstShape = 1;  // of 64 rows
  const auto launch = [&]<size_t kIndex>(const QuantSegment& quant) {
    return launch_experts_rows<kIndex, kFirstShape>(context, of, groups, quant);
  };
  return launch_segment<kBlock>(of.x, of.end, segment, nullptr, launch);
}

}  // namespace gen::cuda

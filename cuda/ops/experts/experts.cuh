// SPDX-License-Identifier: Apache-2.0
// Products of rows with the matrices of their experts, as kernels see them: each place, a row and
// one of its experts, on its own (experts.cu), or in groups of one expert (group_experts.cu).
#pragma once

#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/weight/weight.h"

namespace gen::cuda {

struct ExpertsView {
  PackedRows x;
  LinearEnd end;        // biases of the first expert
  const float* scales;  // [E] or null; then those of up
  const int32_t* routes;
  int64_t stride;
  int32_t used;
  int64_t experts;  // E
  bool slots;       // x has a row for each place
  const uint8_t* data;
  const uint8_t* up_data;  // null where the product is not gated
  size_t pitch;            // of both
  size_t row_bytes;        // of floats
};

/// Writes output `output` of a place: row `row` of y.
GEN_DEVICE void finish_place(const ExpertsView& of, int64_t expert, int64_t row, int64_t output,
                             float sum, float up) {
  LinearEnd end = of.end;
  if (of.scales != nullptr) {
    sum = sum * of.scales[expert];
    if (end.gated) up = up * of.scales[of.experts + expert];
  }
  const int64_t first = expert * end.y.cols;
  if (end.bias != nullptr) end.bias += first;
  if (end.up_bias != nullptr) end.up_bias += first;
  finish_output(end, row, output, sum, up);
}

/// Places of one expert, at most ExpertGroups::size.
struct ExpertGroup {
  int32_t expert;
  int32_t first;  // among the sorted places
  int32_t n;
};

/// Places t * n_used + s sorted by expert, and groups of them. Only the device knows how many
/// groups there are: `count` is a bound, and those that are not needed are empty.
struct ExpertGroups {
  const ExpertGroup* groups = nullptr;
  const int32_t* places = nullptr;
  int32_t count = 0;
  int32_t size = 0;
};
/// The largest size; smaller ones divide it.
constexpr int32_t kExpertGroup = 64;

/// What a block of threads has of a group: up to kRows places, or none.
struct GroupPart {
  int32_t expert;
  const int32_t* places;
  int32_t n;
};
/// Part `part` of all groups, kRows places each.
template <int32_t kRows>
GEN_DEVICE GroupPart part_of_groups(const ExpertGroups& of, int32_t part) {
  const int32_t parts = of.size / kRows;
  const ExpertGroup& group = of.groups[part / parts];
  const int32_t first = part % parts * kRows;
  const int32_t left = group.n - first;
  return {group.expert, of.places + group.first + first, left < kRows ? left : kRows};
}
/// The row of x of a place.
GEN_DEVICE int32_t x_row_of(const ExpertsView& of, int32_t place) {
  return of.slots ? place : place / of.used;
}

/// Whether groups pay: on average, at least two places share a matrix.
inline bool experts_grouped(const ExpertsView& of) noexcept {
  return of.end.y.rows >= 2 * of.experts;
}
/// Sorts the places. The groups lie in scratch memory of the queue.
Status group_experts(const OpContext& context, const ExpertsView& of, ExpertGroups* out);
/// The products of a segment, or of a gated pair, in groups; by type, as in linear_end.cuh.
Status experts_rows_of_floats(const OpContext& context, const ExpertsView& of,
                              const ExpertGroups& groups, const WeightSegment& segment);
Status experts_rows_of_32(const OpContext& context, const ExpertsView& of,
                          const ExpertGroups& groups, const WeightSegment& segment);
Status experts_rows_of_256(const OpContext& context, const ExpertsView& of,
                           const ExpertGroups& groups, const WeightSegment& segment);

}  // namespace gen::cuda

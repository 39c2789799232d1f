// SPDX-License-Identifier: Apache-2.0
// Products of the types with blocks of 256 for groups of rows; see experts_rows.cuh.
#include "cuda/ops/experts/experts_rows.cuh"

namespace gen::cuda {

Status experts_rows_of_256(const OpContext& context, const ExpertsView& of,
                           const ExpertGroups& groups, const WeightSegment& segment) {
  return experts_rows_of<256>(context, of, groups, segment);
}

}  // namespace gen::cuda

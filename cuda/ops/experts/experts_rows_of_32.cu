// SPDX-License-Identifier: Apache-2.0
// Products of the types with blocks of 32 for groups of rows; see experts_rows.cuh.
#include "cuda/ops/experts/experts_rows.cuh"

namespace gen::cuda {

Status experts_rows_of_32(const OpContext& context, const ExpertsView& of,
                          const ExpertGroups& groups, const WeightSegment& segment) {
  return experts_rows_of<32>(context, of, groups, segment);
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// Products of the types with blocks of 256; see linear_quant_few.cuh.
#include "cuda/ops/linear/linear_quant_few.cuh"

namespace gen::cuda {

Status linear_blocks_of_256(const OpContext& context, const PackedRows& x, const LinearEnd& end,
                            const WeightSegment& weight, const WeightSegment* up) {
  return linear_blocks<256>(context, x, end, weight, up);
}

}  // namespace gen::cuda

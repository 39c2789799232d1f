// SPDX-License-Identifier: Apache-2.0
// A segment of quantised weights as a kernel argument, and the selection of the kernel by type. A
// file has the kernels of types with blocks of 32, or of 256.
#pragma once

#include "cuda/ops/linear/linear_end.cuh"
#include "cuda/ops/weight/weight_tiles.h"

namespace gen::cuda {

struct QuantSegment {
  PackedRows x;
  LinearEnd end;
  const uint8_t* tiles;
  const uint8_t* up_tiles;  // null where the product is not gated
  size_t tile_bytes;
  int32_t n_tiles;
  int32_t n_steps;
  int32_t n_blocks;
};

/// launch.operator()<kIndex>(segment), the type being row kIndex of kTraits.
template <int kBlock, size_t kIndex = 0, typename Launch>
Status launch_segment(const PackedRows& x, const LinearEnd& end, const WeightSegment& weight,
                      const WeightSegment* up, const Launch& launch) {
  if constexpr (kIndex == sizeof(quant::kTraits) / sizeof(quant::kTraits[0])) {
    return error(Code::kUnsupported, "weights of type %s have no kernel", dtype_name(weight.type));
  } else {
    constexpr quant::Traits kTraits = quant::kTraits[kIndex];
    if constexpr (kTraits.block == kBlock && has_tiles(kTraits)) {
      if (weight.type == kTraits.type) {
        const QuantSegment of = {x,
                                 end,
                                 weight.data,
                                 up != nullptr ? up->data : nullptr,
                                 tile_bytes(kTraits, x.cols),
                                 static_cast<int32_t>(tiles_of(weight.rows)),
                                 static_cast<int32_t>(tile_steps(kTraits, x.cols)),
                                 static_cast<int32_t>(x.cols / kTraits.block)};
        return launch.template operator()<kIndex>(of);
      }
    }
    return launch_segment<kBlock, kIndex + 1>(x, end, weight, up, launch);
  }
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// As what type a device has weights of a file's type. Kernels are compiled for device types only;
// what is another type in the file has the same values in one of them, and on the CPU the same
// sums, except for NVFP4.
#pragma once

#include "quant/traits.h"
#include "tensor/dtype.h"

namespace gen::cuda {

constexpr DType device_type(DType type) noexcept {
  switch (type) {
    case DType::kIQ2_S:  // taken apart they are alike
      return DType::kIQ2_XS;
    case DType::kTQ2_0:
      return DType::kTQ1_0;
    case DType::kQ1_0:  // d is theirs, and levels are few
    case DType::kQ2_0:
      return DType::kQ4_0;
    case DType::kNVFP4:  // six significant bits
      return DType::kF16;
    default:
      return type;
  }
}

/// Whether kernels read tiles of this type.
constexpr bool has_tiles(const quant::Traits& t) noexcept { return device_type(t.type) == t.type; }

/// Types whose blocks the host takes apart: they reach the device as quant::BlockParts. Codebooks
/// then stay on the host.
constexpr bool arrives_in_parts(DType type) noexcept {
  switch (device_type(type)) {
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kTQ1_0:
      return true;
    default:
      return false;
  }
}

}  // namespace gen::cuda

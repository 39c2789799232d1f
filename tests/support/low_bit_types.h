// SPDX-License-Identifier: Apache-2.0
// The types of few bits and those with codebooks: their encoders search long, so tests of products
// make blocks of random bytes instead, and products have them unpacked, which takes more memory.
#pragma once

#include <algorithm>
#include <iterator>

#include "tensor/dtype.h"

namespace gen::test {

inline constexpr DType kLowBitTypes[] = {
    DType::kIQ1_S, DType::kIQ1_M, DType::kIQ2_XXS, DType::kIQ2_XS, DType::kIQ2_S, DType::kIQ3_XXS,
    DType::kIQ3_S, DType::kTQ1_0, DType::kTQ2_0,   DType::kQ1_0,   DType::kQ2_0,  DType::kNVFP4,
};

inline bool is_low_bit(DType type) {
  return std::find(std::begin(kLowBitTypes), std::end(kLowBitTypes), type) !=
         std::end(kLowBitTypes);
}

}  // namespace gen::test

// SPDX-License-Identifier: Apache-2.0
// Weight formats: the scalar reference decoder and encoder of each, which are the oracle of every
// faster path. A format is one file (its block struct, decode, encode) and one row of the table in
// format.cpp. Block sizes are those of tensor/dtype.h. Read next: q8_0.h for the simplest block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace gen::quant {

/// One weight format. `n` is a multiple of the type's block_elements; blocks need no alignment.
/// Threads: both functions are pure.
struct Format {
  DType type;
  /// Writes the n floats that `blocks` stand for.
  void (*decode)(const std::byte* blocks, float* out, int64_t n);
  /// Writes the blocks that stand for n finite floats. Magnitudes beyond the format saturate.
  void (*encode)(const float* x, std::byte* blocks, int64_t n);
};

/// nullptr for a type without a codec.
const Format* find_format(DType type) noexcept;

}  // namespace gen::quant

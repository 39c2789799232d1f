// SPDX-License-Identifier: Apache-2.0
// Weight formats: the scalar reference decoder and encoder of each, which are the oracle of every
// faster path. A quantised format is a row of traits.h, one file (its block struct, unpack, encode)
// and one row of the table in format.cpp; its decoder is the one of decode.h. Block sizes are those
// of tensor/dtype.h. Read next: q8_0.h for the simplest block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/traits.h"
#include "tensor/dtype.h"

namespace gen::quant {

/// One weight format. `n` is a multiple of the type's block_elements; blocks need no alignment.
/// Threads: all functions are pure.
struct Format {
  DType type;
  /// Writes the n floats of `blocks`.
  void (*decode)(const std::byte* blocks, float* out, int64_t n);
  /// Writes the blocks of n finite floats. Magnitudes beyond the format saturate. `importance` is
  /// null or has n numbers: what the squared errors of the weights count, beside what the type
  /// itself counts. Only proportions in a block matter.
  void (*encode_by)(const float* x, const float* importance, std::byte* blocks, int64_t n);
  /// Splits one block into its parts; nullptr for plain types. Writes the codes of the block's
  /// elements and the other parts that the type has, and leaves the rest of `parts` unchanged.
  void (*unpack)(const std::byte* block, BlockParts& parts);

  /// All weights count alike, or as the type does that.
  void encode(const float* x, std::byte* blocks, int64_t n) const {
    encode_by(x, nullptr, blocks, n);
  }
};

/// All of them.
std::span<const Format> formats() noexcept;
/// nullptr for a type without a codec.
const Format* find_format(DType type) noexcept;

}  // namespace gen::quant

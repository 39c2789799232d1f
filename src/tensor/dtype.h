// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, numbered as GGUF numbers them, with the size of a block. A block is the
// smallest run of elements along a row that can be stored: one element for plain types. The codecs
// are in quant/; names and sizes are here so that a file can be checked without them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen {

enum class DType : int32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct DTypeInfo {
  DType type;
  const char* name;         // as users of GGUF files write it, "Q4_K"
  uint32_t block_elements;  // elements in a block
  uint32_t block_bytes;     // bytes of a block
};

/// nullptr for a number that no known file format uses.
const DTypeInfo* dtype_info(DType type) noexcept;

/// As in DTypeInfo; "unknown" for numbers without an entry.
const char* dtype_name(DType type) noexcept;

/// Bytes of a row of `elements`; false if the type is unknown, `elements` is not a whole number of
/// blocks, or the size overflows.
[[nodiscard]] bool dtype_row_bytes(DType type, uint64_t elements, uint64_t* bytes) noexcept;

}  // namespace gen

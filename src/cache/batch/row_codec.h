// SPDX-License-Identifier: Apache-2.0
// Rows of float32 stored as an element type of tensor/dtype.h. Blocks of quantised types run along
// a row; its last block is padded with zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace gen::cache {

/// Types that rows may be stored as; the first is the default.
inline constexpr DType kRowTypes[] = {DType::kF16, DType::kF32, DType::kQ8_0, DType::kQ4_0};
/// One of them.
bool keeps_rows(DType type) noexcept;
/// Bytes of a row of n elements, or 0 if that overflows.
size_t row_bytes(DType type, size_t n) noexcept;
void encode_row(DType type, const float* x, size_t n, std::byte* row) noexcept;
void decode_row(DType type, const std::byte* row, size_t n, float* x) noexcept;
/// The first element that the type cannot keep because it is not finite, or n.
size_t first_unfit(DType type, const float* x, size_t n) noexcept;

}  // namespace gen::cache

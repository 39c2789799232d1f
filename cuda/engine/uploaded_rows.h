// SPDX-License-Identifier: Apache-2.0
// Rows of a file as they are uploaded: as they lie, or as blocks of their device type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace gen::cuda {

/// Whether rows of this type are uploaded as they lie in a file.
bool uploads_as_stored(DType type) noexcept;
/// Size of an uploaded row of `cols` elements, whole blocks of the type.
size_t uploaded_row_bytes(DType type, int64_t cols) noexcept;
/// Writes a row of the file, of a type that is not uploaded as it lies.
void write_uploaded_row(DType type, const std::byte* row, int64_t cols, std::byte* to) noexcept;

}  // namespace gen::cuda

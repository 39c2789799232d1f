// SPDX-License-Identifier: Apache-2.0
// Transposes 16 contiguous rows into the lines of a tile, in which rows are interleaved. It only
// moves bytes, so one body with registers of 16 bytes serves every CPU level. It runs at the speed
// of memory, which weights that are packed on each use need.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine::cpu {

/// Word w of row r, 4 bytes, goes to out + w * 64 + r * 4, with `flip` applied to its bits (xor).
/// Rows begin at any address, `row_bytes` apart; `out` is aligned to 16 bytes. `rows` is 1 to 16;
/// elements of the other rows are not written.
void transpose_words(const std::byte* from, size_t row_bytes, size_t rows, size_t n_words,
                     uint32_t flip, std::byte* out) noexcept;

/// The same of elements of 2 bytes: element c of row r goes to out + c * 32 + r * 2.
void transpose_halves(const std::byte* from, size_t row_bytes, size_t rows, size_t n,
                      std::byte* out) noexcept;

}  // namespace gen::engine::cpu

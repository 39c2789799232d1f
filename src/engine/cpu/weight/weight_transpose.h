// SPDX-License-Identifier: Apache-2.0
// Turns 16 rows, one after another in memory, into lines of a tile, in which the rows lie side by
// side. Only bytes move, so one body serves every CPU level: registers of 16 bytes,
// which the packing of weights left in a file needs at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gen::engine::cpu {

/// Word w of row r, 4 bytes, goes to out + w * 64 + r * 4, with `flip` applied to its bits (xor).
/// Rows start at any address, `row_bytes` apart; `out` is aligned to 16 bytes. There are `rows` of
/// them, 1 to 16; what belongs to others is left as it was.
void transpose_words(const std::byte* from, size_t row_bytes, size_t rows, size_t n_words,
                     uint32_t flip, std::byte* out) noexcept;

/// The same of elements of 2 bytes: element c of row r goes to out + c * 32 + r * 2.
void transpose_halves(const std::byte* from, size_t row_bytes, size_t rows, size_t n,
                      std::byte* out) noexcept;

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Packed rows, the input of products. The float32 row always comes first, since the other forms are
// computed from it. The requested forms follow, each aligned to 64 bytes:
//   kActQ8    int8 q[C], then {float scale, int32 sum of q} of each block of 32
//   kActQ8K   int8 q[C], then float scale of each block of 256, then int32 sum of each 16 q
// Rows in bfloat16 (Activations::bf16) take the place of the float32 row and have no other form.
// x = q * scale. Rounding is as in engine/cpu/pack/activations.h, with the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops.h"

namespace gen::cuda {

constexpr size_t round_up_64(size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

/// Byte offsets of the forms in a row; 0 for a form that is absent.
struct RowLayout {
  size_t q8 = 0;
  size_t q8_pairs = 0;
  size_t q8k = 0;
  size_t q8k_scales = 0;
  size_t q8k_sums = 0;
  size_t bytes = 0;
};
constexpr RowLayout row_layout(uint32_t forms, int64_t cols) noexcept {
  const auto n = static_cast<size_t>(cols);
  RowLayout at;
  at.bytes = round_up_64(n * sizeof(float));
  if ((forms & engine::kActQ8) != 0) {
    at.q8 = at.bytes;
    at.q8_pairs = at.q8 + round_up_64(n);
    at.bytes = at.q8_pairs + round_up_64(n / 32 * 8);
  }
  if ((forms & engine::kActQ8K) != 0) {
    at.q8k = at.bytes;
    at.q8k_scales = at.q8k + round_up_64(n);
    at.q8k_sums = at.q8k_scales + round_up_64(n / 256 * sizeof(float));
    at.bytes = at.q8k_sums + round_up_64(n / 16 * sizeof(int32_t));
  }
  return at;
}

/// engine::Activations with a pointer instead of an address.
struct PackedRows {
  uint8_t* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  RowLayout at;
  bool bf16 = false;
};
inline PackedRows packed_rows(const engine::Activations& of) noexcept {
  RowLayout at = row_layout(of.forms, of.cols);
  if (of.bf16) at = {0, 0, 0, 0, 0, at.bytes};
  return {reinterpret_cast<uint8_t*>(of.data.address()), of.rows, of.cols, at, of.bf16};
}

}  // namespace gen::cuda

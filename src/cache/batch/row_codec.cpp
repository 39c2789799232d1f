// SPDX-License-Identifier: Apache-2.0
// See row_codec.h.
#include "cache/batch/row_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "quant/format.h"
#include "tensor/half.h"

namespace gen::cache {

bool keeps_rows(DType type) noexcept {
  return std::find(std::begin(kRowTypes), std::end(kRowTypes), type) != std::end(kRowTypes);
}

size_t row_bytes(DType type, size_t n) noexcept {
  const DTypeInfo& info = *dtype_info(type);
  const size_t blocks = n / info.block_elements + (n % info.block_elements != 0 ? 1 : 0);
  size_t bytes = 0;
  return checked_mul(blocks, info.block_bytes, &bytes) ? bytes : 0;
}

void encode_row(DType type, const float* x, size_t n, std::byte* row) noexcept {
  if (type == DType::kF16) {  // infinity if out of range, as in other caches; weights saturate
    for (size_t i = 0; i < n; ++i) {
      const uint16_t half = f32_to_f16(x[i]);
      std::memcpy(row + i * sizeof(half), &half, sizeof(half));
    }
    return;
  }
  const DTypeInfo& info = *dtype_info(type);
  const quant::Format& format = *quant::find_format(type);
  const size_t whole = n / info.block_elements * info.block_elements;
  format.encode(x, row, static_cast<int64_t>(whole));
  if (whole == n) return;
  float last[32] = {};
  std::copy(x + whole, x + n, last);
  format.encode(last, row + whole / info.block_elements * info.block_bytes, 32);
}

void decode_row(DType type, const std::byte* row, size_t n, float* x) noexcept {
  const DTypeInfo& info = *dtype_info(type);
  const quant::Format& format = *quant::find_format(type);
  const size_t whole = n / info.block_elements * info.block_elements;
  format.decode(row, x, static_cast<int64_t>(whole));
  if (whole == n) return;
  float last[32];
  format.decode(row + whole / info.block_elements * info.block_bytes, last, 32);
  std::copy_n(last, n - whole, x + whole);
}

size_t first_unfit(DType type, const float* x, size_t n) noexcept {
  if (type == DType::kF32 || type == DType::kF16) return n;
  return static_cast<size_t>(
      std::find_if(x, x + n, [](float value) { return !std::isfinite(value); }) - x);
}

}  // namespace gen::cache

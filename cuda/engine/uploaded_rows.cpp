// SPDX-License-Identifier: Apache-2.0
// See uploaded_rows.h.
#include "cuda/engine/uploaded_rows.h"

#include <cstring>

#include "cuda/ops/weight/device_type.h"
#include "quant/decode.h"
#include "quant/format.h"
#include "quant/q4_0.h"

namespace gen::cuda {
namespace {

using quant::BlockParts;
using quant::Format;
using quant::Traits;

void write_parts(const Format& format, const std::byte* row, int64_t blocks,
                 std::byte* to) noexcept {
  const size_t bytes = dtype_info(format.type)->block_bytes;
  BlockParts parts = {};
  for (int64_t b = 0; b < blocks; ++b, row += bytes, to += sizeof(parts)) {
    format.unpack(row, parts);
    std::memcpy(to, &parts, sizeof(parts));
  }
}

void write_q4_0(const Format& format, const std::byte* row, int64_t blocks,
                std::byte* to) noexcept {
  const Traits& traits = *quant::find_traits(format.type);
  const size_t bytes = dtype_info(format.type)->block_bytes;
  BlockParts parts = {};
  for (int64_t b = 0; b < blocks; ++b, row += bytes) {
    format.unpack(row, parts);
    for (int first = 0; first < traits.stored; first += 32, to += sizeof(quant::Q4_0Block)) {
      quant::Q4_0Block block = {};
      block.d = parts.run_d[first / 32];
      const auto code = [&](int i) { return quant::level_of(traits, parts.codes[first + i]) + 8; };
      for (int i = 0; i < 16; ++i) {
        block.qs[i] = static_cast<uint8_t>(code(i) | (code(i + 16) << 4));
      }
      std::memcpy(to, &block, sizeof(block));
    }
  }
}

void write_f16(const Format& format, const std::byte* row, int64_t blocks, std::byte* to) noexcept {
  constexpr int64_t kMost = 256;
  float values[kMost];
  const DTypeInfo& info = *dtype_info(format.type);
  for (int64_t b = 0; b < blocks; ++b, row += info.block_bytes, to += 2 * info.block_elements) {
    format.decode(row, values, info.block_elements);
    quant::find_format(DType::kF16)->encode(values, to, info.block_elements);
  }
}

}  // namespace

bool uploads_as_stored(DType type) noexcept {
  return device_type(type) == type && !arrives_in_parts(type);
}

size_t uploaded_row_bytes(DType type, int64_t cols) noexcept {
  if (arrives_in_parts(type)) return static_cast<size_t>(cols / 256) * sizeof(BlockParts);
  uint64_t bytes = 0;
  return dtype_row_bytes(device_type(type), static_cast<uint64_t>(cols), &bytes) ? bytes : 0;
}

void write_uploaded_row(DType type, const std::byte* row, int64_t cols, std::byte* to) noexcept {
  const Format& format = *quant::find_format(type);
  const int64_t blocks = cols / static_cast<int64_t>(dtype_info(type)->block_elements);
  if (arrives_in_parts(type)) {
    write_parts(format, row, blocks, to);
  } else if (device_type(type) == DType::kF16) {
    write_f16(format, row, blocks, to);
  } else {
    write_q4_0(format, row, blocks, to);
  }
}

}  // namespace gen::cuda

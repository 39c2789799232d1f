// SPDX-License-Identifier: Apache-2.0
// q4: groups of 32 elements of a head, each with a binary16 scale: value = (n - 8) * scale, n in
// [0, 15], where the element of the largest magnitude becomes -8 * scale. 4.5 bits a value for
// heads of whole groups. (The [batch, seq, dim] form of the C API is another, see quant/kv_q4.h.)
//
// A tile is [groups][16] scales, then the codes. Keys: byte [d / 2][16], even d in the low half.
// Values: 16 bytes for each group of an entry, byte j elements j (low half) and j + 16 of it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/kv/codec.h"
#include "tensor/half.h"

namespace gen::engine {
namespace {

constexpr size_t kGroup = 32;

size_t groups(size_t head_dim) { return (head_dim + kGroup - 1) / kGroup; }
size_t scale_bytes(size_t head_dim) { return groups(head_dim) * kKvTile * sizeof(uint16_t); }

size_t tile_bytes(KvOrder order, size_t head_dim) {
  const size_t bytes =
      order == KvOrder::kKeys ? (head_dim + 1) / 2 : groups(head_dim) * (kGroup / 2);
  return scale_bytes(head_dim) + kKvTile * bytes;
}

KvStripes stripes(KvOrder order, size_t head_dim) {
  const KvStripe codes = order == KvOrder::kKeys ? KvStripe{(head_dim + 1) / 2, 1}
                                                 : KvStripe{1, groups(head_dim) * (kGroup / 2)};
  return {{{groups(head_dim), sizeof(uint16_t)}, codes}};
}

/// The scale's bits, and the codes of up to 32 elements; those past n are 8, which is 0.
uint16_t encode(const float* x, size_t n, uint8_t* codes) {
  float largest = 0.0F;
  for (size_t i = 0; i < n; ++i) {
    if (!(std::fabs(x[i]) <= std::fabs(largest))) largest = x[i];
    if (std::isnan(largest)) break;
  }
  // One canonical NaN, since the payload after a division differs between machines.
  const uint16_t half = std::isnan(largest)
                            ? uint16_t{0x7E00}
                            : f32_to_f16(std::clamp(largest / -8.0F, -65504.0F, 65504.0F));
  const float scale = f16_to_f32(half);
  std::fill_n(codes, kGroup, uint8_t{8});
  if (scale == 0.0F) return half;
  for (size_t i = 0; i < n; ++i) {
    // Rounds half up. NaN becomes 15 here; the scale makes it NaN again.
    const float level = std::floor(x[i] / scale + 8.5F);
    codes[i] = static_cast<uint8_t>(level <= 0.0F ? 0.0F : level < 15.0F ? level : 15.0F);
  }
  return half;
}

struct Code {
  uint8_t* byte;
  int32_t shift;
};

Code code_at(const KvSide& side, std::byte* tile, size_t lane, size_t d) {
  const auto dim = static_cast<size_t>(side.head_dim);
  auto* codes = reinterpret_cast<uint8_t*>(tile + scale_bytes(dim));
  if (side.order == KvOrder::kKeys) return {codes + d / 2 * kKvTile + lane, d % 2 != 0 ? 4 : 0};
  uint8_t* group = codes + (lane * groups(dim) + d / kGroup) * (kGroup / 2);
  const size_t j = d % kGroup;
  return {group + j % 16, j >= 16 ? 4 : 0};
}

void put(const KvSide& side, const KvPlace& place, int32_t heads, const float* row) {
  const auto dim = static_cast<size_t>(side.head_dim);
  const auto lane = static_cast<size_t>(place.lane);
  for (int32_t head = 0; head < heads; ++head, row += dim) {
    std::byte* tile = kv_tile(side, place, head);
    for (size_t g = 0; g < groups(dim); ++g) {
      uint8_t codes[kGroup];
      const size_t n = std::min(kGroup, dim - g * kGroup);
      const uint16_t scale = encode(row + g * kGroup, n, codes);
      std::memcpy(tile + (g * kKvTile + lane) * sizeof(scale), &scale, sizeof(scale));
      // Padding codes are written, too, since saved states are copies of these bytes.
      const size_t written = side.order == KvOrder::kKeys ? n + n % 2 : kGroup;
      for (size_t i = 0; i < written; ++i) {
        const Code to = code_at(side, tile, lane, g * kGroup + i);
        const int32_t kept = *to.byte & (to.shift != 0 ? 0x0F : 0xF0);
        *to.byte = static_cast<uint8_t>(kept | (codes[i] << to.shift));
      }
    }
  }
}

void get(const KvSide& side, const KvPlace& place, int32_t head, float* out) {
  const auto dim = static_cast<size_t>(side.head_dim);
  const auto lane = static_cast<size_t>(place.lane);
  std::byte* tile = kv_tile(side, place, head);
  for (size_t d = 0; d < dim; ++d) {
    uint16_t scale = 0;
    std::memcpy(&scale, tile + (d / kGroup * kKvTile + lane) * sizeof(scale), sizeof(scale));
    const Code code = code_at(side, tile, lane, d);
    const float s = f16_to_f32(scale);
    // As in the kernels: code 8 gives +0 whatever the scale's sign.
    out[d] = std::fma(static_cast<float>((*code.byte >> code.shift) & 15), s, -8.0F * s);
  }
}

}  // namespace

const KvCodec kQ4Codec = {tile_bytes, nullptr, nullptr, put, get, stripes};

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// See codec.h.
#include "engine/kv/codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gen::engine {

const KvCodec& kv_codec(KvFormat format) noexcept {
  switch (format) {
    case KvFormat::kF32:
      return kF32Codec;
    case KvFormat::kF16:
      return kF16Codec;
    case KvFormat::kFp8:
      return kFp8Codec;
    case KvFormat::kQ4:
      return kQ4Codec;
    case KvFormat::kQ3:
      break;
  }
  return kQ3Codec;
}

std::byte* kv_shared(const KvSide& side, const KvPlace& place, int32_t head) noexcept {
  const KvCodec& codec = kv_codec(side.format);
  if (codec.shared_offset == nullptr) return nullptr;
  return place.shared +
         codec.shared_offset(static_cast<size_t>(head), static_cast<size_t>(side.head_dim));
}

void kv_put(const KvSide& side, int64_t entry, int32_t heads, const float* row) noexcept {
  kv_codec(side.format).put(side, side.place(entry), heads, row);
}

void kv_get(const KvSide& side, int64_t entry, int32_t head, float* out) noexcept {
  kv_codec(side.format).get(side, side.place(entry), head, out);
}

void kv_copy(const KvSide& from, const KvSide& to, int32_t heads, int64_t entries) noexcept {
  const KvCodec& codec = kv_codec(from.format);
  const auto dim = static_cast<size_t>(from.head_dim);
  const size_t bytes = codec.tile_bytes(from.order, dim);
  for (int64_t e = 0; e < entries;) {
    const KvPlace source = from.place(e);
    const KvPlace target = to.place(e);
    for (int32_t head = 0; head < heads; ++head) {
      std::memcpy(kv_tile(to, target, head), kv_tile(from, source, head), bytes);
    }
    if (codec.shared_bytes != nullptr) {
      std::memcpy(target.shared, source.shared,
                  codec.shared_bytes(static_cast<size_t>(heads), dim));
    }
    int64_t step = kKvTile;
    if (from.blocks != nullptr) {
      step = std::min<int64_t>(step, from.block_size - e % from.block_size);
    }
    e += step;
  }
}

bool kv_hadamard_fits(int32_t n) noexcept { return n % 16 == 0; }

void kv_hadamard(float* x, int32_t n) noexcept {
  const int32_t block = n & -n;  // the lowest bit
  const float factor = 1.0F / std::sqrt(static_cast<float>(block));
  for (float* at = x; at < x + n; at += block) {
    for (int32_t half = 1; half < block; half *= 2) {
      for (int32_t i = 0; i < block; i += 2 * half) {
        for (int32_t j = i; j < i + half; ++j) {
          const float a = at[j];
          const float b = at[j + half];
          at[j] = a + b;
          at[j + half] = a - b;
        }
      }
    }
    for (int32_t i = 0; i < block; ++i) at[i] *= factor;
  }
}

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// fp32 and fp16: elements as they are, or rounded to nearest even.
#include <cstring>

#include "engine/kv/codec.h"
#include "tensor/half.h"

namespace gen::engine {
namespace {

float decode(float x) { return x; }
float decode(uint16_t half) { return f16_to_f32(half); }
void encode(float x, float* to) { *to = x; }
void encode(float x, uint16_t* to) { *to = f32_to_f16(x); }

template <typename E>
size_t tile_bytes(KvOrder, size_t head_dim) {
  return kKvTile * sizeof(E) * head_dim;
}

template <typename E>
KvStripes stripes(KvOrder order, size_t head_dim) {
  if (order == KvOrder::kKeys) return {{{head_dim, sizeof(E)}, {}}};
  return {{{1, head_dim * sizeof(E)}, {}}};
}

/// Bytes from a tile's start to element d of a lane.
template <typename E>
size_t offset(const KvSide& side, int32_t lane, size_t d) {
  const auto i = static_cast<size_t>(lane);
  const auto dim = static_cast<size_t>(side.head_dim);
  return (side.order == KvOrder::kKeys ? d * kKvTile + i : i * dim + d) * sizeof(E);
}

template <typename E>
void put(const KvSide& side, const KvPlace& place, int32_t heads, const float* row) {
  for (int32_t head = 0; head < heads; ++head, row += side.head_dim) {
    std::byte* tile = kv_tile(side, place, head);
    for (size_t d = 0; d < static_cast<size_t>(side.head_dim); ++d) {
      E element;
      encode(row[d], &element);
      std::memcpy(tile + offset<E>(side, place.lane, d), &element, sizeof(E));
    }
  }
}

template <typename E>
void get(const KvSide& side, const KvPlace& place, int32_t head, float* out) {
  const std::byte* tile = kv_tile(side, place, head);
  for (size_t d = 0; d < static_cast<size_t>(side.head_dim); ++d) {
    E element;
    std::memcpy(&element, tile + offset<E>(side, place.lane, d), sizeof(E));
    out[d] = decode(element);
  }
}

}  // namespace

const KvCodec kF32Codec = {tile_bytes<float>, nullptr,    nullptr,
                           put<float>,        get<float>, stripes<float>};
const KvCodec kF16Codec = {tile_bytes<uint16_t>, nullptr,       nullptr,
                           put<uint16_t>,        get<uint16_t>, stripes<uint16_t>};

}  // namespace gen::engine

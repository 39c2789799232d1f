// SPDX-License-Identifier: Apache-2.0
// q3: groups of up to 256 elements of an entry, spanning as many whole heads as fit, each with
// eight binary16 centroids of its own, see quant/kv_q3.h. 3 + 128 / group bits a value.
//
// The shared data of a tile is [groups][8][16] centroids. A head's tile has three bytes for eight
// elements, element i in bits 3i to 3i + 2: byte k of elements [8o, 8o + 8) is at [o][k][16] for
// keys, at [16][o][k] for values. Heads whose size is not a multiple of eight are padded.
#include "quant/kv_q3.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/kv/codec.h"
#include "tensor/half.h"

namespace gen::engine {
namespace {

using quant::kKvQ3Centroids;
using quant::kKvQ3Group;

constexpr size_t kGroupBytes = kKvQ3Centroids * kKvTile * sizeof(uint16_t);

/// Heads in a group, or groups in a head: one of them is 1.
size_t heads_of_group(size_t dim) { return std::max<size_t>(kKvQ3Group / dim, 1); }
size_t groups_of_head(size_t dim) { return (dim + kKvQ3Group - 1) / kKvQ3Group; }
size_t octets(size_t dim) { return (dim + 7) / 8; }

size_t tile_bytes(KvOrder, size_t head_dim) { return 3 * kKvTile * octets(head_dim); }

KvStripes stripes(KvOrder order, size_t head_dim) {
  const size_t bytes = 3 * octets(head_dim);
  return {{order == KvOrder::kKeys ? KvStripe{bytes, 1} : KvStripe{1, bytes}, {}}};
}

size_t shared_bytes(size_t heads, size_t head_dim) {
  const size_t together = heads_of_group(head_dim);
  return (heads + together - 1) / together * groups_of_head(head_dim) * kGroupBytes;
}

size_t shared_offset(size_t head, size_t head_dim) {
  return head / heads_of_group(head_dim) * groups_of_head(head_dim) * kGroupBytes;
}

uint8_t* code_byte(const KvSide& side, std::byte* tile, size_t lane, size_t octet, size_t k) {
  auto* codes = reinterpret_cast<uint8_t*>(tile);
  if (side.order == KvOrder::kKeys) return codes + (3 * octet + k) * kKvTile + lane;
  return codes + lane * 3 * octets(static_cast<size_t>(side.head_dim)) + 3 * octet + k;
}

uint32_t index_at(const uint8_t* codes, size_t i) {
  const size_t bit = 3 * i;
  const uint32_t low = codes[bit / 8];
  const uint32_t high = bit % 8 > 5 ? codes[bit / 8 + 1] : 0;
  return ((low | high << 8) >> (bit % 8)) & 7;
}

/// The `n` elements of a head from `first` on have codes[from...].
void put_codes(const KvSide& side, std::byte* tile, size_t lane, size_t first, size_t n,
               const uint8_t* codes, size_t from) {
  for (size_t i = 0; i < n; i += 8) {
    uint32_t bits = 0;
    for (size_t j = 0; j < std::min<size_t>(8, n - i); ++j) {
      bits |= index_at(codes, from + i + j) << (3 * j);
    }
    for (size_t k = 0; k < 3; ++k) {
      *code_byte(side, tile, lane, (first + i) / 8, k) = static_cast<uint8_t>(bits >> (8 * k));
    }
  }
}

void put_centroids(std::byte* group, size_t lane, const uint16_t* centroids) {
  for (size_t c = 0; c < kKvQ3Centroids; ++c) {
    std::memcpy(group + (c * kKvTile + lane) * sizeof(uint16_t), centroids + c, sizeof(uint16_t));
  }
}

void put(const KvSide& side, const KvPlace& place, int32_t heads, const float* row) {
  const auto dim = static_cast<size_t>(side.head_dim);
  const auto lane = static_cast<size_t>(place.lane);
  const auto n_heads = static_cast<size_t>(heads);
  const size_t together = heads_of_group(dim);
  uint16_t centroids[kKvQ3Centroids];
  uint8_t codes[quant::kv_q3_bytes(kKvQ3Group)];
  for (size_t head = 0; head < n_heads; head += together) {
    const size_t here = std::min(together, n_heads - head);
    const float* x = row + head * dim;
    std::byte* group = kv_shared(side, place, static_cast<int32_t>(head));
    for (size_t first = 0; first < here * dim; first += kKvQ3Group, group += kGroupBytes) {
      const size_t n = std::min(kKvQ3Group, here * dim - first);
      quant::kv_q3_encode(x + first, n, centroids, codes);
      // The fit treats NaN as 0. Store the NaN here, or a broken pass would go unnoticed.
      if (std::any_of(x + first, x + first + n, [](float v) { return std::isnan(v); })) {
        std::fill_n(centroids, kKvQ3Centroids, uint16_t{0x7E00});
      }
      put_centroids(group, lane, centroids);
      if (together == 1) {
        put_codes(side, kv_tile(side, place, static_cast<int32_t>(head)), lane, first, n, codes, 0);
        continue;
      }
      for (size_t i = 0; i < here; ++i) {
        put_codes(side, kv_tile(side, place, static_cast<int32_t>(head + i)), lane, 0, dim, codes,
                  i * dim);
      }
    }
  }
}

void get(const KvSide& side, const KvPlace& place, int32_t head, float* out) {
  const auto dim = static_cast<size_t>(side.head_dim);
  const auto lane = static_cast<size_t>(place.lane);
  std::byte* tile = kv_tile(side, place, head);
  const std::byte* groups = kv_shared(side, place, head);
  for (size_t d = 0; d < dim; ++d) {
    uint8_t bytes[3];
    for (size_t k = 0; k < 3; ++k) bytes[k] = *code_byte(side, tile, lane, d / 8, k);
    const uint32_t c = index_at(bytes, d % 8);
    uint16_t half = 0;
    const size_t group = dim > kKvQ3Group ? d / kKvQ3Group : 0;
    std::memcpy(&half, groups + group * kGroupBytes + (c * kKvTile + lane) * sizeof(half),
                sizeof(half));
    out[d] = f16_to_f32(half);
  }
}

}  // namespace

const KvCodec kQ3Codec = {tile_bytes, shared_bytes, shared_offset,   put,
                          get,        stripes,      sizeof(uint16_t)};

}  // namespace gen::engine

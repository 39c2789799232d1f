// SPDX-License-Identifier: Apache-2.0
// fp8: E4M3 with a float32 scale for each head of an entry, quant/kv_fp8.h. A tile is 16 scales,
// then the codes, [d][16] for keys and [16][d] for values: 8 + 32 / head_dim bits a value.
#include "quant/kv_fp8.h"

#include <algorithm>
#include <cstring>

#include "engine/kv/codec.h"

namespace gen::engine {
namespace {

constexpr size_t kScaleBytes = kKvTile * sizeof(float);
/// Codes processed at once, so that a head needs no heap memory.
constexpr size_t kStep = 256;

size_t tile_bytes(KvOrder, size_t head_dim) { return kScaleBytes + kKvTile * head_dim; }

KvStripes stripes(KvOrder order, size_t head_dim) {
  const KvStripe codes = order == KvOrder::kKeys ? KvStripe{head_dim, 1} : KvStripe{1, head_dim};
  return {{{1, sizeof(float)}, codes}};
}

void put(const KvSide& side, const KvPlace& place, int32_t heads, const float* row) {
  const auto dim = static_cast<size_t>(side.head_dim);
  const auto lane = static_cast<size_t>(place.lane);
  for (int32_t head = 0; head < heads; ++head, row += dim) {
    std::byte* tile = kv_tile(side, place, head);
    auto* codes = reinterpret_cast<uint8_t*>(tile + kScaleBytes);
    float scale = 0.0F;
    if (side.order == KvOrder::kValues) {
      scale = quant::kv_fp8_encode(row, dim, codes + lane * dim);
    } else {
      scale = quant::kv_fp8_scale(row, dim);
      uint8_t part[kStep];
      for (size_t at = 0; at < dim; at += kStep) {
        const size_t n = std::min(kStep, dim - at);
        quant::kv_fp8_encode_with(row + at, n, scale, part);
        for (size_t d = 0; d < n; ++d) codes[(at + d) * kKvTile + lane] = part[d];
      }
    }
    std::memcpy(tile + lane * sizeof(float), &scale, sizeof(scale));
  }
}

void get(const KvSide& side, const KvPlace& place, int32_t head, float* out) {
  const auto dim = static_cast<size_t>(side.head_dim);
  const auto lane = static_cast<size_t>(place.lane);
  const std::byte* tile = kv_tile(side, place, head);
  const auto* codes = reinterpret_cast<const uint8_t*>(tile + kScaleBytes);
  float scale = 0.0F;
  std::memcpy(&scale, tile + lane * sizeof(float), sizeof(scale));
  if (side.order == KvOrder::kValues) {
    quant::kv_fp8_decode(codes + lane * dim, dim, scale, out);
    return;
  }
  for (size_t d = 0; d < dim; ++d) {
    quant::kv_fp8_decode(codes + d * kKvTile + lane, 1, scale, out + d);
  }
}

}  // namespace

const KvCodec kFp8Codec = {tile_bytes, nullptr, nullptr, put, get, stripes};

}  // namespace gen::engine

// SPDX-License-Identifier: Apache-2.0
// KV caches for kernels: the address of an entry of a layer (engine/kv_layer.h, tiles of sixteen
// entries), and reads of single elements in any format. The layout is that of engine/kv/*.cpp.
//   keys     sums of query times levels are scaled by scale_of_key() per group, see dot_key()
//   values   a weight is multiplied with the scale before the levels, see add_value()
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/ops/device.cuh"
#include "engine/kv_layer.h"

namespace gen::cuda {

using engine::KvFormat;
using engine::KvOrder;
using engine::KvSideForm;

constexpr int32_t kTile = engine::kKvTile;
constexpr int32_t kQ4Group = 32;
constexpr int32_t kQ3Group = 256;
constexpr int32_t kQ3Centroids = 8;
constexpr int32_t kQ3GroupBytes = kQ3Centroids * kTile * 2;

/// The address of entry e of a sequence: its block, and the place in the block.
struct Blocks {
  const uint64_t* blocks;  // addresses
  const int32_t* cells;
  int32_t first_cell;
  int32_t block_size;
};

/// One entry of one side: head 0's tile, the shared data of the tile, and the lane.
struct KvPlace {
  uint8_t* tile;
  uint8_t* shared;
  int32_t lane;
};

GEN_DEVICE KvPlace place_of(const KvSideForm& form, const Blocks& at, int32_t entry) {
  if (at.cells != nullptr) entry = at.cells[entry - at.first_cell];
  auto* const first = reinterpret_cast<uint8_t*>(at.blocks[entry / at.block_size]) +
                      static_cast<int64_t>(form.block_offset);
  const int32_t within = entry % at.block_size;
  const size_t tile = static_cast<size_t>(within / kTile);
  KvPlace place;
  place.tile = first + tile * form.tile_stride;
  place.shared =
      form.shared_stride != 0 ? first + form.shared_offset + tile * form.shared_stride : nullptr;
  place.lane = within % kTile;
  return place;
}

/// The place as one head sees it; q3 has groups of several heads, or several in a head.
GEN_DEVICE KvPlace head_place(const KvSideForm& form, KvPlace place, int32_t head) {
  place.tile += static_cast<size_t>(head) * form.head_stride;
  if (form.format == KvFormat::kQ3) {
    const int32_t dim = form.head_dim;
    const int32_t together = dim < kQ3Group ? kQ3Group / dim : 1;
    const int32_t groups = (dim + kQ3Group - 1) / kQ3Group;
    place.shared += static_cast<size_t>(head / together * groups) * kQ3GroupBytes;
  }
  return place;
}

GEN_DEVICE Blocks blocks_of(const engine::KvLayer& layer, const engine::KvRows& rows) {
  Blocks at;
  at.blocks = reinterpret_cast<const uint64_t*>(rows.blocks.address());
  at.cells = reinterpret_cast<const int32_t*>(rows.cells.address());
  at.first_cell = rows.first_cell;
  at.block_size = layer.block_size;
  return at;
}

GEN_DEVICE float load_float(const uint8_t* at) { return *reinterpret_cast<const float*>(at); }
GEN_DEVICE float load_half(const uint8_t* at) {
  return f16_to_f32(*reinterpret_cast<const uint16_t*>(at));
}

GEN_DEVICE int32_t groups_of(int32_t dim, int32_t group) { return (dim + group - 1) / group; }

/// E4M3 as in tensor/e4m3.h.
GEN_DEVICE float e4m3_value(uint32_t code) {
  const uint32_t magnitude = code & 0x7FU;
  const float value = magnitude < 8 ? static_cast<float>(magnitude) * 0x1p-9F
                                    : float_from_bits((magnitude + 960U) << 20);
  return (code & 0x80U) != 0 ? -value : value;
}
GEN_DEVICE uint8_t e4m3_code(float value) {
  const uint32_t bits = float_bits(value);
  const uint32_t sign = (bits >> 24) & 0x80U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x43E00000U) return static_cast<uint8_t>(sign | 0x7EU);
  if (magnitude < 0x3C800000U) {
    const float raised = float_from_bits(magnitude) * 0x1p9F + 0x1p23F;
    return static_cast<uint8_t>(sign | (float_bits(raised) & 0xFU));
  }
  const uint32_t odd = (magnitude >> 20) & 1U;
  return static_cast<uint8_t>(sign | (((magnitude + 0x7FFFFU + odd) >> 20) - 960U));
}

/// Elements that share a scale; a head for fp8. Plain formats and q3 have none.
GEN_DEVICE int32_t scale_group(KvFormat format, int32_t dim) {
  return format == KvFormat::kQ4 ? kQ4Group : dim;
}
GEN_DEVICE float scale_at(KvFormat format, const KvPlace& place, int32_t group) {
  if (format == KvFormat::kFp8) return load_float(place.tile + place.lane * 4);
  return load_half(place.tile + (group * kTile + place.lane) * 2);
}

/// Index of three bits of element d.
GEN_DEVICE int32_t q3_index(KvOrder order, const KvPlace& place, int32_t dim, int32_t d) {
  const int32_t octet = d / 8;
  const int32_t bit = 3 * (d % 8);
  const int32_t row = 3 * ((dim + 7) / 8);
  uint32_t bits = 0;
  for (int32_t k = bit / 8; k <= (bit + 2) / 8; ++k) {
    const int32_t at = order == KvOrder::kKeys ? (3 * octet + k) * kTile + place.lane
                                               : place.lane * row + 3 * octet + k;
    bits |= static_cast<uint32_t>(place.tile[at]) << (8 * k);
  }
  return static_cast<int32_t>((bits >> bit) & 7U);
}

/// Element d of a head: its value, or its level where the format has scales.
template <KvOrder kOrder>
GEN_DEVICE float level_at(KvFormat format, const KvPlace& place, int32_t dim, int32_t d) {
  constexpr bool kKeys = kOrder == KvOrder::kKeys;
  const int32_t lane = place.lane;
  const int32_t plain = kKeys ? d * kTile + lane : lane * dim + d;
  switch (format) {
    case KvFormat::kF32:
      return load_float(place.tile + static_cast<size_t>(plain) * 4);
    case KvFormat::kF16:
      return load_half(place.tile + static_cast<size_t>(plain) * 2);
    case KvFormat::kFp8:
      return e4m3_value(place.tile[kTile * 4 + plain]);
    case KvFormat::kQ4: {
      const int32_t groups = groups_of(dim, kQ4Group);
      const uint8_t* const codes = place.tile + groups * kTile * 2;
      const int32_t j = d % kQ4Group;
      const int32_t byte =
          kKeys ? d / 2 * kTile + lane : (lane * groups + d / kQ4Group) * (kQ4Group / 2) + j % 16;
      const bool high = kKeys ? d % 2 != 0 : j >= 16;
      return static_cast<float>(((codes[byte] >> (high ? 4 : 0)) & 15) - 8);
    }
    case KvFormat::kQ3:
      break;
  }
  const int32_t group = dim > kQ3Group ? d / kQ3Group : 0;
  const int32_t c = q3_index(kOrder, place, dim, d);
  return load_half(place.shared + static_cast<size_t>(group) * kQ3GroupBytes +
                   (c * kTile + lane) * 2);
}

/// Element d of a head as kv_get decodes it.
template <KvOrder kOrder>
GEN_DEVICE float element_at(KvFormat format, const KvPlace& place, int32_t dim, int32_t d) {
  const float level = level_at<kOrder>(format, place, dim, d);
  if (format == KvFormat::kFp8) return level * scale_at(format, place, 0);
  if (format == KvFormat::kQ4) {
    const float scale = scale_at(format, place, d / kQ4Group);
    return multiply_add(level + 8.0F, scale, -8.0F * scale);
  }
  return level;
}

}  // namespace gen::cuda

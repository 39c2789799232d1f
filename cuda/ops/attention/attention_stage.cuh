// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies of a chunk's keys and values to shared memory in their stored form, for
// float32 and float16. Copies run ahead of the arithmetic in pieces: some elements of the keys of
// all 256 slots, [element][272 slots], or the values of some slots, [slot][elements]. A piece of
// either is about 8.5 KiB.
//   If a tile of sixteen entries is sixteen slots it is copied whole, 16 bytes at a time. Otherwise
//   (entries in cells, or a first position that is not aligned) it is copied by elements.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/words.h"
#include "cuda/ops/attention/attention_view.cuh"

namespace gen::cuda {

/// float or uint16_t, the bits of a float16.
template <typename T>
GEN_DEVICE float widened(T bits) {
  if constexpr (sizeof(T) == 4) {
    return bits;
  } else {
    return f16_to_f32(bits);
  }
}

/// Two neighbouring elements in shared memory, the first of which is number 2 * `i`.
GEN_DEVICE void two_at(const Shared<float>& from, int32_t i, float* low, float* high) {
  const device::UInt2 bits = from.as<device::UInt2>()[i];
  *low = float_from_bits(bits.x);
  *high = float_from_bits(bits.y);
}
GEN_DEVICE void two_at(const Shared<uint16_t>& from, int32_t i, float* low, float* high) {
  const uint32_t bits = from.as<uint32_t>()[i];
  *low = f16_to_f32(static_cast<uint16_t>(bits & 0xFFFFU));
  *high = f16_to_f32(static_cast<uint16_t>(bits >> 16));
}

constexpr int32_t kChunkTiles = kChunk / kTile;
/// Row stride of a piece of keys: tiles of adjacent elements are in different banks.
constexpr int32_t kKeyStride = kChunk + 16;
/// Elements of a piece of keys.
template <typename T>
constexpr int32_t piece_elements() {
  return 32 / static_cast<int32_t>(sizeof(T));
}
constexpr size_t kKeyPieceBytes = 32 * static_cast<size_t>(kKeyStride);
constexpr size_t piece_bytes(int32_t v_dim, size_t element) noexcept {
  const size_t tile = static_cast<size_t>(kTile * v_dim) * element;
  return tile > kKeyPieceBytes ? tile : kKeyPieceBytes;
}
/// Slots of a piece of values; whole tiles.
template <typename T>
GEN_HOST_DEVICE int32_t piece_slots(int32_t v_dim) {
  const auto tile = static_cast<size_t>(kTile * v_dim) * sizeof(T);
  const auto slots = static_cast<int32_t>(piece_bytes(v_dim, sizeof(T)) / tile) * kTile;
  return slots < kChunk ? slots : kChunk;
}

/// Whether a layer's keys and values are both plain numbers of T.
template <typename T>
bool plain_layer(const engine::KvLayer& layer) noexcept {
  const KvFormat format = sizeof(T) == 4 ? KvFormat::kF32 : KvFormat::kF16;
  return layer.k.format == format && layer.v.format == format;
}

/// The slots of a chunk that are attended to.
struct Slots {
  int32_t from;
  int32_t to;
  [[nodiscard]] GEN_DEVICE bool has(int32_t slot) const { return slot >= from && slot < to; }
};

/// A chunk of a sequence for one kv head. Slot 0 is entry `base`.
struct StagedChunk {
  const engine::KvLayer& layer;
  Blocks blocks;
  int32_t kv_head;
  int32_t base;
  Slots seen;
  Shared<uint64_t> tiles;  // addresses: 16 of keys, 16 of values; 0 for tiles not attended to

  /// Whether tiles are copied whole. Blocks begin at multiples of 64.
  [[nodiscard]] GEN_DEVICE bool whole() const {
    const auto offsets = [](const KvSideForm& form) {
      return form.block_offset | form.tile_stride | form.head_stride;
    };
    return blocks.cells == nullptr && base % kTile == 0 && layer.block_size % kTile == 0 &&
           (offsets(layer.k) | offsets(layer.v)) % 16 == 0;
  }
  [[nodiscard]] GEN_DEVICE KvPlace place(const KvSideForm& form, int32_t slot) const {
    return head_place(form, place_of(form, blocks, base + slot), kv_head);
  }
  /// The entry of `tiles` for a lane of the first warp. It must be stored, followed by a barrier,
  /// before the functions below are called.
  [[nodiscard]] GEN_DEVICE uint64_t own_tile() const {
    static_assert(2 * kChunkTiles == 32);
    const int32_t first = lane_of_warp() % kChunkTiles * kTile;
    const KvSideForm& form = lane_of_warp() < kChunkTiles ? layer.k : layer.v;
    const bool any = whole() && first < seen.to && first + kTile > seen.from;
    return any ? reinterpret_cast<uint64_t>(place(form, first).tile) : 0;
  }
  GEN_DEVICE void find_tiles() const {
    if (warp_of_block() == 0) tiles[thread_x()] = own_tile();
  }

  /// Starts to copy n elements of keys from `first` on, at most a piece; zeros for tiles not
  /// attended to. Called by a block of kWarps warps.
  template <int32_t kWarps, typename T>
  GEN_DEVICE void copy_keys(int32_t first, int32_t n, const Shared<T>& to) const {
    if (!whole()) {
      for (int32_t slot = thread_x(); slot < kChunk; slot += kWarps * 32) {
        const bool has = seen.has(slot);
        const KvPlace key = has ? place(layer.k, slot) : KvPlace{};
        for (int32_t d = 0; d < n; ++d) {
          const int32_t at = (first + d) * kTile + key.lane;
          to[d * kKeyStride + slot] = has ? reinterpret_cast<const T*>(key.tile)[at] : T{};
        }
      }
      return;
    }
    // A warp takes a tile, of which a piece has at most 32 times 16 bytes.
    constexpr auto kUnits = static_cast<int32_t>(sizeof(T));  // of an element of a tile
    const int32_t unit = lane_of_warp();
    if (unit >= n * kUnits) return;
    const int32_t at = unit / kUnits * kKeyStride + unit % kUnits * 16 / kUnits;
    const auto offset = static_cast<uint64_t>(first * kUnits + unit) * 16;
    GEN_UNROLL
    for (int32_t i = 0; i < kChunkTiles; i += kWarps) {
      const int32_t tile = i + warp_of_block();
      const uint64_t address = tiles[tile];
      const auto* const from = reinterpret_cast<const uint8_t*>(address + offset);
      device::copy_async16(to, at + tile * kTile, address != 0 ? from : something(), address != 0);
    }
  }

  /// Starts to copy the values of slots [first, first + n), in whole tiles. Slots not attended to
  /// are not written.
  template <int32_t kWarps, typename T>
  GEN_DEVICE void copy_values(int32_t first, int32_t n, const Shared<T>& to) const {
    const int32_t dim = layer.v.head_dim;
    if (!whole()) {
      for (int32_t i = thread_x(); i < n * dim; i += kWarps * 32) {
        const int32_t slot = first + i / dim;
        if (!seen.has(slot)) continue;
        const KvPlace value = place(layer.v, slot);
        to[i] = reinterpret_cast<const T*>(value.tile)[value.lane * dim + i % dim];
      }
      return;
    }
    constexpr int32_t kEach = 16 / static_cast<int32_t>(sizeof(T));  // elements at once
    for (int32_t i = 0; i < n; i += kTile) {
      const uint64_t address = tiles[kChunkTiles + (first + i) / kTile];
      if (address == 0) continue;
      const auto* const from = reinterpret_cast<const T*>(address);
      for (int32_t at = thread_x() * kEach; at < kTile * dim; at += kWarps * 32 * kEach) {
        device::copy_async16(to, i * dim + at, from + at);
      }
    }
  }

 private:
  /// A valid address for copies that read nothing.
  [[nodiscard]] GEN_DEVICE const uint8_t* something() const {
    return reinterpret_cast<const uint8_t*>(blocks.blocks);
  }
};

}  // namespace gen::cuda

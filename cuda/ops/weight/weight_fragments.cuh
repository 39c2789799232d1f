// SPDX-License-Identifier: Apache-2.0
// Weights in tiles (weight_tiles.h) as tensor cores take them: a tile's eight outputs are the
// columns of b, see cuda/device/mma.cuh. Lane 4 g + t of a warp has columns 4 t … 4 t + 3 and
// 4 t + 16 … 4 t + 19 of 32 of output g, quads t and t + 4, as signed bytes without the zero; and
// the scales of outputs 2 t and 2 t + 1, whose sums it gets. The order of quads in a tile is such
// that a lane finds its two in one word of most types.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/memory.cuh"
#include "cuda/ops/device.cuh"
#include "cuda/ops/math.cuh"
#include "cuda/ops/weight/weight_tiles.h"

namespace gen::cuda {

/// Values [first, first + 4) of a table of sixteen; 0 of none.
constexpr uint32_t four_values(quant::CodeTable table, int32_t first) noexcept {
  if (table == quant::CodeTable::kNone) return 0;
  uint32_t four = 0;
  for (int32_t i = 0; i < 4; ++i) {
    four |= uint32_t{quant::table_values(table)[first + i]} << (8 * i);
  }
  return four;
}
/// Four codes of up to 4 bits, a byte each, to what they stand for, zero included.
template <quant::Traits t>
GEN_DEVICE uint32_t looked_up(uint32_t codes) {
  if constexpr (t.table == quant::CodeTable::kNone) return codes;
  constexpr uint32_t kLow0 = four_values(t.table, 0);
  constexpr uint32_t kLow1 = four_values(t.table, 4);
  constexpr uint32_t kHigh0 = four_values(t.table, 8);
  constexpr uint32_t kHigh1 = four_values(t.table, 12);
  // The low three bits of the four codes as four hexadecimal digits.
  const uint32_t pairs = (codes & 0x07070707U) | ((codes & 0x07070707U) >> 4);
  const uint32_t which = (pairs & 0xFFU) | ((pairs >> 8) & 0xFF00U);
  const uint32_t low = device::permute_bytes(kLow0, kLow1, which);
  if constexpr (t.bits < 4) return low;
  const uint32_t high = device::permute_bytes(kHigh0, kHigh1, which);
  const uint32_t upper = ((codes >> 3) & 0x01010101U) * 0xFFU;
  return (low & ~upper) | (high & upper);
}

/// Levels are multiplied with a power of two where that makes their zero 128, the sign of a byte.
constexpr int32_t level_shift(const quant::Traits& t) noexcept {
  const bool centred = t.zero == 1 << (t.bits - 1) && t.table == quant::CodeTable::kNone;
  return centred ? 8 - t.bits : 0;
}
/// Bits [from, from + kBits) of each byte, at bit kTo.
template <int32_t kBits, int32_t kTo>
GEN_DEVICE uint32_t moved_bits(uint32_t word, int32_t from) {
  constexpr uint32_t kMask = ((1U << kBits) - 1) * 0x01010101U << kTo;
  const uint32_t moved = from > kTo ? word >> (from - kTo) : word << (kTo - from);
  return moved & kMask;
}
/// Four values, moved up by level_shift(), as signed bytes.
template <quant::Traits t>
GEN_DEVICE uint32_t signed_levels(uint32_t values) {
  constexpr int32_t kZero = t.zero << level_shift(t);
  if constexpr (kZero == 0) return values;
  // No byte overflows: values of types whose zero is below 128 are below 128.
  if constexpr (kZero < 128) values += static_cast<uint32_t>(128 - kZero) * 0x01010101U;
  return values ^ 0x80808080U;
}

/// Scale of a block, or scale of its minima, from what is stored.
template <quant::Traits t>
GEN_DEVICE float stored_scale(uint32_t d) {
  // 2^(e - 128); the two smallest, below all normal floats, count as 0.
  if constexpr (t.scale == quant::ScaleKind::kE8M0) {
    return float_from_bits(d < 1 ? 0U : (d - 1) << 23);
  }
  const float stored = f16_to_f32(static_cast<uint16_t>(d));
  if constexpr (t.halvings != 0) return stored * quant::unit_of(t);
  return stored;
}

/// Values at a byte of shared memory.
template <typename T>
GEN_DEVICE T shared_at(const Shared<uint8_t>& bytes, int32_t i) {
  const T value = bytes.subspan(i, sizeof(T)).template as<T>()[0];
  return value;
}

/// A step in shared memory, from byte `first` on. The 16 bytes of codes of lane l lie where those
/// of lane l ^ (l / 8) would, so that the same quarter of eight outputs is in different banks.
struct StepInShared {
  const Shared<uint8_t>& bytes;
  int32_t first;
  [[nodiscard]] GEN_DEVICE uint32_t load4(int32_t i) const {
    return shared_at<uint32_t>(bytes, first + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load2(int32_t i) const {
    return shared_at<uint16_t>(bytes, first + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t load1(int32_t i) const {
    return shared_at<uint8_t>(bytes, first + i);
  }
  [[nodiscard]] GEN_DEVICE uint32_t code4(int32_t i) const { return load4(i ^ (i / 128 % 4 * 16)); }
};

/// Starts to copy a step of a tile to byte `first` on, by a warp; `from` is the lane's first 16
/// bytes.
template <quant::Traits t>
GEN_DEVICE void copy_tile_step(const Shared<uint8_t>& to, int32_t first, const uint8_t* from) {
  constexpr int32_t kPieces = step_bytes(t) / 16;
  const int32_t lane = lane_of_warp();
  GEN_UNROLL
  for (int32_t i = 0; i < kPieces; i += 32) {
    if (i + lane >= kPieces) continue;
    // Codes fill whole rounds.
    const int32_t place = i < code_words(t) / 4 * kTileLanes ? lane ^ (lane / 8) : lane;
    device::copy_async16(to, first + i * 16 + place * 16, from + i * 16);
  }
}

/// A product that starts from kExactSum has the bits of 1.5 * 2^23 plus its sum, which is below
/// 2^22: to take that away again is exact, and faster than to convert an integer. So is to take
/// away what its levels were multiplied with.
constexpr int32_t kExactSum = 0x4B400000;
template <quant::Traits t>
GEN_DEVICE float exact_sum(int32_t product) {
  const float sum = float_from_bits(static_cast<uint32_t>(product));
  if constexpr (level_shift(t) == 0) return sum - kRoundMagic;
  constexpr float kDown = 1.0F / static_cast<float>(1 << level_shift(t));
  return multiply_add(sum, kDown, -kRoundMagic * kDown);
}

/// The codes of 32 columns of a tile: of a quarter of a step, which is a block of 32, or of one of
/// two units of a quarter, which is 64 columns of a block of 256.
template <quant::Traits t>
struct UnitCodes {
  static constexpr int32_t kWords = first_bits(t) == 8 ? 2 : 1;
  static constexpr int32_t kAbove = bits_above(t);

  GEN_DEVICE void load(const StepInShared& step, int32_t quarter, int32_t unit) {
    const int32_t q = lane_of_warp() % 4;
    const int32_t lane = lane_of_warp() - q + quarter;  // of the tile, with the codes of output g
    GEN_UNROLL
    for (int32_t i = 0; i < kWords; ++i) {
      // 16 bytes of a lane are the first 32 columns of 4 bits, or all 64 of 2.
      const int32_t vector = first_bits(t) == 2 ? 0 : unit + i;
      const int32_t word = first_bits(t) == 2 ? unit * 2 + q % 2 : q;
      codes[i] = step.code4(vector * kTileLanes * 16 + lane * 16 + word * 4);
    }
    if constexpr (kAbove > 0) {
      const int32_t word = unit * kAbove + (kAbove == 2 ? q % 2 : 0);
      upper = step.load4(upper_offset(t) + (lane * upper_words(t) + word) * 4);
    }
  }

  /// Columns 4 t … 4 t + 3 and 4 t + 16 … 4 t + 19 of output g: levels times 2^level_shift().
  GEN_DEVICE void fragment(uint32_t (&b)[2]) const {
    const int32_t q = lane_of_warp() % 4;
    constexpr int32_t kTo = level_shift(t);
    GEN_UNROLL
    for (int32_t half = 0; half < 2; ++half) {
      uint32_t four = 0;
      if constexpr (first_bits(t) == 8) four = codes[half];
      if constexpr (first_bits(t) == 4) four = moved_bits<4, kTo>(codes[0], 4 * half);
      if constexpr (first_bits(t) == 2) {
        four = moved_bits<2, kTo>(codes[0], q / 2 * 2 + 4 * half);
      }
      if constexpr (kAbove == 1) {
        four |= moved_bits<1, kTo + first_bits(t)>(upper, q + 4 * half);
      }
      if constexpr (kAbove == 2) {
        four |= moved_bits<2, kTo + first_bits(t)>(upper, q / 2 * 2 + 4 * half);
      }
      b[half] = signed_levels<t>(looked_up<t>(four));
    }
  }

  uint32_t codes[static_cast<size_t>(kWords)];
  uint32_t upper = 0;
};

/// Scale and minimum of a run of a quarter, from the bytes of all.
template <quant::Traits t>
GEN_DEVICE int32_t scale_of_run(uint32_t runs, int32_t run) {
  const uint32_t bits = runs >> (8 * run);
  if constexpr (shared_runs(t)) return static_cast<int32_t>(bits & 15U);
  return static_cast<int32_t>(static_cast<int8_t>(bits & 0xFFU));
}
template <quant::Traits t>
GEN_DEVICE int32_t minimum_of_run(uint32_t runs, int32_t run) {
  if constexpr (shared_runs(t)) return static_cast<int32_t>((runs >> (8 * run + 4)) & 15U);
  return static_cast<int32_t>((runs >> (8 * (run + lane_runs(t)))) & 0xFFU);
}

}  // namespace gen::cuda

// SPDX-License-Identifier: Apache-2.0
// Packs the rows of a file into the tiles of cuda/ops/weight/weight_tiles.h through the codecs of
// quant: the reference for the kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cuda/ops/weight/weight_tiles.h"
#include "engine/weight.h"
#include "quant/format.h"

namespace gen::cuda {

using quant::Traits;

/// `bits` of each of 32 codes from bit `shift` on: word j of as many has quads j, j + bits, ….
inline void pack_bits(const uint8_t* codes, int shift, int bits, uint32_t* words) noexcept {
  const auto mask = static_cast<uint32_t>((1 << bits) - 1) * 0x01010101U;
  for (int quad = 0; quad < 8; ++quad) {
    uint32_t four = 0;
    std::memcpy(&four, codes + static_cast<size_t>(quad) * 4, sizeof(four));
    words[quad % bits] |= ((four >> shift) & mask) << (quad / bits * bits);
  }
}

class StepWriter {
 public:
  StepWriter(const Traits& traits, std::byte* step) noexcept : t_(traits), step_(step) {}

  /// 32 codes: part `part` of those of a lane.
  void codes(size_t lane, int part, const uint8_t* codes) const noexcept {
    uint32_t words[8] = {};
    const int n = first_bits(t_);
    pack_bits(codes, 0, n, words);
    for (int j = 0; j < n; ++j) {
      const auto word = static_cast<size_t>(part * n + j);
      put(word / 4 * 16 * kTileLanes + lane * 16 + word % 4 * 4, &words[j], sizeof(uint32_t));
    }
    const int above = bits_above(t_);
    if (above == 0) return;
    uint32_t upper[2] = {};
    pack_bits(codes, n, above, upper);
    const auto bytes = static_cast<size_t>(upper_words(t_)) * 4;
    put(static_cast<size_t>(upper_offset(t_)) + lane * bytes +
            static_cast<size_t>(part * above) * 4,
        upper, static_cast<size_t>(above) * 4);
  }
  void runs(size_t lane, size_t quarter, const quant::BlockParts& parts) const noexcept {
    const size_t n = std::min<size_t>(static_cast<size_t>(lane_runs(t_)), 4);
    uint8_t bytes[8];
    for (size_t i = 0; i < n; ++i) {
      bytes[i] = static_cast<uint8_t>(parts.scales[quarter * n + i]);
      if (!t_.minima) continue;
      const uint8_t minimum = parts.minima[quarter * n + i];
      if (shared_runs(t_)) {
        bytes[i] = static_cast<uint8_t>(bytes[i] | (minimum << 4));
      } else {
        bytes[n + i] = minimum;
      }
    }
    const auto size = static_cast<size_t>(run_bytes(t_));
    put(static_cast<size_t>(runs_offset(t_)) + lane * size, bytes, size);
  }
  /// Scales of a block; `at` is its lane, or its output.
  void scales(size_t at, const quant::BlockParts& parts) const noexcept {
    const size_t size = t_.scale == quant::ScaleKind::kE8M0 ? 1 : 2;
    put(static_cast<size_t>(d_offset(t_)) + at * size, &parts.d, size);
    if (t_.minima) put(static_cast<size_t>(dmin_offset(t_)) + at * size, &parts.dmin, size);
  }

 private:
  void put(size_t at, const void* from, size_t bytes) const noexcept {
    std::memcpy(step_ + at, from, bytes);
  }

  const Traits& t_;
  std::byte* step_;
};

/// Writes all of tile `tile` of a quantised source: tile_bytes(traits, source.cols) bytes.
inline void pack_tile(const Traits& traits, const engine::WeightSource& source, int64_t tile,
                      std::byte* out) noexcept {
  const quant::Format& format = *quant::find_format(source.type);
  const size_t block_bytes = dtype_info(source.type)->block_bytes;
  const auto blocks = static_cast<size_t>(source.cols / traits.block);
  const auto first = static_cast<size_t>(tile * kTileOutputs);
  const size_t outputs = std::min<size_t>(kTileOutputs, static_cast<size_t>(source.rows) - first);
  const size_t in_step = static_cast<size_t>(step_cols(traits) / traits.block);
  std::memset(out, 0, tile_bytes(traits, source.cols));
  quant::BlockParts parts = {};
  for (size_t r = 0; r < outputs; ++r) {
    const std::byte* from = source.data.data() + (first + r) * blocks * block_bytes;
    for (size_t b = 0; b < blocks; ++b, from += block_bytes) {
      const StepWriter step(traits, out + b / in_step * static_cast<size_t>(step_bytes(traits)));
      format.unpack(from, parts);
      if (traits.block == 32) {
        const size_t lane = r * kTileQuarters + b % in_step;
        step.codes(lane, 0, parts.codes);
        step.scales(lane, parts);
        continue;
      }
      step.scales(r, parts);
      for (size_t q = 0; q < kTileQuarters; ++q) {
        const size_t lane = r * kTileQuarters + q;
        step.codes(lane, 0, parts.codes + q * 64);
        step.codes(lane, 1, parts.codes + q * 64 + 32);
        step.runs(lane, q, parts);
      }
    }
  }
}

}  // namespace gen::cuda

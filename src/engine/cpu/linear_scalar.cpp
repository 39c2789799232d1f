// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights in plain C++: the definition of each format's order of operations,
// which every faster kernel repeats bit for bit. Integer sums are exact, so their order is free;
// the float operations below are not. Float weights are in linear_float-inl.h.
#include "engine/cpu/linear_scalar.h"

#include <cmath>

#include "engine/cpu/activations.h"
#include "engine/cpu/weight_layout.h"
#include "tensor/half.h"

namespace gen::engine::cpu {
namespace {

// Sum over `count` quads from quad `first` of row r, u8 weights times i8 activations.
template <typename Level>
int32_t dot(int first, int count, const int8_t* q, Level level) noexcept {
  int32_t sum = 0;
  for (int quad = first; quad < first + count; ++quad) {
    for (int i = 0; i < 4; ++i) sum += level(quad, i) * q[quad * 4 + i];
  }
  return sum;
}

// Calls sum(tile, row of x, r) for every output.
template <typename Sum>
void for_each_output(const TileJob& job, Sum sum) noexcept {
  for (int64_t i = 0; i < job.n_tiles; ++i) {
    const std::byte* tile = job.tiles + static_cast<size_t>(i) * job.tile_bytes;
    for (int64_t t = 0; t < job.rows; ++t) {
      const std::byte* x = job.x + static_cast<size_t>(t) * job.x_stride;
      float* acc = job.acc + t * job.acc_stride + i * kTileRows;
      for (int r = 0; r < kTileRows; ++r) acc[r] = sum(tile, x, r);
    }
  }
}

int nibble(const uint8_t* vectors, int quad, int at) noexcept {
  const int byte = vectors[quad % 4 * kQuadBytes + at];
  return quad < 4 ? byte & 15 : byte >> 4;
}

}  // namespace

void linear_q8_0_scalar(const TileJob& job) {
  for_each_output(job, [&job](const std::byte* tile, const std::byte* x_row, int r) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile);
    const auto* weights = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(job.cols));
    const auto* x = reinterpret_cast<const ActQ8Block*>(x_row);
    float acc = 0.0F;
    for (int64_t b = 0; b < job.cols / 32; ++b, weights += kQ8_0TileBlock) {
      const int32_t sum = x[b].minus_128_sum + dot(0, 8, x[b].q, [&](int quad, int i) {
                            return weights[quad * kQuadBytes + r * 4 + i];
                          });
      const float scale = f16_to_f32(scales[b * kTileRows + r]) * x[b].scale;
      acc = std::fma(scale, static_cast<float>(sum), acc);
    }
    return acc;
  });
}

void linear_q4_0_scalar(const TileJob& job) {
  for_each_output(job, [&job](const std::byte* tile, const std::byte* x_row, int r) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile);
    const auto* weights = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(job.cols));
    const auto* x = reinterpret_cast<const ActQ8Block*>(x_row);
    float acc = 0.0F;
    for (int64_t b = 0; b < job.cols / 32; ++b, weights += kQ4_0TileBlock) {
      const int32_t minus_8_sum = x[b].minus_128_sum / 16;  // exact
      const int32_t sum = minus_8_sum + dot(0, 8, x[b].q, [&](int quad, int i) {
                            return nibble(weights, quad, r * 4 + i);
                          });
      const float scale = f16_to_f32(scales[b * kTileRows + r]) * x[b].scale;
      acc = std::fma(scale, static_cast<float>(sum), acc);
    }
    return acc;
  });
}

void linear_q4_k_scalar(const TileJob& job) {
  for_each_output(job, [&job](const std::byte* tile, const std::byte* x_row, int r) {
    const auto* w = reinterpret_cast<const Q4_KTileBlock*>(tile);
    const auto* x = reinterpret_cast<const ActQ8KBlock*>(x_row);
    float acc = 0.0F;
    for (int64_t b = 0; b < job.cols / 256; ++b, ++w, ++x) {
      float scaled = 0.0F;
      int32_t minima = 0;
      for (int s = 0; s < 8; ++s) {
        const int32_t sum = dot(0, 8, x->q + s * 32, [&](int quad, int i) {
          return nibble(w->weights[s][0], quad, r * 4 + i);
        });
        scaled = std::fma(static_cast<float>(sum), static_cast<float>(w->scales[s][r]), scaled);
        minima += x->sum32[s] * w->minima[s / 2][r][s % 2];
      }
      acc = std::fma(f16_to_f32(w->d[r]) * x->scale, scaled, acc);
      acc = std::fma(-(f16_to_f32(w->dmin[r]) * x->scale), static_cast<float>(minima), acc);
    }
    return acc;
  });
}

void linear_q6_k_scalar(const TileJob& job) {
  for_each_output(job, [&job](const std::byte* tile, const std::byte* x_row, int r) {
    const auto* d = reinterpret_cast<const uint16_t*>(tile);
    const auto* w = reinterpret_cast<const Q6_KTileBlock*>(tile + q6_k_blocks_offset(job.cols));
    const auto* x = reinterpret_cast<const ActQ8KBlock*>(x_row);
    float acc = 0.0F;
    for (int64_t b = 0; b < job.cols / 256; ++b, ++w, ++x) {
      float scaled = 0.0F;
      for (int s = 0; s < 16; ++s) {
        const auto level = [&](int quad, int i) {
          const int at = r * 4 + i;
          const int high = w->high[s / 2][quad % 2][at] >> (quad / 2 * 2);
          return nibble(w->low[s / 2][0], quad, at) | ((high & 3) << 4);
        };
        const int first = s % 2 * 4;
        const int32_t sum = x->minus_32_sum[s] + dot(first, 4, x->q + s / 2 * 32, level);
        scaled = std::fma(static_cast<float>(sum), static_cast<float>(w->scales[s][r]), scaled);
      }
      acc = std::fma(f16_to_f32(d[b * kTileRows + r]) * x->scale, scaled, acc);
    }
    return acc;
  });
}

}  // namespace gen::engine::cpu

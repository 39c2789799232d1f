// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with one row of x, by 8-bit dot products: the tiles are read as
// they lie, once and in order. The order of operations is that of linear_scalar.cpp; the bits are
// the same.
//   Speed:  one thread of a Xeon (family 6, model 207), computing time, 2026-11-21, linear_bench,
//           8192 by 2048, from memory that is read at 17.9 GB/s: 17.2 Q8_0, 15.1 Q4_0, 15.2 Q4_K,
//           13.9 Q6_K.
//   Tried:  without prefetch: 14.7, 10.9, 12.6 and 9.4 GB/s. Prefetch into the first-level cache:
//           16.7, 14.4, 13.8, 13.7. Small pages: a quarter slower.
//   Read next: vnni-inl.h, linear_vnni.cpp.
#include <bit>

#include "engine/cpu/activations.h"
#include "engine/cpu/linear_vnni.h"
#include "engine/cpu/vnni_region.h"
#include "engine/cpu/weight_layout.h"

#if GEN_VNNI
GEN_VNNI_BEGIN
namespace gen::engine::cpu {
namespace {

#include "engine/cpu/vnni-inl.h"

// Asks for the lines that will be wanted kAhead bytes from now. One row of x is bound by memory,
// and the hardware alone, which stops at page borders, leaves a sixth of the bandwidth unused.
constexpr size_t kAhead = 4096;
template <size_t kBytes>
GEN_VNNI_INLINE void prefetch(const uint8_t* p) {
  const uintptr_t from = reinterpret_cast<uintptr_t>(p) + kAhead;
  GEN_VNNI_UNROLL
  for (size_t line = 0; line < kBytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(from + line), _MM_HINT_T1);
  }
}

// What the products of a block start from.
template <Traits t>
GEN_VNNI_INLINE __m512i start_of(const ActQ8Block& x) {
  if constexpr (t.zero == 0) {
    return _mm512_setzero_si512();
  } else {
    return _mm512_set1_epi32(x.minus_128_sum >> (7 - std::countr_zero(unsigned{t.zero})));
  }
}

template <Traits t>
GEN_VNNI_INLINE __m512 sum_blocks_of_32(const TileJob& job, const std::byte* tile) {
  const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, job.cols));
  const auto* codes = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, job.cols));
  const auto* x = reinterpret_cast<const ActQ8Block*>(job.x);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t b = 0; b < job.cols / 32; ++b, codes += part_bytes(t)) {
    __m512i sum = start_of<t>(x[b]);
    __m512i w[8];
    prefetch<part_bytes(t)>(codes);
    decode_part<t>(codes, w);
    GEN_VNNI_UNROLL
    for (int quad = 0; quad < 8; ++quad) {
      sum = _mm512_dpbusd_epi32(sum, w[quad], splat4(x[b].q + quad * 4));
    }
    const __m512 x_scale = _mm512_set1_ps(x[b].scale);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(load_d<t>(tile, b), x_scale), _mm512_cvtepi32_ps(sum), acc);
    if constexpr (t.minima) {
      const __m512 x_sum = _mm512_set1_ps(static_cast<float>(x[b].minus_128_sum) * -0x1p-7F);
      acc = _mm512_fmadd_ps(_mm512_mul_ps(load_halves(dmin + b * kTileRows), x_scale), x_sum, acc);
    }
  }
  return acc;
}

// What the products of a run start from.
template <Traits t>
GEN_VNNI_INLINE __m512i start_of(const ActQ8KBlock& x, int run) {
  if constexpr (t.zero == 0) {
    return _mm512_setzero_si512();
  } else if constexpr (t.run == 16) {
    return _mm512_set1_epi32(x.minus_32_sum[run] >> (5 - std::countr_zero(unsigned{t.zero})));
  } else {
    return _mm512_set1_epi32(-t.zero * x.sum32[run]);
  }
}

template <Traits t>
GEN_VNNI_INLINE __m512 sum_blocks_of_256(const TileJob& job, const std::byte* tile) {
  constexpr int kPerPart = 32 / t.run;
  constexpr int kQuads = t.run / 4;
  const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, job.cols));
  const auto* block = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, job.cols));
  const auto* x = reinterpret_cast<const ActQ8KBlock*>(job.x);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t b = 0; b < job.cols / 256; ++b, block += block_bytes(t), ++x) {
    const uint8_t* codes = block + codes_offset(t);
    __m512 scaled = _mm512_setzero_ps();
    prefetch<codes_offset(t)>(block);
    GEN_VNNI_UNROLL
    for (int part = 0; part < 8; ++part) {
      __m512i w[8];
      const uint8_t* here = codes + static_cast<size_t>(part) * part_bytes(t);
      prefetch<part_bytes(t)>(here);
      decode_part<t>(here, w);
      GEN_VNNI_UNROLL
      for (int i = 0; i < kPerPart; ++i) {
        const int run = part * kPerPart + i;
        __m512i sum = start_of<t>(*x, run);
        GEN_VNNI_UNROLL
        for (int quad = i * kQuads; quad < (i + 1) * kQuads; ++quad) {
          sum = _mm512_dpbusd_epi32(sum, w[quad], splat4(x->q + part * 32 + quad * 4));
        }
        scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), load_scales<t>(block, run), scaled);
      }
    }
    const __m512 x_scale = _mm512_set1_ps(x->scale);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(load_d<t>(tile, b), x_scale), scaled, acc);
    if constexpr (t.minima) {
      __m512i minima = _mm512_setzero_si512();
      const int16_t* sums = t.run == 16 ? x->sum16 : x->sum32;
      for (int pair = 0; pair < runs_of(t) / 2; ++pair) {
        minima = _mm512_dpwssd_epi32(minima, load_minima<t>(block, pair), splat4(sums + 2 * pair));
      }
      acc = _mm512_fnmadd_ps(_mm512_mul_ps(load_halves(dmin + b * kTileRows), x_scale),
                             _mm512_cvtepi32_ps(minima), acc);
    }
  }
  return acc;
}

template <size_t kIndex>
void linear_row(const TileJob& job) {
  constexpr Traits t = quant::kTraits[kIndex];
  for (int64_t i = 0; i < job.n_tiles; ++i) {
    const std::byte* tile = job.tiles + static_cast<size_t>(i) * job.tile_bytes;
    __m512 sum;
    if constexpr (t.block == 32) {
      sum = sum_blocks_of_32<t>(job, tile);
    } else {
      sum = sum_blocks_of_256<t>(job, tile);
    }
    _mm512_store_ps(job.acc + i * kTileRows, sum);
  }
}

template <size_t... kIndices>
constexpr QuantKernels all_kernels(std::index_sequence<kIndices...>) {
  return {{linear_row<kIndices>...}};
}
constexpr QuantKernels kRowKernels = all_kernels(kQuantIndices);

}  // namespace
}  // namespace gen::engine::cpu
GEN_VNNI_END

namespace gen::engine::cpu {

const QuantKernels& vnni_row_kernels() noexcept { return kRowKernels; }

}  // namespace gen::engine::cpu
#endif

// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with one row of x, by 8-bit dot products: the tiles are read in
// place, once and in order. The order of operations is that of linear_scalar.cpp; the bits are the
// same.
//   Speed:  docs/speed.md; at most 96 % of the speed of a loop that only reads.
//   Read next: vnni-inl.h, linear_vnni.cpp.
#include <bit>

#include "engine/cpu/linear/linear_vnni.h"
#include "engine/cpu/pack/activations.h"
#include "engine/cpu/simd/vnni_region.h"
#include "engine/cpu/weight/weight_layout.h"

#if GEN_VNNI
GEN_VNNI_BEGIN
namespace gen::engine::cpu {
namespace {

#include "engine/cpu/simd/vnni-inl.h"

// Tiles that are read side by side, and columns per run. While a run is multiplied, the next one is
// prefetched: the next columns of the same tiles or, after the last, the first of the next tiles.
// One row of x is bound by memory, and the hardware prefetcher stops at page boundaries.
constexpr int64_t kTilesAtOnce = 2;
constexpr int64_t run_cols(const Traits& t) { return t.bits == 8 ? 128 : 256; }  // about 2 KiB

// The distance to the 64-byte lines that are prefetched while those at `codes` are multiplied.
struct Ahead {
  size_t bytes;  // wraps around if negative
  GEN_VNNI_INLINE void fetch(const uint8_t* p) const {
    const uintptr_t at = reinterpret_cast<uintptr_t>(p) + bytes;
    _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
  }
};

// For the run of columns from `first` on. A run has whole blocks, so the distance to the next run
// is constant.
template <Traits t, size_t kTiles>
GEN_VNNI_INLINE Ahead ahead_of(const TileJob& job, int64_t first) {
  const size_t run_bytes = static_cast<size_t>(run_cols(t) / t.block) * block_bytes(t);
  if (first + run_cols(t) < job.cols) return {run_bytes};
  const size_t done = static_cast<size_t>(first / t.block) * block_bytes(t);
  return {kTiles * job.tile_bytes - done};
}

// Prefetches the share of quad `quad` in the lines of 32 columns of codes. A burst of prefetches
// would stall.
template <Traits t>
GEN_VNNI_INLINE void fetch_share(Ahead ahead, const uint8_t* codes, int quad) {
  for (int line = quad * t.bits / 8; line < (quad + 1) * t.bits / 8; ++line) {
    ahead.fetch(codes + line * 64);
  }
}

// The initial sums of run `run` of a block of 32.
template <Traits t>
GEN_VNNI_INLINE __m512i start_of(const ActQ8Block& x, int run) {
  if constexpr (t.zero == 0) {
    return _mm512_setzero_si512();
  } else if constexpr (t.run == 16) {
    static_assert(t.zero == 128);
    return minus_128_sum_of_16(x.q + 16 * run);
  } else {
    return _mm512_set1_epi32(x.minus_128_sum >> (7 - std::countr_zero(unsigned{t.zero})));
  }
}

// acc plus the sum of run kRun of a block of 32.
template <Traits t, int kRun>
GEN_VNNI_INLINE __m512 add_run(const __m512i (&w)[8], const uint8_t* codes, __m512 d,
                               const ActQ8Block& x, Ahead ahead, __m512 acc) {
  constexpr int kQuads = t.run / 4;
  __m512i sum = start_of<t>(x, kRun);
  GEN_VNNI_UNROLL
  for (int quad = kRun * kQuads; quad < (kRun + 1) * kQuads; ++quad) {
    fetch_share<t>(ahead, codes, quad);
    sum = _mm512_dpbusd_epi32(sum, w[quad], splat4(x.q + quad * 4));
  }
  return _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x.scale)), _mm512_cvtepi32_ps(sum), acc);
}

template <Traits t>
GEN_VNNI_INLINE __m512 add_block(const std::byte* tile, int64_t cols, int64_t b,
                                 const ActQ8Block& x, Ahead ahead, __m512 acc) {
  const uint8_t* codes = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, cols)) +
                         static_cast<size_t>(b) * sub_block_bytes(t);
  __m512i w[8];
  decode_sub_block<t>(codes, w);
  acc = add_run<t, 0>(w, codes, load_d<t>(tile, b * runs_of(t)), x, ahead, acc);
  if constexpr (t.run == 16) {
    acc = add_run<t, 1>(w, codes, load_d<t>(tile, b * runs_of(t) + 1), x, ahead, acc);
  }
  if constexpr (t.minima) {
    const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, cols));
    const __m512 x_scale = _mm512_set1_ps(x.scale);
    const __m512 x_sum = _mm512_set1_ps(static_cast<float>(x.minus_128_sum) * -0x1p-7F);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(load_halves(dmin + b * kTileRows), x_scale), x_sum, acc);
  }
  return acc;
}

template <Traits t, size_t kTiles>
GEN_VNNI_INLINE void sum_blocks_of_32(const std::byte* const* tiles, const TileJob& job,
                                      __m512* acc) {
  const auto* x = reinterpret_cast<const ActQ8Block*>(job.x);
  for (int64_t first = 0; first < job.cols; first += run_cols(t)) {
    const Ahead ahead = ahead_of<t, kTiles>(job, first);
    const int64_t end = first + run_cols(t) < job.cols ? first + run_cols(t) : job.cols;
    for (int64_t b = first / 32; b < end / 32; ++b) {
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) {
        acc[i] = add_block<t>(tiles[i], job.cols, b, x[b], ahead, acc[i]);
      }
    }
  }
}

// The initial sums of a run.
template <Traits t>
GEN_VNNI_INLINE __m512i start_of(const ActQ8KBlock& x, int run) {
  if constexpr (t.zero == 0) {
    return _mm512_setzero_si512();
  } else if constexpr (t.run == 16) {
    constexpr int kShift = 5 - std::countr_zero(unsigned{t.zero});
    const int32_t sum = x.minus_32_sum[run];
    return _mm512_set1_epi32(kShift >= 0 ? sum >> (kShift & 31) : sum * (1 << (-kShift & 31)));
  } else {
    return _mm512_set1_epi32(-t.zero * x.sum32[run]);
  }
}

// scaled += scale * sum for the runs of columns [32 * sub_block, 32 * sub_block + 32).
template <Traits t>
GEN_VNNI_INLINE __m512 add_sub_block(const uint8_t* block, int sub_block, const ActQ8KBlock& x,
                                     Ahead ahead, __m512 scaled) {
  constexpr int kPerSubBlock = 32 / t.run;
  constexpr int kQuads = t.run / 4;
  const uint8_t* codes =
      block + codes_offset(t) + static_cast<size_t>(sub_block) * sub_block_bytes(t);
  __m512i w[8];
  decode_sub_block<t>(codes, w);
  GEN_VNNI_UNROLL
  for (int i = 0; i < kPerSubBlock; ++i) {
    const int run = sub_block * kPerSubBlock + i;
    __m512i sum = start_of<t>(x, run);
    GEN_VNNI_UNROLL
    for (int quad = i * kQuads; quad < (i + 1) * kQuads; ++quad) {
      fetch_share<t>(ahead, codes, quad);
      sum = _mm512_dpbusd_epi32(sum, w[quad], splat4(x.q + sub_block * 32 + quad * 4));
    }
    scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), load_scales<t>(block, run), scaled);
  }
  return scaled;
}

// acc plus the sum of a block of 256, from the sums of its runs.
template <Traits t>
GEN_VNNI_INLINE __m512 add_scaled(const std::byte* tile, const uint8_t* block, int64_t cols,
                                  int64_t b, const ActQ8KBlock& x, __m512 scaled, __m512 acc) {
  const __m512 x_scale = _mm512_set1_ps(x.scale);
  acc = _mm512_fmadd_ps(_mm512_mul_ps(load_d<t>(tile, b), x_scale), scaled, acc);
  if constexpr (t.minima) {
    const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, cols));
    __m512i minima = _mm512_setzero_si512();
    const int16_t* sums = t.run == 16 ? x.sum16 : x.sum32;
    for (int pair = 0; pair < runs_of(t) / 2; ++pair) {
      minima = _mm512_dpwssd_epi32(minima, load_minima<t>(block, pair), splat4(sums + 2 * pair));
    }
    acc = _mm512_fnmadd_ps(_mm512_mul_ps(load_units<t>(dmin + b * kTileRows), x_scale),
                           _mm512_cvtepi32_ps(minima), acc);
  }
  return acc;
}

template <Traits t, size_t kTiles>
GEN_VNNI_INLINE void sum_blocks_of_256(const std::byte* const* tiles, const TileJob& job,
                                       __m512* acc) {
  const auto* x = reinterpret_cast<const ActQ8KBlock*>(job.x);
  for (int64_t b = 0; b < job.cols / 256; ++b, ++x) {
    const Ahead ahead = ahead_of<t, kTiles>(job, b * 256);
    const uint8_t* blocks[kTiles];
    __m512 scaled[kTiles];
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      blocks[i] = reinterpret_cast<const uint8_t*>(tiles[i] + blocks_offset(t, job.cols)) +
                  static_cast<size_t>(b) * block_bytes(t);
      scaled[i] = _mm512_setzero_ps();
      for (size_t line = 0; line < codes_offset(t); line += 64) ahead.fetch(blocks[i] + line);
    }
    for (int sub_block = 0; sub_block < 8; ++sub_block) {
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i)
        scaled[i] = add_sub_block<t>(blocks[i], sub_block, *x, ahead, scaled[i]);
    }
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      acc[i] = add_scaled<t>(tiles[i], blocks[i], job.cols, b, *x, scaled[i], acc[i]);
    }
  }
}

template <Traits t, size_t kTiles>
GEN_VNNI_INLINE void sum_tiles(const TileJob& job, int64_t first) {
  const std::byte* tiles[kTiles];
  __m512 acc[kTiles];
  GEN_VNNI_UNROLL
  for (size_t i = 0; i < kTiles; ++i) {
    tiles[i] = job.tiles + (static_cast<size_t>(first) + i) * job.tile_bytes;
    acc[i] = _mm512_setzero_ps();
  }
  if constexpr (t.block == 32) {
    sum_blocks_of_32<t, kTiles>(tiles, job, acc);
  } else {
    sum_blocks_of_256<t, kTiles>(tiles, job, acc);
  }
  GEN_VNNI_UNROLL
  for (size_t i = 0; i < kTiles; ++i) {
    _mm512_store_ps(job.acc + first * kTileRows + i * size_t{kTileRows}, acc[i]);
  }
}

template <size_t kIndex>
void linear_row(const TileJob& job) {
  constexpr Traits t = quant::kTraits[kIndex];
  int64_t tile = 0;
  for (; tile + kTilesAtOnce <= job.n_tiles; tile += kTilesAtOnce) {
    sum_tiles<t, size_t{kTilesAtOnce}>(job, tile);
  }
  for (; tile < job.n_tiles; ++tile) sum_tiles<t, 1>(job, tile);
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

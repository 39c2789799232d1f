// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with the 8-bit dot product of AVX-512 (vpdpbusd), which Highway
// 1.0.3 does not offer. The order of operations is that of linear_scalar.cpp; the bits are the
// same.
//   Work:   one row of x reads the tiles as they lie, once and in order. Several rows take the
//           columns in chunks: a chunk of two tiles is decoded to plain bytes in the first-level
//           cache and meets four rows of x at a time; sums wait in `acc` between chunks.
//   Needs:  AVX-512 F, BW, DQ, VL and VNNI. Intrinsics only: nothing here may be a function that
//           another file compiles too.
//   Speed:  one thread of a Xeon (family 6, model 207), computing time, 2026-11-21, linear_bench.
//           128 rows, 2048 by 2048: 515 GOP/s Q8_0, 530 Q4_0, 540 Q4_K, 500 Q6_K; what scales cost
//           leaves 73 % of the peak of vpdpbusd. One row, 8192 by 2048, from memory that is read at
//           17.9 GB/s: 17.2 Q8_0, 15.1 Q4_0, 15.2 Q4_K, 13.9 Q6_K.
//   Tried:  one row without prefetch: 14.7, 10.9, 12.6 and 9.4 GB/s. Prefetch into the first-level
//           cache: 16.7, 14.4, 13.8, 13.7. Small pages: a quarter slower.
//   Read next: weight_layout.h, activations.h.
#include "engine/cpu/activations.h"
#include "engine/cpu/linear_quant_simd.h"
#include "engine/cpu/weight_layout.h"

#if defined(__x86_64__)

#if !defined(__clang__)
// gcc 12 takes the "undefined" operands inside its own intrinsics for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#if defined(__clang__)
#define GEN_VNNI_UNROLL _Pragma("unroll")
#pragma clang attribute push(                                                               \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
    apply_to = function)
#else
#define GEN_VNNI_UNROLL _Pragma("GCC unroll 16")
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

namespace gen::engine::cpu {
namespace {

#define GEN_VNNI_INLINE inline __attribute__((always_inline))

// Columns of a chunk: two tiles of it are 16 KiB of bytes, a third of the first-level cache.
constexpr int64_t kChunkCols = 512;
constexpr int64_t kChunkBytes = kChunkCols * kTileRows;

GEN_VNNI_INLINE __m512i load64(const void* p) { return _mm512_loadu_si512(p); }

GEN_VNNI_INLINE __m512 load_halves(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

GEN_VNNI_INLINE __m512 load_bytes(const uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
}

GEN_VNNI_INLINE __m512 load_bytes(const int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

// Four consecutive activations, or a pair of sums, in every lane.
GEN_VNNI_INLINE __m512i splat4(const void* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, sizeof(quad));
  return _mm512_set1_epi32(quad);
}

GEN_VNNI_INLINE __m512i low_half(__m512i w) { return _mm512_and_si512(w, _mm512_set1_epi8(15)); }
GEN_VNNI_INLINE __m512i high_half(__m512i w) { return low_half(_mm512_srli_epi16(w, 4)); }

// The top two bits of quad `kQuad` of 32 columns, where they belong.
template <int kQuad>
GEN_VNNI_INLINE __m512i top_bits(__m512i high) {
  __m512i bits = high;
  if constexpr (kQuad < 2) {
    bits = _mm512_slli_epi16(high, 4);
  } else if constexpr (kQuad < 4) {
    bits = _mm512_slli_epi16(high, 2);
  } else if constexpr (kQuad >= 6) {
    bits = _mm512_srli_epi16(high, 2);
  }
  return _mm512_and_si512(bits, _mm512_set1_epi8(0x30));
}

// All 8 quads of 32 columns of Q6_K.
GEN_VNNI_INLINE void decode_q6(const uint8_t (*low)[64], const uint8_t (*high)[64], __m512i* out) {
  const __m512i even = load64(high[0]);
  const __m512i odd = load64(high[1]);
  __m512i both = load64(low[0]);
  out[0] = _mm512_or_si512(low_half(both), top_bits<0>(even));
  out[4] = _mm512_or_si512(high_half(both), top_bits<4>(even));
  both = load64(low[1]);
  out[1] = _mm512_or_si512(low_half(both), top_bits<1>(odd));
  out[5] = _mm512_or_si512(high_half(both), top_bits<5>(odd));
  both = load64(low[2]);
  out[2] = _mm512_or_si512(low_half(both), top_bits<2>(even));
  out[6] = _mm512_or_si512(high_half(both), top_bits<6>(even));
  both = load64(low[3]);
  out[3] = _mm512_or_si512(low_half(both), top_bits<3>(odd));
  out[7] = _mm512_or_si512(high_half(both), top_bits<7>(odd));
}

// Asks for the line that will be wanted kAhead bytes from now. One row of x is bound by memory, and
// the hardware alone, which stops at page borders, leaves a sixth of the bandwidth unused.
constexpr size_t kAhead = 4096;
GEN_VNNI_INLINE void prefetch(const void* p) {
  _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(p) + kAhead), _MM_HINT_T1);
}

// ---- one row of x --------------------------------------------------------------------------

GEN_VNNI_INLINE __m512 row_q8_0(const TileJob& job, const std::byte* tile) {
  const auto* scales = reinterpret_cast<const uint16_t*>(tile);
  const auto* w = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(job.cols));
  const auto* x = reinterpret_cast<const ActQ8Block*>(job.x);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t b = 0; b < job.cols / 32; ++b, w += kQ8_0TileBlock) {
    __m512i sum = _mm512_set1_epi32(x[b].minus_128_sum);
    GEN_VNNI_UNROLL
    for (int quad = 0; quad < 8; ++quad) {
      prefetch(w + quad * 64);
      sum = _mm512_dpbusd_epi32(sum, load64(w + quad * 64), splat4(x[b].q + quad * 4));
    }
    const __m512 scale =
        _mm512_mul_ps(load_halves(scales + b * kTileRows), _mm512_set1_ps(x[b].scale));
    acc = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sum), acc);
  }
  return acc;
}

GEN_VNNI_INLINE __m512 row_q4_0(const TileJob& job, const std::byte* tile) {
  const auto* scales = reinterpret_cast<const uint16_t*>(tile);
  const auto* w = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(job.cols));
  const auto* x = reinterpret_cast<const ActQ8Block*>(job.x);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t b = 0; b < job.cols / 32; ++b, w += kQ4_0TileBlock) {
    __m512i sum = _mm512_srai_epi32(_mm512_set1_epi32(x[b].minus_128_sum), 4);
    GEN_VNNI_UNROLL
    for (int quad = 0; quad < 4; ++quad) {
      prefetch(w + quad * 64);
      const __m512i both = load64(w + quad * 64);
      sum = _mm512_dpbusd_epi32(sum, low_half(both), splat4(x[b].q + quad * 4));
      sum = _mm512_dpbusd_epi32(sum, high_half(both), splat4(x[b].q + quad * 4 + 16));
    }
    const __m512 scale =
        _mm512_mul_ps(load_halves(scales + b * kTileRows), _mm512_set1_ps(x[b].scale));
    acc = _mm512_fmadd_ps(scale, _mm512_cvtepi32_ps(sum), acc);
  }
  return acc;
}

GEN_VNNI_INLINE __m512i load_minima(const uint8_t (*pair)[2]) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair)));
}

GEN_VNNI_INLINE __m512 row_q4_k(const TileJob& job, const std::byte* tile) {
  const auto* w = reinterpret_cast<const Q4_KTileBlock*>(tile);
  const auto* x = reinterpret_cast<const ActQ8KBlock*>(job.x);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t b = 0; b < job.cols / 256; ++b, ++w, ++x) {
    __m512 scaled = _mm512_setzero_ps();
    GEN_VNNI_UNROLL
    for (int s = 0; s < 8; ++s) {
      __m512i sum = _mm512_setzero_si512();
      GEN_VNNI_UNROLL
      for (int quad = 0; quad < 4; ++quad) {
        prefetch(w->weights[s][quad]);
        const __m512i both = load64(w->weights[s][quad]);
        const int8_t* q = x->q + s * 32 + quad * 4;
        sum = _mm512_dpbusd_epi32(sum, low_half(both), splat4(q));
        sum = _mm512_dpbusd_epi32(sum, high_half(both), splat4(q + 16));
      }
      scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), load_bytes(w->scales[s]), scaled);
    }
    __m512i minima = _mm512_setzero_si512();
    GEN_VNNI_UNROLL
    for (int pair = 0; pair < 4; ++pair) {
      minima =
          _mm512_dpwssd_epi32(minima, load_minima(w->minima[pair]), splat4(x->sum32 + 2 * pair));
    }
    const __m512 x_scale = _mm512_set1_ps(x->scale);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(load_halves(w->d), x_scale), scaled, acc);
    acc = _mm512_fnmadd_ps(_mm512_mul_ps(load_halves(w->dmin), x_scale), _mm512_cvtepi32_ps(minima),
                           acc);
  }
  return acc;
}

GEN_VNNI_INLINE __m512 row_q6_k(const TileJob& job, const std::byte* tile) {
  const auto* d = reinterpret_cast<const uint16_t*>(tile);
  const auto* w = reinterpret_cast<const Q6_KTileBlock*>(tile + q6_k_blocks_offset(job.cols));
  const auto* x = reinterpret_cast<const ActQ8KBlock*>(job.x);
  __m512 acc = _mm512_setzero_ps();
  for (int64_t b = 0; b < job.cols / 256; ++b, ++w, ++x) {
    __m512 scaled = _mm512_setzero_ps();
    for (int part = 0; part < 8; ++part) {
      __m512i quads[8];
      GEN_VNNI_UNROLL
      for (int i = 0; i < 4; ++i) prefetch(w->low[part][i]);
      GEN_VNNI_UNROLL
      for (int i = 0; i < 2; ++i) prefetch(w->high[part][i]);
      decode_q6(w->low[part], w->high[part], quads);
      GEN_VNNI_UNROLL
      for (int half = 0; half < 2; ++half) {
        __m512i sum = _mm512_set1_epi32(x->minus_32_sum[2 * part + half]);
        GEN_VNNI_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int quad = half * 4 + i;
          sum = _mm512_dpbusd_epi32(sum, quads[quad], splat4(x->q + part * 32 + quad * 4));
        }
        const __m512 scale = load_bytes(w->scales[2 * part + half]);
        scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, scaled);
      }
    }
    const __m512 scale = _mm512_mul_ps(load_halves(d + b * kTileRows), _mm512_set1_ps(x->scale));
    acc = _mm512_fmadd_ps(scale, scaled, acc);
  }
  return acc;
}

// ---- several rows of x ---------------------------------------------------------------------

// A chunk of one tile, ready to multiply.
struct Chunk {
  const uint8_t* w;     // quads, one after another
  const float* scales;  // [runs][16]
  // The K formats, per 256 columns:
  const float* d;         // [blocks][16]
  const float* dmin;      // [blocks][16], Q4_K
  const int16_t* minima;  // [blocks][4][16][2], Q4_K
  // Where the weights lie that come next, to be fetched while these are multiplied; 0 for none.
  uintptr_t next;
};

// Where the parts of a decoded chunk lie in scratch memory.
struct ChunkScratch {
  alignas(64) uint8_t w[kChunkBytes];
  float scales[kChunkCols / 16 * kTileRows];
  float d[kChunkCols / 256 * kTileRows];
  float dmin[kChunkCols / 256 * kTileRows];
  int16_t minima[kChunkCols / 256 * 4 * kTileRows * 2];
};

// Formats say how to decode columns [first, first + cols) of a tile.

struct FormatQ8_0 {
  using Block = ActQ8Block;
  static constexpr int64_t kBlockCols = 32;
  static constexpr size_t kLines = 8;  // of 64 bytes that a block, or a run of it, takes
  GEN_VNNI_INLINE static const std::byte* at(const std::byte* tile, int64_t tile_cols,
                                             int64_t first) {
    return tile + block32_weights_offset(tile_cols) + first * kTileRows;
  }
  GEN_VNNI_INLINE static Chunk decode(const std::byte* tile, int64_t tile_cols, int64_t first,
                                      int64_t cols, ChunkScratch& scratch) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile) + first / 32 * kTileRows;
    for (int64_t b = 0; b < cols / 32; ++b) {
      _mm512_store_ps(scratch.scales + b * kTileRows, load_halves(scales + b * kTileRows));
    }
    const auto* w = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(tile_cols));
    return {w + first * kTileRows, scratch.scales, nullptr, nullptr, nullptr, 0};
  }
};

struct FormatQ4_0 {
  using Block = ActQ8Block;
  static constexpr int64_t kBlockCols = 32;
  static constexpr size_t kLines = 4;
  GEN_VNNI_INLINE static const std::byte* at(const std::byte* tile, int64_t tile_cols,
                                             int64_t first) {
    return tile + block32_weights_offset(tile_cols) + first * kTileRows / 2;
  }
  GEN_VNNI_INLINE static Chunk decode(const std::byte* tile, int64_t tile_cols, int64_t first,
                                      int64_t cols, ChunkScratch& scratch) {
    const auto* scales = reinterpret_cast<const uint16_t*>(tile) + first / 32 * kTileRows;
    const auto* w = reinterpret_cast<const uint8_t*>(tile + block32_weights_offset(tile_cols)) +
                    first * kTileRows / 2;
    // From an offset of 8 to that of Q8_0, 128.
    const __m512i offset = _mm512_set1_epi8(120);
    uint8_t* out = scratch.w;
    for (int64_t b = 0; b < cols / 32; ++b, w += kQ4_0TileBlock, out += kQ8_0TileBlock) {
      _mm512_store_ps(scratch.scales + b * kTileRows, load_halves(scales + b * kTileRows));
      GEN_VNNI_UNROLL
      for (int quad = 0; quad < 4; ++quad) {
        const __m512i both = load64(w + quad * 64);
        _mm512_store_si512(out + quad * 64, _mm512_add_epi8(low_half(both), offset));
        _mm512_store_si512(out + quad * 64 + 256, _mm512_add_epi8(high_half(both), offset));
      }
    }
    return {scratch.w, scratch.scales, nullptr, nullptr, nullptr, 0};
  }
};

struct FormatQ4_K {
  using Block = ActQ8KBlock;
  static constexpr int64_t kBlockCols = 256;
  static constexpr int kRuns = 8;
  static constexpr bool kMinima = true;
  static constexpr size_t kLines = 5;  // 4.6
  GEN_VNNI_INLINE static const std::byte* at(const std::byte* tile, int64_t, int64_t first) {
    return tile + static_cast<size_t>(first / 256) * sizeof(Q4_KTileBlock);
  }
  GEN_VNNI_INLINE static Chunk decode(const std::byte* tile, int64_t, int64_t first, int64_t cols,
                                      ChunkScratch& scratch) {
    const auto* w = reinterpret_cast<const Q4_KTileBlock*>(tile) + first / 256;
    uint8_t* out = scratch.w;
    for (int64_t b = 0; b < cols / 256; ++b, ++w) {
      _mm512_store_ps(scratch.d + b * kTileRows, load_halves(w->d));
      _mm512_store_ps(scratch.dmin + b * kTileRows, load_halves(w->dmin));
      for (int pair = 0; pair < 4; ++pair) {
        _mm512_store_si512(scratch.minima + (b * 4 + pair) * 2 * kTileRows,
                           load_minima(w->minima[pair]));
      }
      for (int s = 0; s < 8; ++s, out += 512) {
        _mm512_store_ps(scratch.scales + (b * 8 + s) * kTileRows, load_bytes(w->scales[s]));
        GEN_VNNI_UNROLL
        for (int quad = 0; quad < 4; ++quad) {
          const __m512i both = load64(w->weights[s][quad]);
          _mm512_store_si512(out + quad * 64, low_half(both));
          _mm512_store_si512(out + quad * 64 + 256, high_half(both));
        }
      }
    }
    return {scratch.w, scratch.scales, scratch.d, scratch.dmin, scratch.minima, 0};
  }
};

struct FormatQ6_K {
  using Block = ActQ8KBlock;
  static constexpr int64_t kBlockCols = 256;
  static constexpr int kRuns = 16;
  static constexpr bool kMinima = false;
  static constexpr size_t kLines = 4;  // 3.25
  GEN_VNNI_INLINE static const std::byte* at(const std::byte* tile, int64_t tile_cols,
                                             int64_t first) {
    return tile + q6_k_blocks_offset(tile_cols) +
           static_cast<size_t>(first / 256) * sizeof(Q6_KTileBlock);
  }
  GEN_VNNI_INLINE static Chunk decode(const std::byte* tile, int64_t tile_cols, int64_t first,
                                      int64_t cols, ChunkScratch& scratch) {
    const auto* d = reinterpret_cast<const uint16_t*>(tile) + first / 256 * kTileRows;
    const auto* w =
        reinterpret_cast<const Q6_KTileBlock*>(tile + q6_k_blocks_offset(tile_cols)) + first / 256;
    uint8_t* out = scratch.w;
    for (int64_t b = 0; b < cols / 256; ++b, ++w) {
      _mm512_store_ps(scratch.d + b * kTileRows, load_halves(d + b * kTileRows));
      for (int s = 0; s < 16; ++s) {
        _mm512_store_ps(scratch.scales + (b * 16 + s) * kTileRows, load_bytes(w->scales[s]));
      }
      for (int part = 0; part < 8; ++part, out += 512) {
        __m512i quads[8];
        decode_q6(w->low[part], w->high[part], quads);
        GEN_VNNI_UNROLL
        for (int quad = 0; quad < 8; ++quad) _mm512_store_si512(out + quad * 64, quads[quad]);
      }
    }
    return {scratch.w, scratch.scales, scratch.d, nullptr, nullptr, 0};
  }
};

template <typename Block>
GEN_VNNI_INLINE const Block* row_at(const Block* x, size_t stride, size_t t) {
  return reinterpret_cast<const Block*>(reinterpret_cast<const std::byte*>(x) + t * stride);
}

template <typename Format, size_t kTiles>
GEN_VNNI_INLINE void fetch_next(const Chunk* chunks, int64_t step) {
  if (chunks[0].next == 0) return;
  GEN_VNNI_UNROLL
  for (size_t i = 0; i < kTiles; ++i) {
    const uintptr_t from = chunks[i].next + static_cast<size_t>(step) * Format::kLines * 64;
    GEN_VNNI_UNROLL
    for (size_t line = 0; line < Format::kLines; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(from + line * 64), _MM_HINT_T1);
    }
  }
}

// Adds a chunk of kTiles tiles times kTokens rows to acc. Blocks of 32.
template <typename Format, size_t kTiles, size_t kTokens>
GEN_VNNI_INLINE void add_chunk(const Chunk* chunks, const ActQ8Block* x, size_t x_stride,
                               int64_t cols, __m512 (&acc)[kTiles][kTokens]) {
  for (int64_t b = 0; b < cols / 32; ++b) {
    fetch_next<Format, kTiles>(chunks, b);
    __m512i sums[kTiles][kTokens];
    GEN_VNNI_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512i start = _mm512_set1_epi32(row_at(x, x_stride, t)[b].minus_128_sum);
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) sums[i][t] = start;
    }
    GEN_VNNI_UNROLL
    for (int quad = 0; quad < 8; ++quad) {
      __m512i w[kTiles];
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) w[i] = load64(chunks[i].w + b * 512 + quad * 64);
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512i q = splat4(row_at(x, x_stride, t)[b].q + quad * 4);
        GEN_VNNI_UNROLL
        for (size_t i = 0; i < kTiles; ++i) sums[i][t] = _mm512_dpbusd_epi32(sums[i][t], w[i], q);
      }
    }
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      const __m512 scale = _mm512_load_ps(chunks[i].scales + b * kTileRows);
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512 x_scale = _mm512_set1_ps(row_at(x, x_stride, t)[b].scale);
        acc[i][t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, x_scale), _mm512_cvtepi32_ps(sums[i][t]),
                                    acc[i][t]);
      }
    }
  }
}

// The same for blocks of 256 in kRuns runs.
template <typename Format, size_t kTiles, size_t kTokens>
GEN_VNNI_INLINE void add_chunk_k(const Chunk* chunks, const ActQ8KBlock* x, size_t x_stride,
                                 int64_t cols, __m512 (&acc)[kTiles][kTokens]) {
  constexpr int kQuads = 64 / Format::kRuns;
  for (int64_t b = 0; b < cols / 256; ++b) {
    __m512 scaled[kTiles][kTokens];
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) scaled[i][t] = _mm512_setzero_ps();
    }
    for (int s = 0; s < Format::kRuns; ++s) {
      fetch_next<Format, kTiles>(chunks, b * Format::kRuns + s);
      __m512i sums[kTiles][kTokens];
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512i start = Format::kMinima
                                  ? _mm512_setzero_si512()
                                  : _mm512_set1_epi32(row_at(x, x_stride, t)[b].minus_32_sum[s]);
        GEN_VNNI_UNROLL
        for (size_t i = 0; i < kTiles; ++i) sums[i][t] = start;
      }
      GEN_VNNI_UNROLL
      for (int i_quad = 0; i_quad < kQuads; ++i_quad) {
        const int quad = s * kQuads + i_quad;
        __m512i w[kTiles];
        GEN_VNNI_UNROLL
        for (size_t i = 0; i < kTiles; ++i) w[i] = load64(chunks[i].w + b * 4096 + quad * 64);
        GEN_VNNI_UNROLL
        for (size_t t = 0; t < kTokens; ++t) {
          const __m512i q = splat4(row_at(x, x_stride, t)[b].q + quad * 4);
          GEN_VNNI_UNROLL
          for (size_t i = 0; i < kTiles; ++i) sums[i][t] = _mm512_dpbusd_epi32(sums[i][t], w[i], q);
        }
      }
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) {
        const __m512 scale = _mm512_load_ps(chunks[i].scales + (b * Format::kRuns + s) * kTileRows);
        GEN_VNNI_UNROLL
        for (size_t t = 0; t < kTokens; ++t) {
          scaled[i][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[i][t]), scale, scaled[i][t]);
        }
      }
    }
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      const __m512 d = _mm512_load_ps(chunks[i].d + b * kTileRows);
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512 x_scale = _mm512_set1_ps(row_at(x, x_stride, t)[b].scale);
        acc[i][t] = _mm512_fmadd_ps(_mm512_mul_ps(d, x_scale), scaled[i][t], acc[i][t]);
      }
    }
    if constexpr (Format::kMinima) {
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) {
        const __m512 dmin = _mm512_load_ps(chunks[i].dmin + b * kTileRows);
        const int16_t* pairs = chunks[i].minima + b * 8 * kTileRows;
        GEN_VNNI_UNROLL
        for (size_t t = 0; t < kTokens; ++t) {
          const ActQ8KBlock& row = row_at(x, x_stride, t)[b];
          __m512i minima = _mm512_setzero_si512();
          GEN_VNNI_UNROLL
          for (int pair = 0; pair < 4; ++pair) {
            minima = _mm512_dpwssd_epi32(minima, load64(pairs + pair * 2 * kTileRows),
                                         splat4(row.sum32 + 2 * pair));
          }
          acc[i][t] = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, _mm512_set1_ps(row.scale)),
                                       _mm512_cvtepi32_ps(minima), acc[i][t]);
        }
      }
    }
  }
}

template <typename Format, size_t kTiles, size_t kTokens>
GEN_VNNI_INLINE void add_rows(const TileJob& job, int64_t tile, int64_t row, int64_t first,
                              int64_t cols, const Chunk* chunks) {
  const auto* x = reinterpret_cast<const typename Format::Block*>(job.x + static_cast<size_t>(row) *
                                                                              job.x_stride) +
                  first / Format::kBlockCols;
  float* out = job.acc + row * job.acc_stride + tile * kTileRows;
  __m512 acc[kTiles][kTokens];
  GEN_VNNI_UNROLL
  for (size_t i = 0; i < kTiles; ++i) {
    GEN_VNNI_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const float* p = out + static_cast<int64_t>(t) * job.acc_stride + i * kTileRows;
      acc[i][t] = first == 0 ? _mm512_setzero_ps() : _mm512_load_ps(p);
    }
  }
  if constexpr (Format::kBlockCols == 32) {
    add_chunk<Format, kTiles, kTokens>(chunks, x, job.x_stride, cols, acc);
  } else {
    add_chunk_k<Format, kTiles, kTokens>(chunks, x, job.x_stride, cols, acc);
  }
  GEN_VNNI_UNROLL
  for (size_t i = 0; i < kTiles; ++i) {
    GEN_VNNI_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      _mm512_store_ps(out + static_cast<int64_t>(t) * job.acc_stride + i * kTileRows, acc[i][t]);
    }
  }
}

// Tiles [tile, tile + kTiles) times all rows.
template <typename Format, size_t kTiles>
void run_tiles(const TileJob& job, int64_t tile) {
  constexpr int64_t kTokens = 4;
  auto* scratch = reinterpret_cast<ChunkScratch*>(job.scratch);
  for (int64_t first = 0; first < job.cols; first += kChunkCols) {
    const int64_t cols = job.cols - first < kChunkCols ? job.cols - first : kChunkCols;
    Chunk chunks[kTiles];
    for (size_t i = 0; i < kTiles; ++i) {
      const std::byte* at = job.tiles + (static_cast<size_t>(tile) + i) * job.tile_bytes;
      chunks[i] = Format::decode(at, job.cols, first, cols, scratch[i]);
      // Columns of the same tile, or the first ones of the tile that takes its place.
      const bool last = first + cols == job.cols;
      chunks[i].next =
          reinterpret_cast<uintptr_t>(Format::at(at, job.cols, last ? 0 : first + cols)) +
          (last ? kTiles * job.tile_bytes : 0);
    }
    int64_t t = 0;
    for (; t + kTokens <= job.rows; t += kTokens) {
      add_rows<Format, kTiles, kTokens>(job, tile, t, first, cols, chunks);
      // Once is enough.
      for (Chunk& chunk : chunks) chunk.next = 0;
    }
    switch (job.rows - t) {
      case 3:
        add_rows<Format, kTiles, 3>(job, tile, t, first, cols, chunks);
        break;
      case 2:
        add_rows<Format, kTiles, 2>(job, tile, t, first, cols, chunks);
        break;
      case 1:
        add_rows<Format, kTiles, 1>(job, tile, t, first, cols, chunks);
        break;
      default:
        break;
    }
  }
}

template <typename Format>
GEN_VNNI_INLINE void run_rows(const TileJob& job) {
  int64_t tile = 0;
  for (; tile + 2 <= job.n_tiles; tile += 2) run_tiles<Format, 2>(job, tile);
  if (tile < job.n_tiles) run_tiles<Format, 1>(job, tile);
}

#define GEN_VNNI_KERNEL(name, Format)                                              \
  void linear_##name(const TileJob& job) {                                         \
    if (job.rows > 1) {                                                            \
      run_rows<Format>(job);                                                       \
      return;                                                                      \
    }                                                                              \
    for (int64_t i = 0; i < job.n_tiles; ++i) {                                    \
      const std::byte* tile = job.tiles + static_cast<size_t>(i) * job.tile_bytes; \
      _mm512_store_ps(job.acc + i * kTileRows, row_##name(job, tile));             \
    }                                                                              \
  }
GEN_VNNI_KERNEL(q8_0, FormatQ8_0)
GEN_VNNI_KERNEL(q4_0, FormatQ4_0)
GEN_VNNI_KERNEL(q4_k, FormatQ4_K)
GEN_VNNI_KERNEL(q6_k, FormatQ6_K)
#undef GEN_VNNI_KERNEL

constexpr QuantKernels kVnniKernels = {linear_q8_0, linear_q4_0, linear_q4_k, linear_q6_k};
constexpr size_t kScratchBytes = 2 * sizeof(ChunkScratch);

}  // namespace
}  // namespace gen::engine::cpu

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif

namespace gen::engine::cpu {

static_assert(kScratchBytes <= kTileScratchBytes);
const QuantKernels* quant_kernels_vnni() noexcept { return &kVnniKernels; }

}  // namespace gen::engine::cpu

#else

namespace gen::engine::cpu {

const QuantKernels* quant_kernels_vnni() noexcept { return nullptr; }

}  // namespace gen::engine::cpu

#endif

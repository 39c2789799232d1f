// SPDX-License-Identifier: Apache-2.0
// Products of quantised weights with several rows of x, by 8-bit dot products. The order of
// operations is that of linear_scalar.cpp; the bits are the same.
//   Work:   columns are processed in chunks. A chunk of two tiles is decoded to plain bytes in the
//           L1 cache and multiplied with four rows of x at a time; sums stay in `acc` between
//           chunks. Decoding reduces the types to a few kinds of product (Kind) by shifting their
//           zero point.
//   Speed:  docs/speed.md. With blocks of 32, the scales limit it to 73 % of the vpdpbusd peak.
//   Read next: vnni-inl.h, activations.h.
#include "engine/cpu/linear/linear_vnni.h"

#include "engine/cpu/pack/activations.h"
#include "engine/cpu/simd/vnni_region.h"
#include "engine/cpu/weight/weight_layout.h"

#if GEN_VNNI
GEN_VNNI_BEGIN
namespace gen::engine::cpu {
namespace {

#include "engine/cpu/simd/vnni-inl.h"

// Columns per chunk: two tiles are 16 KiB of bytes, a third of the L1 cache.
constexpr int64_t kChunkCols = 512;
constexpr int64_t kChunkBytes = kChunkCols * kTileRows;

// The kinds of product that remain after decoding.
struct Kind {
  int block;
  int run;
  int zero;
  bool minima;
};
constexpr Kind kind_of(const Traits& t) {
  const int zero = t.block == 32 || t.run == 32 ? 128 : t.zero > 32 ? 64 : 32;
  return {t.block, t.run, t.minima ? 0 : zero, t.minima};
}

// A decoded chunk of one tile.
struct Chunk {
  const uint8_t* w;       // quads, one after another
  const float* scales;    // [runs][16]
  const float* d;         // [blocks][16]; for blocks of 32 these are the scales, [runs][16]
  const float* dmin;      // [blocks][16], with minima
  const int16_t* minima;  // [blocks][runs / 2][16][2], blocks of 256 with minima
  // The next weights, to be prefetched while these are multiplied (0 for none), and their size per
  // run in bytes.
  uintptr_t next;
  size_t run_bytes;
};

// The layout of a decoded chunk in scratch memory.
struct ChunkScratch {
  alignas(64) uint8_t w[kChunkBytes];
  float scales[kChunkCols / 16 * kTileRows];
  float d[kChunkCols / 16 * kTileRows];
  float dmin[kChunkCols / 32 * kTileRows];
  int16_t minima[kChunkCols / 256 * 8 * kTileRows * 2];
};

// Columns [first, first + cols) of a tile.
template <Traits t>
void decode_chunk(const std::byte* tile, int64_t tile_cols, int64_t first, int64_t cols,
                  ChunkScratch& scratch, Chunk& chunk) {
  const int64_t first_block = first / t.block;
  const auto* dmin = reinterpret_cast<const uint16_t*>(tile + dmin_offset(t, tile_cols));
  const auto* block = reinterpret_cast<const uint8_t*>(tile + blocks_offset(t, tile_cols)) +
                      static_cast<size_t>(first_block) * block_bytes(t);
  chunk = {t.bits == 8 ? block : scratch.w,
           scratch.scales,
           scratch.d,
           scratch.dmin,
           scratch.minima,
           reinterpret_cast<uintptr_t>(block),
           block_bytes(t) / static_cast<size_t>(runs_of(t))};
  const __m512i move = _mm512_set1_epi8(static_cast<char>(kind_of(t).zero - t.zero));
  uint8_t* out = scratch.w;
  for (int64_t b = 0; b < cols / t.block; ++b, block += block_bytes(t)) {
    for (int i = 0; i < scales_of(t); ++i) {
      _mm512_store_ps(scratch.d + (b * scales_of(t) + i) * kTileRows,
                      load_d<t>(tile, (first_block + b) * scales_of(t) + i));
    }
    if constexpr (t.minima) {
      _mm512_store_ps(scratch.dmin + b * kTileRows,
                      load_units<t>(dmin + (first_block + b) * kTileRows));
    }
    if constexpr (t.block == 256) {
      for (int run = 0; run < runs_of(t); ++run) {
        _mm512_store_ps(scratch.scales + (b * runs_of(t) + run) * kTileRows,
                        load_scales<t>(block, run));
      }
      for (int pair = 0; t.minima && pair < runs_of(t) / 2; ++pair) {
        _mm512_store_si512(scratch.minima + (b * runs_of(t) / 2 + pair) * 2 * kTileRows,
                           load_minima<t>(block, pair));
      }
    }
    if constexpr (t.bits < 8) {
      const uint8_t* codes = block + codes_offset(t);
      for (int sub_block = 0; sub_block < t.block / 32;
           ++sub_block, codes += sub_block_bytes(t), out += 512) {
        __m512i w[8];
        decode_sub_block<t>(codes, w);
        GEN_VNNI_UNROLL
        for (int quad = 0; quad < 8; ++quad) {
          _mm512_store_si512(out + quad * 64, _mm512_add_epi8(w[quad], move));
        }
      }
    }
  }
}
using DecodeChunk = void (*)(const std::byte*, int64_t, int64_t, int64_t, ChunkScratch&, Chunk&);

template <typename Block>
GEN_VNNI_INLINE const Block* row_at(const Block* x, size_t stride, size_t t) {
  return reinterpret_cast<const Block*>(reinterpret_cast<const std::byte*>(x) + t * stride);
}

// Prefetches the next weights, run by run.
template <size_t kTiles>
GEN_VNNI_INLINE void fetch_next(const Chunk* chunks, int64_t step) {
  for (size_t i = 0; i < kTiles; ++i) {
    const uintptr_t from = chunks[i].next + static_cast<size_t>(step) * chunks[i].run_bytes;
    for (uintptr_t at = (from + 63) & ~uintptr_t{63}; at < from + chunks[i].run_bytes; at += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
    }
  }
}

// The initial sums of the run that begins at `first` of a block of 32.
template <Kind kind>
GEN_VNNI_INLINE __m512i start_of(const ActQ8Block& x, int first) {
  if constexpr (kind.minima) return _mm512_setzero_si512();
  if constexpr (kind.run == 16) return minus_128_sum_of_16(x.q + first);
  return _mm512_set1_epi32(x.minus_128_sum);
}

// Adds a chunk of kTiles tiles times kTokens rows to acc. Blocks of 32.
template <Kind kind, size_t kTiles, size_t kTokens>
GEN_VNNI_INLINE void add_chunk(const Chunk* chunks, const ActQ8Block* x, size_t x_stride,
                               int64_t cols, __m512 (&acc)[kTiles][kTokens]) {
  constexpr int kQuads = kind.run / 4;
  for (int64_t run = 0; run < cols / kind.run; ++run) {
    const int64_t b = run / (32 / kind.run);
    const auto first = static_cast<int>(run % (32 / kind.run)) * kind.run;
    fetch_next<kTiles>(chunks, run);
    __m512i sums[kTiles][kTokens];
    GEN_VNNI_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      const __m512i start = start_of<kind>(row_at(x, x_stride, t)[b], first);
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) sums[i][t] = start;
    }
    GEN_VNNI_UNROLL
    for (int quad = 0; quad < kQuads; ++quad) {
      __m512i w[kTiles];
      GEN_VNNI_UNROLL
      for (size_t i = 0; i < kTiles; ++i) {
        w[i] = load64(chunks[i].w + (run * kQuads + quad) * 64);
      }
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512i q = splat4(row_at(x, x_stride, t)[b].q + first + quad * 4);
        GEN_VNNI_UNROLL
        for (size_t i = 0; i < kTiles; ++i) sums[i][t] = _mm512_dpbusd_epi32(sums[i][t], w[i], q);
      }
    }
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      const __m512 scale = _mm512_load_ps(chunks[i].d + run * kTileRows);
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const ActQ8Block& row = row_at(x, x_stride, t)[b];
        const __m512 x_scale = _mm512_set1_ps(row.scale);
        acc[i][t] = _mm512_fmadd_ps(_mm512_mul_ps(scale, x_scale), _mm512_cvtepi32_ps(sums[i][t]),
                                    acc[i][t]);
        if constexpr (kind.minima) {
          const __m512 m = _mm512_load_ps(chunks[i].dmin + b * kTileRows);
          const __m512 x_sum = _mm512_set1_ps(static_cast<float>(row.minus_128_sum) * -0x1p-7F);
          acc[i][t] = _mm512_fmadd_ps(_mm512_mul_ps(m, x_scale), x_sum, acc[i][t]);
        }
      }
    }
  }
}

// The initial sums of run `run`.
template <Kind kind>
GEN_VNNI_INLINE __m512i start_of(const ActQ8KBlock& x, int run) {
  if constexpr (kind.zero == 32) return _mm512_set1_epi32(x.minus_32_sum[run]);
  if constexpr (kind.zero == 64) return _mm512_set1_epi32(2 * x.minus_32_sum[run]);
  if constexpr (kind.zero == 128) return _mm512_set1_epi32(-128 * x.sum32[run]);
  return _mm512_setzero_si512();
}

// acc -= dmin * x.scale * the sum over runs of minimum times sum of x, for block `b` of a chunk.
template <Kind kind, size_t kTokens>
GEN_VNNI_INLINE void subtract_minima(const Chunk& chunk, const ActQ8KBlock* x, size_t x_stride,
                                     int64_t b, __m512 (&acc)[kTokens]) {
  constexpr int kPairs = kind.block / kind.run / 2;
  const __m512 dmin = _mm512_load_ps(chunk.dmin + b * kTileRows);
  const int16_t* pairs = chunk.minima + b * kPairs * 2 * kTileRows;
  GEN_VNNI_UNROLL
  for (size_t t = 0; t < kTokens; ++t) {
    const ActQ8KBlock& row = row_at(x, x_stride, t)[b];
    const int16_t* sums = kind.run == 16 ? row.sum16 : row.sum32;
    __m512i minima = _mm512_setzero_si512();
    GEN_VNNI_UNROLL
    for (int pair = 0; pair < kPairs; ++pair) {
      minima = _mm512_dpwssd_epi32(minima, load64(pairs + pair * 2 * kTileRows),
                                   splat4(sums + 2 * pair));
    }
    acc[t] = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, _mm512_set1_ps(row.scale)),
                              _mm512_cvtepi32_ps(minima), acc[t]);
  }
}

// The same for blocks of 256.
template <Kind kind, size_t kTiles, size_t kTokens>
GEN_VNNI_INLINE void add_chunk(const Chunk* chunks, const ActQ8KBlock* x, size_t x_stride,
                               int64_t cols, __m512 (&acc)[kTiles][kTokens]) {
  constexpr int kRuns = kind.block / kind.run;
  constexpr int kQuads = kind.run / 4;
  for (int64_t b = 0; b < cols / 256; ++b) {
    __m512 scaled[kTiles][kTokens];
    GEN_VNNI_UNROLL
    for (size_t i = 0; i < kTiles; ++i) {
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) scaled[i][t] = _mm512_setzero_ps();
    }
    for (int run = 0; run < kRuns; ++run) {
      fetch_next<kTiles>(chunks, b * kRuns + run);
      __m512i sums[kTiles][kTokens];
      GEN_VNNI_UNROLL
      for (size_t t = 0; t < kTokens; ++t) {
        const __m512i start = start_of<kind>(row_at(x, x_stride, t)[b], run);
        GEN_VNNI_UNROLL
        for (size_t i = 0; i < kTiles; ++i) sums[i][t] = start;
      }
      GEN_VNNI_UNROLL
      for (int i_quad = 0; i_quad < kQuads; ++i_quad) {
        const int quad = run * kQuads + i_quad;
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
        const __m512 scale = _mm512_load_ps(chunks[i].scales + (b * kRuns + run) * kTileRows);
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
      if constexpr (kind.minima) subtract_minima<kind>(chunks[i], x, x_stride, b, acc[i]);
    }
  }
}

template <Kind kind, size_t kTiles, size_t kTokens>
void add_rows(const TileJob& job, int64_t tile, int64_t row, int64_t first, int64_t cols,
              const Chunk* chunks) {
  using Block = std::conditional_t<kind.block == 32, ActQ8Block, ActQ8KBlock>;
  const auto* x = reinterpret_cast<const Block*>(job.x + static_cast<size_t>(row) * job.x_stride) +
                  first / kind.block;
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
  add_chunk<kind, kTiles, kTokens>(chunks, x, job.x_stride, cols, acc);
  GEN_VNNI_UNROLL
  for (size_t i = 0; i < kTiles; ++i) {
    GEN_VNNI_UNROLL
    for (size_t t = 0; t < kTokens; ++t) {
      _mm512_store_ps(out + static_cast<int64_t>(t) * job.acc_stride + i * kTileRows, acc[i][t]);
    }
  }
}

// Tiles [tile, tile + kTiles) times all rows.
template <Kind kind, size_t kTiles>
void run_tiles(const TileJob& job, DecodeChunk decode, int64_t tile) {
  constexpr int64_t kTokens = 4;
  const auto groups = static_cast<size_t>((job.rows + kTokens - 1) / kTokens);
  auto* scratch = reinterpret_cast<ChunkScratch*>(job.scratch);
  uintptr_t tile_starts[kTiles];
  for (int64_t first = 0; first < job.cols; first += kChunkCols) {
    const int64_t cols = job.cols - first < kChunkCols ? job.cols - first : kChunkCols;
    const auto runs = static_cast<size_t>(cols / kind.run);
    Chunk chunks[kTiles];
    for (size_t i = 0; i < kTiles; ++i) {
      const std::byte* at = job.tiles + (static_cast<size_t>(tile) + i) * job.tile_bytes;
      decode(at, job.cols, first, cols, scratch[i], chunks[i]);
      if (first == 0) tile_starts[i] = chunks[i].next;
      // The next columns of this tile, or the first ones of the next tile. Each group of rows
      // prefetches its share, since a burst of prefetches would stall.
      const bool last = first + cols == job.cols;
      chunks[i].next = last ? tile_starts[i] + kTiles * job.tile_bytes
                            : chunks[i].next + chunks[i].run_bytes * runs;
      chunks[i].run_bytes = (chunks[i].run_bytes + groups - 1) / groups;
    }
    int64_t t = 0;
    for (; t + kTokens <= job.rows; t += kTokens) {
      add_rows<kind, kTiles, kTokens>(job, tile, t, first, cols, chunks);
      for (Chunk& chunk : chunks) chunk.next += chunk.run_bytes * runs;
    }
    switch (job.rows - t) {
      case 3:
        add_rows<kind, kTiles, 3>(job, tile, t, first, cols, chunks);
        break;
      case 2:
        add_rows<kind, kTiles, 2>(job, tile, t, first, cols, chunks);
        break;
      case 1:
        add_rows<kind, kTiles, 1>(job, tile, t, first, cols, chunks);
        break;
      default:
        break;
    }
  }
}

template <Kind kind>
void run_rows(const TileJob& job, DecodeChunk decode) {
  int64_t tile = 0;
  for (; tile + 2 <= job.n_tiles; tile += 2) run_tiles<kind, 2>(job, decode, tile);
  if (tile < job.n_tiles) run_tiles<kind, 1>(job, decode, tile);
}

template <size_t kIndex>
void linear(const TileJob& job) {
  constexpr Traits t = quant::kTraits[kIndex];
  if (job.rows == 1) return vnni_row_kernels().of[kIndex](job);
  run_rows<kind_of(t)>(job, decode_chunk<t>);
}

template <size_t... kIndices>
constexpr QuantKernels all_kernels(std::index_sequence<kIndices...>) {
  return {{linear<kIndices>...}};
}
constexpr QuantKernels kVnniKernels = all_kernels(kQuantIndices);
constexpr size_t kScratchBytes = 2 * sizeof(ChunkScratch);

}  // namespace
}  // namespace gen::engine::cpu
GEN_VNNI_END

namespace gen::engine::cpu {

static_assert(kScratchBytes <= kTileScratchBytes);
const QuantKernels* quant_kernels_vnni() noexcept { return &kVnniKernels; }

}  // namespace gen::engine::cpu

#else

namespace gen::engine::cpu {

const QuantKernels* quant_kernels_vnni() noexcept { return nullptr; }

}  // namespace gen::engine::cpu

#endif

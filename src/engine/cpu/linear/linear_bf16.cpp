// SPDX-License-Identifier: Apache-2.0
// Products of BF16 weights by bfloat16 dot products (vdpbf16ps), at level avx512_bf16 only. These
// are the only kernels whose bits differ between levels.
//   acc[t][n] = sum of dots over pairs of columns ascending, from 0; the same for any number of
//   rows. A dot adds the product of the odd column, then that of the even one, each fused and
//   rounded to nearest even; subnormal inputs and results are flushed to 0.
//   Work:   one row of x is multiplied with four tiles at a time; several rows with two tiles,
//           eight rows at a time.
//   Error:  at most cols * 2^-24 * sum |w x|, besides the rounding of x to 8 bits.
//   Speed:  docs/speed.md. Some processors with the instruction are not faster: see base/cpu.h.
#include "engine/cpu/linear/linear_bf16.h"

#include "engine/cpu/weight/weight_layout.h"

#if GEN_BF16
GEN_BF16_BEGIN
namespace gen::engine::cpu {
namespace {

#define GEN_BF16_INLINE inline __attribute__((always_inline))

// Pairs of columns per run: 16 KiB of two tiles stay in the L1 cache for all rows.
constexpr int64_t kRunPairs = 128;
// Prefetch distance of weights; the address may be invalid.
constexpr int64_t kAheadBytes = 2048;
constexpr size_t kTokensAtOnce = 8;

// The work of one kernel call: pairs [first, first + count) of tiles from `tile` on, rows from
// `row` on.
struct Panel {
  int64_t tile;
  int64_t first;
  int64_t count;
  int64_t row;
};

GEN_BF16_INLINE __m512bh splat_pair(const std::byte* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, sizeof(pair));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

template <size_t kTiles, size_t kTokens, bool kFetch>
void add_panel(const TileJob& job, const Panel& panel) {
  const std::byte* w =
      job.tiles + static_cast<size_t>(panel.tile) * job.tile_bytes + panel.first * 64;
  const std::byte* x[kTokens];
  __m512 acc[kTiles][kTokens];
  float* out = job.acc + panel.row * job.acc_stride + panel.tile * kTileRows;
  GEN_VNNI_UNROLL
  for (size_t b = 0; b < kTokens; ++b) {
    x[b] = job.x + (static_cast<size_t>(panel.row) + b) * job.x_stride + panel.first * 4;
    GEN_VNNI_UNROLL
    for (size_t a = 0; a < kTiles; ++a) {
      const float* sum = out + static_cast<int64_t>(b) * job.acc_stride + a * kTileRows;
      acc[a][b] = panel.first == 0 ? _mm512_setzero_ps() : _mm512_load_ps(sum);
    }
  }
  for (int64_t k = 0; k < panel.count; ++k) {
    __m512bh weight[kTiles];
    GEN_VNNI_UNROLL
    for (size_t a = 0; a < kTiles; ++a) {
      const std::byte* at = w + a * job.tile_bytes + k * 64;
      if constexpr (kFetch) {
        const auto ahead = reinterpret_cast<uintptr_t>(at) + kAheadBytes;
        _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
      }
      weight[a] = reinterpret_cast<__m512bh>(_mm512_load_si512(at));
    }
    GEN_VNNI_UNROLL
    for (size_t b = 0; b < kTokens; ++b) {
      const __m512bh pair = splat_pair(x[b] + k * 4);
      GEN_VNNI_UNROLL
      for (size_t a = 0; a < kTiles; ++a) {
        acc[a][b] = _mm512_dpbf16_ps(acc[a][b], weight[a], pair);
      }
    }
  }
  GEN_VNNI_UNROLL
  for (size_t b = 0; b < kTokens; ++b) {
    GEN_VNNI_UNROLL
    for (size_t a = 0; a < kTiles; ++a) {
      _mm512_store_ps(out + static_cast<int64_t>(b) * job.acc_stride + a * kTileRows, acc[a][b]);
    }
  }
}

// The last rows, at most kTokens.
template <size_t kTiles, size_t kTokens, bool kFetch>
void last_rows(const TileJob& job, const Panel& panel) {
  if (job.rows - panel.row == static_cast<int64_t>(kTokens)) {
    add_panel<kTiles, kTokens, kFetch>(job, panel);
  } else if constexpr (kTokens > 1) {
    last_rows<kTiles, kTokens - 1, kFetch>(job, panel);
  }
}

// All columns and rows of kTiles tiles. The first rows of a run prefetch the next weights.
template <size_t kTiles>
void run_tiles(const TileJob& job, int64_t tile) {
  constexpr auto kStep = static_cast<int64_t>(kTokensAtOnce);
  const int64_t pairs = (job.cols + 1) / 2;
  for (int64_t first = 0; first < pairs; first += kRunPairs) {
    Panel panel = {tile, first, pairs - first < kRunPairs ? pairs - first : kRunPairs, 0};
    if (job.rows < kStep) {
      last_rows<kTiles, kTokensAtOnce, true>(job, panel);
      continue;
    }
    add_panel<kTiles, kTokensAtOnce, true>(job, panel);
    for (panel.row = kStep; panel.row + kStep <= job.rows; panel.row += kStep) {
      add_panel<kTiles, kTokensAtOnce, false>(job, panel);
    }
    last_rows<kTiles, kTokensAtOnce, false>(job, panel);
  }
}

}  // namespace

void linear_bf16_dots(const TileJob& job) {
  int64_t tile = 0;
  if (job.rows == 1) {
    // Several tiles at once, since a single chain of sums is bound by latency.
    for (; tile + 4 <= job.n_tiles; tile += 4) {
      add_panel<4, 1, true>(job, {tile, 0, (job.cols + 1) / 2, 0});
    }
  }
  for (; tile + 2 <= job.n_tiles; tile += 2) run_tiles<2>(job, tile);
  if (tile < job.n_tiles) run_tiles<1>(job, tile);
}

}  // namespace gen::engine::cpu
GEN_BF16_END
#endif

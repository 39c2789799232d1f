// SPDX-License-Identifier: Apache-2.0
// Bodies of low_rank.h, compiled once per target.
//   Work:   blocks of up to four rows: in, with two ranks or more; out, with two runs of sixteen
//           columns or more through all ranks. A sum's order does not depend on the block.
//   Needs:  no alignment.
//   Error:  that of sums of n and of rank products, each rounded once.

#if defined(GEN_ENGINE_CPU_LOW_RANK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LOW_RANK_INL_H_
#undef GEN_ENGINE_CPU_LOW_RANK_INL_H_
#else
#define GEN_ENGINE_CPU_LOW_RANK_INL_H_
#endif

#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

// Accumulators of a block: as many as the registers hold beside what they are fed.
constexpr int64_t kLowRankSums = kNativeLanes == kLanes ? 8 : 4;

/// `Rows` rows of x times `Ranks` rows of A.
template <int64_t Rows, int64_t Ranks>
HWY_INLINE void low_rank_in_block(const float* a, int64_t n, float scale, const float* const* x,
                                  float* const* u) {
  Lanes16 sums[Rows][Ranks];
  for (auto& row : sums) {
    for (Lanes16& sum : row) sum = splat(0.0F);
  }
  const auto step = [&](const auto& at) {
    Lanes16 of[Ranks];
    for (int64_t r = 0; r < Ranks; ++r) of[r] = at(a + r * n);
    for (int64_t t = 0; t < Rows; ++t) {
      const Lanes16 value = at(x[t]);
      for (int64_t r = 0; r < Ranks; ++r) sums[t][r] = fma(of[r], value, sums[t][r]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step([&](const float* p) { return load(p + i); });
  if (i < n) step([&](const float* p) { return load_first(p + i, n - i); });
  for (int64_t t = 0; t < Rows; ++t) {
    for (int64_t r = 0; r < Ranks; ++r) u[t][r] = scale * sum_lanes(sums[t][r]);
  }
}

template <int64_t Rows>
HWY_INLINE void low_rank_in_rows(const float* a, int64_t n, int64_t rank, float scale,
                                 const float* const* x, float* const* u) {
  constexpr int64_t kRanks = kLowRankSums / Rows;
  float* places[Rows];
  for (int64_t t = 0; t < Rows; ++t) places[t] = u[t];
  const auto take = [&](const auto& block, int64_t ranks) {
    block(a, n, scale, x, places);
    a += ranks * n;
    for (float*& place : places) place += ranks;
  };
  int64_t r = 0;
  for (; r + kRanks <= rank; r += kRanks) take(low_rank_in_block<Rows, kRanks>, kRanks);
  for (; r < rank; ++r) take(low_rank_in_block<Rows, 1>, 1);
}

inline void low_rank_in(const float* a, int64_t n, int64_t rank, float scale, const float* const* x,
                        float* const* u, int64_t rows) {
  int64_t t = 0;
  for (; t + 4 <= rows; t += 4) low_rank_in_rows<4>(a, n, rank, scale, x + t, u + t);
  for (; t + 2 <= rows; t += 2) low_rank_in_rows<2>(a, n, rank, scale, x + t, u + t);
  if (t < rows) low_rank_in_rows<1>(a, n, rank, scale, x + t, u + t);
}

/// `Runs` times sixteen columns of `Rows` rows.
template <int64_t Rows, int64_t Runs, typename Load, typename Store>
HWY_INLINE void low_rank_out_block(const float* b, int64_t stride, const float* const* u,
                                   int64_t rank, float* const* sums, int64_t i, const Load& load_at,
                                   const Store& store_at) {
  Lanes16 values[Rows][Runs];
  for (auto& row : values) {
    for (Lanes16& value : row) value = splat(0.0F);
  }
  for (int64_t r = 0; r < rank; ++r) {
    Lanes16 of[Runs];
    for (int64_t j = 0; j < Runs; ++j) of[j] = load_at(b + r * stride + i + j * kLanes);
    for (int64_t t = 0; t < Rows; ++t) {
      const Lanes16 factor = splat(u[t][r]);
      for (int64_t j = 0; j < Runs; ++j) values[t][j] = fma(of[j], factor, values[t][j]);
    }
  }
  for (int64_t t = 0; t < Rows; ++t) {
    for (int64_t j = 0; j < Runs; ++j) {
      float* const at = sums[t] + i + j * kLanes;
      store_at(add(load_at(at), values[t][j]), at);
    }
  }
}

template <int64_t Rows>
HWY_INLINE void low_rank_out_rows(const float* b, int64_t stride, const float* const* u,
                                  int64_t rank, float* const* sums, int64_t n) {
  constexpr int64_t kRuns = kLowRankSums / Rows;
  const auto load_at = [](const float* p) { return load(p); };
  const auto store_at = [](Lanes16 x, float* p) { store(x, p); };
  int64_t i = 0;
  for (; i + kRuns * kLanes <= n; i += kRuns * kLanes) {
    low_rank_out_block<Rows, kRuns>(b, stride, u, rank, sums, i, load_at, store_at);
  }
  for (; i + kLanes <= n; i += kLanes) {
    low_rank_out_block<Rows, 1>(b, stride, u, rank, sums, i, load_at, store_at);
  }
  if (i == n) return;
  low_rank_out_block<Rows, 1>(
      b, stride, u, rank, sums, i, [&](const float* p) { return load_first(p, n - i); },
      [&](Lanes16 x, float* p) { store_first(x, p, n - i); });
}

inline void low_rank_out(const float* b, int64_t stride, const float* const* u, int64_t rank,
                         float* const* sums, int64_t rows, int64_t n) {
  int64_t t = 0;
  for (; t + 4 <= rows; t += 4) low_rank_out_rows<4>(b, stride, u + t, rank, sums + t, n);
  for (; t + 2 <= rows; t += 2) low_rank_out_rows<2>(b, stride, u + t, rank, sums + t, n);
  if (t < rows) low_rank_out_rows<1>(b, stride, u + t, rank, sums + t, n);
}

constexpr LowRankKernels kLowRank = {low_rank_in, low_rank_out};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LOW_RANK_INL_H_

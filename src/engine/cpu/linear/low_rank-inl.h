// SPDX-License-Identifier: Apache-2.0
// Bodies of low_rank.h, compiled once per target.
//   Work:   in, four rows by four ranks, over as many columns as stay in the L1 cache; out, eight
//           rows by two runs of sixteen columns through all ranks; fewer rows by more of the other.
//           A sum's order does not depend on the block.
//   Needs:  no alignment.
//   Error:  that of sums of n and of rank products, each rounded once.

#if defined(GEN_ENGINE_CPU_LOW_RANK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_LOW_RANK_INL_H_
#undef GEN_ENGINE_CPU_LOW_RANK_INL_H_
#else
#define GEN_ENGINE_CPU_LOW_RANK_INL_H_
#endif

#include <algorithm>

#include "engine/cpu/linear/low_rank.h"
#include "engine/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

// Accumulators of a block: as many as the registers hold beside what they are fed.
constexpr int64_t kLowRankSums = kNativeLanes == kLanes ? 16 : 4;
// Ranks at a time, and columns of them and of the rows that stay in the L1 cache.
constexpr int64_t kLowRankRanks = 16;
constexpr int64_t kLowRankColumns = 256;

/// Adds columns [begin, end) of `Rows` rows of x times `Ranks` rows of A to `sums`, sixteen lanes
/// for each, kLowRankRanks of them for each row of x.
template <int64_t Rows, int64_t Ranks>
HWY_INLINE void low_rank_in_block(const float* a, int64_t n, int64_t begin, int64_t end,
                                  const float* const* x, float* sums) {
  const auto at = [&](int64_t t, int64_t r) { return sums + (t * kLowRankRanks + r) * kLanes; };
  Lanes16 values[static_cast<size_t>(Rows)][static_cast<size_t>(Ranks)];
  for (int64_t t = 0; t < Rows; ++t) {
    for (int64_t r = 0; r < Ranks; ++r) values[t][r] = load(at(t, r));
  }
  const auto step = [&](const auto& part) {
    Lanes16 of[static_cast<size_t>(Ranks)];
    for (int64_t r = 0; r < Ranks; ++r) of[r] = part(a + r * n);
    for (int64_t t = 0; t < Rows; ++t) {
      const Lanes16 row = part(x[t]);
      for (int64_t r = 0; r < Ranks; ++r) values[t][r] = fma(of[r], row, values[t][r]);
    }
  };
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes) step([&](const float* p) { return load(p + i); });
  if (i < end) step([&](const float* p) { return load_first(p + i, end - i); });
  for (int64_t t = 0; t < Rows; ++t) {
    for (int64_t r = 0; r < Ranks; ++r) store(values[t][r], at(t, r));
  }
}

template <int64_t Rows>
HWY_INLINE void low_rank_in_rows(const float* a, int64_t n, int64_t begin, int64_t end,
                                 int64_t ranks, const float* const* x, float* sums) {
  constexpr int64_t kRanks = kLowRankSums / Rows;
  int64_t r = 0;
  for (; r + kRanks <= ranks; r += kRanks) {
    low_rank_in_block<Rows, kRanks>(a + r * n, n, begin, end, x, sums + r * kLanes);
  }
  for (; r < ranks; ++r) {
    low_rank_in_block<Rows, 1>(a + r * n, n, begin, end, x, sums + r * kLanes);
  }
}

inline void low_rank_in(const float* a, int64_t n, int64_t rank, float scale, const float* const* x,
                        float* const* u, int64_t rows) {
  float sums[kLowRankRows * kLowRankRanks * kLanes];
  for (int64_t first = 0; first < rank; first += kLowRankRanks, a += kLowRankRanks * n) {
    const int64_t ranks = std::min(kLowRankRanks, rank - first);
    for (int64_t i = 0; i < rows * kLowRankRanks * kLanes; i += kLanes)
      store(splat(0.0F), sums + i);
    for (int64_t begin = 0; begin < n; begin += kLowRankColumns) {
      const int64_t end = std::min(begin + kLowRankColumns, n);
      const auto some = [&](int64_t t) { return sums + t * kLowRankRanks * kLanes; };
      int64_t t = 0;
      for (; t + 4 <= rows; t += 4) low_rank_in_rows<4>(a, n, begin, end, ranks, x + t, some(t));
      for (; t + 2 <= rows; t += 2) low_rank_in_rows<2>(a, n, begin, end, ranks, x + t, some(t));
      if (t < rows) low_rank_in_rows<1>(a, n, begin, end, ranks, x + t, some(t));
    }
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t r = 0; r < ranks; ++r) {
        u[t][first + r] = scale * sum_lanes(load(sums + (t * kLowRankRanks + r) * kLanes));
      }
    }
  }
}

/// `Runs` times sixteen columns of `Rows` rows.
template <int64_t Rows, int64_t Runs, typename Load, typename Store>
HWY_INLINE void low_rank_out_block(const float* b, int64_t stride, const float* const* u,
                                   int64_t rank, float* const* sums, int64_t i, const Load& load_at,
                                   const Store& store_at) {
  Lanes16 values[static_cast<size_t>(Rows)][static_cast<size_t>(Runs)];
  for (auto& row : values) {
    for (Lanes16& value : row) value = splat(0.0F);
  }
  for (int64_t r = 0; r < rank; ++r) {
    Lanes16 of[static_cast<size_t>(Runs)];
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
  constexpr int64_t kRuns = std::min<int64_t>(kLowRankSums / Rows, 8);
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
  constexpr int64_t kRows = kLowRankSums / 2 < 4 ? 4 : kLowRankSums / 2;
  int64_t t = 0;
  for (; t + kRows <= rows; t += kRows) {
    low_rank_out_rows<kRows>(b, stride, u + t, rank, sums + t, n);
  }
  for (; t + 4 <= rows; t += 4) low_rank_out_rows<4>(b, stride, u + t, rank, sums + t, n);
  for (; t + 2 <= rows; t += 2) low_rank_out_rows<2>(b, stride, u + t, rank, sums + t, n);
  if (t < rows) low_rank_out_rows<1>(b, stride, u + t, rank, sums + t, n);
}

constexpr LowRankKernels kLowRank = {low_rank_in, low_rank_out};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_LOW_RANK_INL_H_

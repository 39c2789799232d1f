// SPDX-License-Identifier: Apache-2.0
// adapter_in, and the adapters that products add to their sums. See low_rank.h.
#include "engine/cpu/linear/low_rank.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/linear/low_rank-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/linear/low_rank-inl.h"

#include <algorithm>
#include <bit>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {

const LowRankKernels* low_rank_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kLowRank);
}

namespace {

// With fewer rows, threads share the ranks: a decode step has a row of each sequence.
constexpr int64_t kRowsWorthSharing = 16;

}  // namespace

template <typename Visit>
void LowRankView::each_block(int64_t begin, int64_t end, const Visit& visit) const noexcept {
  constexpr int64_t kWindow = 64;  // rows of a mix are looked for in
  for (int64_t first = begin; first < end; first += kWindow) {
    uint64_t left = ~uint64_t{0} >> (kWindow - std::min(kWindow, end - first));
    while (left != 0) {
      const int32_t of = mix(first + std::countr_zero(left));
      int64_t rows[kLowRankRows];
      int64_t n = 0;
      for (uint64_t rest = left; rest != 0 && n < kLowRankRows; rest &= rest - 1) {
        const int64_t t = first + std::countr_zero(rest);
        if (mix(t) != of) continue;
        rows[n++] = t;
        left &= ~(rest & -rest);
      }
      if (of >= 0) visit(table_ + of * stride_, rows, n);
    }
  }
}

template <typename Visit>
void LowRankView::each_part(const LowRankMix* of, const Visit& visit) const noexcept {
  for (int32_t s = 0; s < n_sites_; ++s) {
    const LowRankMix& here = of[sites_[s].site];
    int64_t place = sites_[s].u;
    for (int32_t i = 0; i < here.n; ++i) {
      visit(s, here.parts[i], place);
      place += here.parts[i].rank;
    }
  }
}

void LowRankView::make(const ConstRows& x, int64_t begin, int64_t end, int32_t index,
                       int32_t shares, const Rows& u) const noexcept {
  each_block(begin, end, [&](const LowRankMix* of, const int64_t* rows, int64_t n) {
    const float* from[kLowRankRows];
    for (int64_t i = 0; i < n; ++i) from[i] = x.row(rows[i]);
    each_part(of, [&](int32_t, const LowRankPart& part, int64_t place) {
      const IndexRange ranks = split_range(part.rank, 1, shares, index);
      if (ranks.begin == ranks.end) return;
      float* to[kLowRankRows];
      for (int64_t i = 0; i < n; ++i) to[i] = u.row(rows[i]) + place + ranks.begin;
      context_.kernels.low_rank->in(context_.at(part.a) + ranks.begin * x.cols, x.cols,
                                    ranks.end - ranks.begin, part.scale, from, to, n);
    });
  });
}

void LowRankView::add(const ConstRows& u, int64_t row, int64_t rows, int32_t gated, int64_t col,
                      int64_t n, float* sums, int64_t stride) const noexcept {
  each_block(row, row + rows, [&](const LowRankMix* of, const int64_t* numbers, int64_t count) {
    each_part(of, [&](int32_t s, const LowRankPart& part, int64_t place) {
      if (gated >= 0 && s != gated) return;
      const LowRankSite& site = sites_[s];
      const int64_t begin = std::max(col, site.first);
      const int64_t end = std::min(col + n, site.first + site.cols);
      if (begin >= end) return;
      const float* from[kLowRankRows];
      float* to[kLowRankRows];
      for (int64_t i = 0; i < count; ++i) {
        from[i] = u.row(numbers[i]) + place;
        to[i] = sums + (numbers[i] - row) * stride + (begin - col);
      }
      context_.kernels.low_rank->out(context_.at(part.b) + (begin - site.first), site.cols, from,
                                     part.rank, to, count, end - begin);
    });
  });
}

Status run(CpuContext& context, const AdapterInArgs& args) {
  const LowRankView low_rank(context, args.low_rank);
  if (context.dry_run || !low_rank.present()) return {};
  const ConstRows x = context.at(args.x);
  const Rows u = context.at(args.u);
  if (x.rows >= kRowsWorthSharing) {
    parallel_rows(context, x.rows, x.cols * u.cols, [&](int64_t begin, int64_t end, int32_t) {
      low_rank.make(x, begin, end, 0, 1, u);
    });
  } else if (x.rows * x.cols * u.cols < kElementsWorthAThread) {
    low_rank.make(x, 0, x.rows, 0, 1, u);
  } else {
    context.pool.share(
        [&](int32_t index, int32_t shares) { low_rank.make(x, 0, x.rows, index, shares, u); });
  }
  return {};
}

}  // namespace gen::engine::cpu

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
void LowRankView::each_block(const Group& group, const Visit& visit) const noexcept {
  constexpr int64_t kWindow = 64;  // rows of a mix are looked for in
  for (int64_t first = 0; first < group.rows; first += kWindow) {
    uint64_t left = ~uint64_t{0} >> (kWindow - std::min(kWindow, group.rows - first));
    while (left != 0) {
      const int32_t of = mix(group.row(first + std::countr_zero(left)));
      int64_t places[kLowRankRows];
      int64_t n = 0;
      for (uint64_t rest = left; rest != 0 && n < kLowRankRows; rest &= rest - 1) {
        const int64_t place = first + std::countr_zero(rest);
        if (mix(group.row(place)) != of) continue;
        places[n++] = place;
        left &= ~(rest & -rest);
      }
      if (of >= 0) visit(table_ + of * stride_, places, n);
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

void LowRankView::make(const ConstRows& x, const Group& group, int32_t index, int32_t shares,
                       const Rows& u) const noexcept {
  const int64_t same = x.rows == u.rows ? 1 : slots_;  // rows of u that share a row of x
  each_block(group, [&](const LowRankMix* of, const int64_t* places, int64_t n) {
    const float* from[kLowRankRows];
    for (int64_t i = 0; i < n; ++i) from[i] = x.row(group.row(places[i]) / same);
    each_part(of, [&](int32_t, const LowRankPart& part, int64_t place) {
      const IndexRange ranks = split_range(part.rank, 1, shares, index);
      if (ranks.begin == ranks.end) return;
      float* to[kLowRankRows];
      for (int64_t i = 0; i < n; ++i) to[i] = u.row(group.row(places[i])) + place + ranks.begin;
      const float* const a =
          context_.at(part.a) + (group.expert * part.rank + ranks.begin) * x.cols;
      context_.kernels.low_rank->in(a, x.cols, ranks.end - ranks.begin, part.scale, from, to, n);
    });
  });
}

void LowRankView::add(const ConstRows& u, const Group& group, int32_t gated, int64_t col, int64_t n,
                      float* sums, int64_t stride) const noexcept {
  each_block(group, [&](const LowRankMix* of, const int64_t* places, int64_t count) {
    each_part(of, [&](int32_t s, const LowRankPart& part, int64_t place) {
      if (gated >= 0 && s != gated) return;
      const LowRankSite& site = sites_[s];
      const int64_t begin = std::max(col, site.first);
      const int64_t end = std::min(col + n, site.first + site.cols);
      if (begin >= end) return;
      const float* from[kLowRankRows];
      float* to[kLowRankRows];
      for (int64_t i = 0; i < count; ++i) {
        from[i] = u.row(group.row(places[i])) + place;
        to[i] = sums + places[i] * stride + (begin - col);
      }
      const float* const b =
          context_.at(part.b) + group.expert * part.rank * site.cols + (begin - site.first);
      context_.kernels.low_rank->out(b, site.cols, from, part.rank, to, count, end - begin);
    });
  });
}

void LowRankView::add_to_embedding(int64_t t, int32_t token, float* sums,
                                   int64_t n) const noexcept {
  const int32_t of = mix(t);
  if (of < 0) return;
  each_part(table_ + of * stride_, [&](int32_t, const LowRankPart& part, int64_t) {
    const float* const a = context_.at(part.a) + int64_t{token} * part.rank;
    constexpr int32_t kRanks = 64;  // at a time
    for (int32_t first = 0; first < part.rank; first += kRanks) {
      float u[kRanks];
      const int32_t ranks = std::min(kRanks, part.rank - first);
      for (int32_t r = 0; r < ranks; ++r) u[r] = part.scale * a[first + r];
      const float* const from = u;
      context_.kernels.low_rank->out(context_.at(part.b) + first * n, n, &from, ranks, &sums, 1, n);
    }
  });
}

namespace {

/// Of experts: each row of u alone, since its neighbours have other matrices.
void make_by_expert(CpuContext& context, const AdapterInArgs& args, const LowRankView& low_rank) {
  const ConstRows x = context.at(args.x);
  const Rows u = context.at(args.u);
  const int32_t* const routes = context.at(args.routes.data);
  parallel_rows(context, u.rows, x.cols * u.cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t t = row / args.routes.n_used;
      const int64_t s = row % args.routes.n_used;
      low_rank.make(x, {row, 1, nullptr, routes[t * args.routes.stride + s]}, 0, 1, u);
    }
  });
}

}  // namespace

Status run(CpuContext& context, const AdapterInArgs& args) {
  const bool experts = args.routes.data != nullptr;
  const LowRankView low_rank(context, args.low_rank, experts ? args.routes.n_used : 1);
  if (context.dry_run || !low_rank.present()) return {};
  if (experts) {
    make_by_expert(context, args, low_rank);
    return {};
  }
  const ConstRows x = context.at(args.x);
  const Rows u = context.at(args.u);
  if (x.rows >= kRowsWorthSharing) {
    parallel_rows(context, x.rows, x.cols * u.cols, [&](int64_t begin, int64_t end, int32_t) {
      low_rank.make(x, {begin, end - begin}, 0, 1, u);
    });
  } else if (x.rows * x.cols * u.cols < kElementsWorthAThread) {
    low_rank.make(x, {0, x.rows}, 0, 1, u);
  } else {
    context.pool.share([&](int32_t index, int32_t shares) {
      low_rank.make(x, {0, x.rows}, index, shares, u);
    });
  }
  return {};
}

}  // namespace gen::engine::cpu

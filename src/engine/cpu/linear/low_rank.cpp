// SPDX-License-Identifier: Apache-2.0
// adapter_in, and the adapters that products add to their sums. See low_rank.h.
#include "engine/cpu/linear/low_rank.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/linear/low_rank-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/linear/low_rank-inl.h"

#include <algorithm>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"

namespace gen::engine::cpu {

const LowRankKernels* low_rank_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kLowRank);
}

template <typename Visit>
void LowRankView::each(int64_t t, const Visit& visit) const noexcept {
  const int32_t mix = mixes_[rows_ != nullptr ? rows_[t] : t];
  if (mix < 0) return;
  const LowRankMix* const of = table_ + mix * stride_;
  for (int32_t s = 0; s < n_sites_; ++s) {
    const LowRankMix& here = of[sites_[s].site];
    int64_t place = sites_[s].u;
    for (int32_t i = 0; i < here.n; ++i) {
      visit(s, here.parts[i], place);
      place += here.parts[i].rank;
    }
  }
}

void LowRankView::make(const float* x, int64_t cols, int64_t t, float* u) const noexcept {
  const auto dot = context_.kernels.low_rank->dot;
  each(t, [&](int32_t, const LowRankPart& part, int64_t place) {
    const float* const a = context_.at(part.a);
    for (int32_t r = 0; r < part.rank; ++r) u[place + r] = part.scale * dot(a + r * cols, x, cols);
  });
}

void LowRankView::add(const float* u, int64_t t, int32_t gated, int64_t col, int64_t n,
                      float* sums) const noexcept {
  each(t, [&](int32_t s, const LowRankPart& part, int64_t place) {
    if (gated >= 0 && s != gated) return;
    const LowRankSite& site = sites_[s];
    const int64_t begin = std::max(col, site.first);
    const int64_t end = std::min(col + n, site.first + site.cols);
    if (begin >= end) return;
    context_.kernels.low_rank->add(context_.at(part.b) + (begin - site.first), site.cols, u + place,
                                   part.rank, sums + (begin - col), end - begin);
  });
}

Status run(CpuContext& context, const AdapterInArgs& args) {
  const LowRankView low_rank(context, args.low_rank);
  if (context.dry_run || !low_rank.present()) return {};
  const ConstRows x = context.at(args.x);
  const Rows u = context.at(args.u);
  parallel_rows(context, x.rows, x.cols * u.cols, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t t = begin; t < end; ++t) low_rank.make(x.row(t), x.cols, t, u.row(t));
  });
  return {};
}

}  // namespace gen::engine::cpu

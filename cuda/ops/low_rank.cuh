// SPDX-License-Identifier: Apache-2.0
// Adapters of a row: which parts of its mix belong to a site, and what they add to a column.
//   sum[column] += sum over r of b[r, column] u[r], r ascending from 0, for one part after another
#pragma once

#include "cuda/ops/context.h"
#include "cuda/ops/device.cuh"
#include "engine/ops.h"

namespace gen::cuda {

/// engine::LowRank with pointers instead of addresses.
struct LowRankView {
  const engine::LowRankMix* table = nullptr;
  int64_t stride = 0;
  const int32_t* mixes = nullptr;
  const int32_t* rows = nullptr;
  const engine::LowRankSite* sites = nullptr;
  int32_t n_sites = 0;
};
inline LowRankView view(const engine::LowRank& of) noexcept {
  return {pointer(of.table), of.stride,         pointer(of.mixes),
          pointer(of.rows),  pointer(of.sites), of.n_sites};
}

/// The mixes of row t by site; null if it has none.
GEN_DEVICE const engine::LowRankMix* mixes_of(const LowRankView& of, int64_t t) {
  if (of.table == nullptr) return nullptr;
  const int32_t mix = of.mixes[of.rows != nullptr ? of.rows[t] : t];
  return mix < 0 ? nullptr : of.table + mix * of.stride;
}

/// A sum of row t plus its adapters for `column`. `gated` is the site of the sum, 0 or 1, in gated
/// products and -1 in others. u is the row computed by adapter_in.
GEN_DEVICE float add_adapters(const LowRankView& of, const float* u, int64_t t, int32_t gated,
                              int64_t column, float sum) {
  const engine::LowRankMix* const mixes = mixes_of(of, t);
  if (mixes == nullptr) return sum;
  for (int32_t s = 0; s < of.n_sites; ++s) {
    const engine::LowRankSite& site = of.sites[s];
    const int64_t within = column - site.first;
    if ((gated >= 0 && s != gated) || within < 0 || within >= site.cols) continue;
    const engine::LowRankMix& here = mixes[site.site];
    const float* place = u + site.u;
    for (int32_t i = 0; i < here.n; ++i) {
      const engine::LowRankPart& part = here.parts[i];
      const float* const b = at(part.b) + within;
      float value = 0.0F;
      for (int32_t r = 0; r < part.rank; ++r)
        value = multiply_add(b[r * site.cols], place[r], value);
      sum = sum + value;
      place += part.rank;
    }
  }
  return sum;
}

}  // namespace gen::cuda

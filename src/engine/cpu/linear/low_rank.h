// SPDX-License-Identifier: Apache-2.0
// Adapters of products: A x before a product (adapter_in), and B u added to its sums. A row's bits
// depend on its own mix only. Bodies: low_rank-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/base/context.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

struct LowRankKernels {
  /// sum over i of a[i] * x[i], in the order of all reductions (lanes-inl.h).
  float (*dot)(const float* a, const float* x, int64_t n);
  /// sums[i] += sum over r of b[r * stride + i] * u[r], r ascending from 0.
  void (*add)(const float* b, int64_t stride, const float* u, int64_t rank, float* sums, int64_t n);
};
const LowRankKernels* low_rank_kernels(CpuLevel level) noexcept;

/// LowRank with pointers instead of addresses.
class LowRankView {
 public:
  LowRankView(const CpuContext& context, const LowRank& of) noexcept
      : context_(context),
        table_(context.at(of.table)),
        stride_(of.stride),
        mixes_(context.at(of.mixes)),
        rows_(context.at(of.rows)),
        sites_(context.at(of.sites)),
        n_sites_(of.n_sites) {}

  [[nodiscard]] bool present() const noexcept { return table_ != nullptr; }
  /// Computes row t of u.
  void make(const float* x, int64_t cols, int64_t t, float* u) const noexcept;
  /// Adds B u to a tile's sums of row t, which are columns [col, col + n) of the product. If
  /// `gated` is not negative, only that site is added: 0 for the gate, 1 for the up matrix.
  void add(const float* u, int64_t t, int32_t gated, int64_t col, int64_t n,
           float* sums) const noexcept;

 private:
  /// Calls visit(site, part, place of its u) for all adapters of row t.
  template <typename Visit>
  void each(int64_t t, const Visit& visit) const noexcept;

  const CpuContext& context_;
  const LowRankMix* table_;
  int64_t stride_;
  const int32_t* mixes_;
  const int32_t* rows_;
  const LowRankSite* sites_;
  int32_t n_sites_;
};

}  // namespace gen::engine::cpu

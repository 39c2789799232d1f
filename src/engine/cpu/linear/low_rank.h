// SPDX-License-Identifier: Apache-2.0
// Adapters of products: A x before a product (adapter_in), and B u added to its sums. A row's bits
// depend on its own mix only. Bodies: low_rank-inl.h.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "engine/cpu/base/context.h"
#include "engine/ops.h"

namespace gen::engine::cpu {

/// The largest number of rows that are given to a kernel at once.
inline constexpr int64_t kLowRankRows = 16;

struct LowRankKernels {
  /// u[t][r] = scale * sum over i of a[r * n + i] * x[t][i], in the order of all reductions
  /// (lanes-inl.h).
  void (*in)(const float* a, int64_t n, int64_t rank, float scale, const float* const* x,
             float* const* u, int64_t rows);
  /// sums[t][i] += sum over r of b[r * stride + i] * u[t][r], r ascending from 0.
  void (*out)(const float* b, int64_t stride, const float* const* u, int64_t rank,
              float* const* sums, int64_t rows, int64_t n);
};
const LowRankKernels* low_rank_kernels(CpuLevel level) noexcept;

/// LowRank with pointers instead of addresses.
class LowRankView {
 public:
  /// `slots` rows of u are one of the batch.
  LowRankView(const CpuContext& context, const LowRank& of, int64_t slots = 1) noexcept
      : context_(context),
        table_(context.at(of.table)),
        stride_(of.stride),
        mixes_(context.at(of.mixes)),
        rows_(context.at(of.rows)),
        sites_(context.at(of.sites)),
        n_sites_(of.n_sites),
        slots_(slots) {}

  [[nodiscard]] bool present() const noexcept { return table_ != nullptr; }
  /// Rows of u by number: `first` and those behind it, or of a list, with the matrices of an
  /// expert.
  struct Group {
    int64_t first = 0;
    int64_t rows = 0;
    const int32_t* list = nullptr;
    int64_t expert = 0;

    [[nodiscard]] int64_t row(int64_t i) const noexcept {
      return list != nullptr ? list[i] : first + i;
    }
  };
  /// Computes rows of u, of each adapter's ranks the share `index` of `shares`. Rows of x are as
  /// many as those of u, or one for each row of the batch.
  void make(const ConstRows& x, const Group& group, int32_t index, int32_t shares,
            const Rows& u) const noexcept;
  /// Adds B u to the sums of a group's rows, `stride` apart, which are columns [col, col + n) of
  /// the product. If `gated` is not negative, only that site is added: 0 for the gate, 1 for the up
  /// matrix.
  void add(const ConstRows& u, const Group& group, int32_t gated, int64_t col, int64_t n,
           float* sums, int64_t stride) const noexcept;
  /// Adds B u to row t of the embedding, which is that of a token.
  void add_to_embedding(int64_t t, int32_t token, float* sums, int64_t n) const noexcept;

 private:
  /// Calls visit(mixes by site, places in the group, their number) for all rows that have
  /// adapters, up to kLowRankRows of one mix at a time.
  template <typename Visit>
  void each_block(const Group& group, const Visit& visit) const noexcept;
  /// Calls visit(site, part, place of its u) for all adapters of a mix.
  template <typename Visit>
  void each_part(const LowRankMix* of, const Visit& visit) const noexcept;
  /// Of a row of u.
  [[nodiscard]] int32_t mix(int64_t row) const noexcept {
    const int64_t t = row / slots_;
    return mixes_[rows_ != nullptr ? rows_[t] : t];
  }

  const CpuContext& context_;
  const LowRankMix* table_;
  int64_t stride_;
  const int32_t* mixes_;
  const int32_t* rows_;
  const LowRankSite* sites_;
  int32_t n_sites_;
  int64_t slots_;
};

}  // namespace gen::engine::cpu

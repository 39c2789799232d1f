// SPDX-License-Identifier: Apache-2.0
// Body of delta_net.h, compiled once per target. Lanes are columns of a state, so that nothing is
// added across lanes: a head's columns do not depend on one another.
//   Work:   for each row two passes over a strip of columns: S^T k, then the update and S^T q; 4
//           operations and at most 2 loads and a store for each element. Strips of several rows
//           stay in the first-level cache: 32 KiB for heads of 128.
//   Order:  the sums over k_dim are those of even and of odd rows of the state, added at the end.
//   Needs:  k_dim and v_dim multiples of 16; no alignment.
//   Error:  see tests/engine/delta_net_test.cpp.

#if defined(GEN_ENGINE_CPU_DELTA_NET_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GEN_ENGINE_CPU_DELTA_NET_INL_H_
#undef GEN_ENGINE_CPU_DELTA_NET_INL_H_
#else
#define GEN_ENGINE_CPU_DELTA_NET_INL_H_
#endif

#include "engine/cpu/sequence/delta_net.h"
#include "engine/cpu/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gen::engine::cpu {
namespace HWY_NAMESPACE {

inline void delta_unit(const float* x, float eps, float scale, float* to, int64_t n) {
  Lanes16 squares = splat(0.0F);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Lanes16 values = load(x + i);
    squares = fma(values, values, squares);
  }
  const Lanes16 factor = splat(scale / std::sqrt(sum_lanes(squares) + eps));
  for (int64_t i = 0; i < n; i += kLanes) store(mul(load(x + i), factor), to + i);
}

inline void delta_gates(const float* alpha, const float* beta, float dt, float a, float* decay,
                        float* strength) {
  store(exp(mul(splat(a), softplus(add(load(alpha), splat(dt))))), decay);
  const Lanes16 one = splat(1.0F);
  store(div(one, add(one, exp(sub(splat(0.0F), load(beta))))), strength);
}

/// Vectors of sixteen columns that stay in registers. A single row takes more of them at a time:
/// its state comes from memory, where long runs are faster.
constexpr int64_t kDeltaVectors = kNativeLanes == 16 ? 4 : kNativeLanes == 8 ? 2 : 1;
constexpr int64_t kDeltaVectorsOfOne = 2 * kDeltaVectors;

/// One row's columns [0, 16 kVectors) of a state whose rows are strides apart.
template <int64_t kVectors>
HWY_INLINE void delta_row(const DeltaRow& row, const float* from, int64_t from_stride, float* to,
                          int64_t to_stride, int64_t k_dim, int64_t column) {
  constexpr auto kCount = static_cast<size_t>(kVectors);
  Lanes16 answer[2][kCount];
  GEN_UNROLL
  for (int64_t j = 0; j < kVectors; ++j) answer[0][j] = answer[1][j] = splat(0.0F);
  for (int64_t i = 0; i < k_dim; i += 2) {
    const Lanes16 even = splat(row.k[i]);
    const Lanes16 odd = splat(row.k[i + 1]);
    const float* const s = from + i * from_stride;
    GEN_UNROLL
    for (int64_t j = 0; j < kVectors; ++j) {
      answer[0][j] = fma(load(s + j * kLanes), even, answer[0][j]);
      answer[1][j] = fma(load(s + from_stride + j * kLanes), odd, answer[1][j]);
    }
  }
  const Lanes16 decay = splat(row.decay);
  const Lanes16 strength = splat(row.strength);
  Lanes16 change[kCount];
  GEN_UNROLL
  for (int64_t j = 0; j < kVectors; ++j) {
    const Lanes16 seen = mul(decay, add(answer[0][j], answer[1][j]));
    change[j] = mul(strength, sub(load(row.v + column + j * kLanes), seen));
    answer[0][j] = answer[1][j] = splat(0.0F);
  }
  const float* const q = row.q != nullptr ? row.q : row.k;
  for (int64_t i = 0; i < k_dim; i += 2) {
    GEN_UNROLL
    for (int64_t odd = 0; odd < 2; ++odd) {
      const Lanes16 key = splat(row.k[i + odd]);
      const Lanes16 query = splat(q[i + odd]);
      const float* const s = from + (i + odd) * from_stride;
      float* const d = to + (i + odd) * to_stride;
      GEN_UNROLL
      for (int64_t j = 0; j < kVectors; ++j) {
        const Lanes16 next = fma(change[j], key, mul(decay, load(s + j * kLanes)));
        store(next, d + j * kLanes);
        answer[odd][j] = fma(next, query, answer[odd][j]);
      }
    }
  }
  if (row.q == nullptr) return;
  GEN_UNROLL
  for (int64_t j = 0; j < kVectors; ++j) {
    store(add(answer[0][j], answer[1][j]), row.y + column + j * kLanes);
  }
}

/// Columns [column, column + 16 kVectors) through all rows. Between rows they are in the strip.
template <int64_t kVectors>
HWY_INLINE void delta_columns(const DeltaHead& head, const DeltaRow* rows, int64_t n,
                              int64_t column) {
  constexpr int64_t kColumns = kVectors * kLanes;
  for (int64_t t = 0; t < n; ++t) {
    const bool first = t == 0;
    const bool last = t == n - 1;
    delta_row<kVectors>(rows[t], first ? head.from + column : head.strip,
                        first ? head.v_dim : kColumns, last ? head.to + column : head.strip,
                        last ? head.v_dim : kColumns, head.k_dim, column);
  }
}

inline void delta_recur(const DeltaHead& head, const DeltaRow* rows, int64_t n) {
  constexpr int64_t kColumns = kDeltaVectors * kLanes;
  static_assert(kColumns <= kDeltaStrip);
  int64_t column = 0;
  for (; n == 1 && column + 2 * kColumns <= head.v_dim; column += 2 * kColumns) {
    delta_row<kDeltaVectorsOfOne>(rows[0], head.from + column, head.v_dim, head.to + column,
                                  head.v_dim, head.k_dim, column);
  }
  for (; column + kColumns <= head.v_dim; column += kColumns) {
    delta_columns<kDeltaVectors>(head, rows, n, column);
  }
  for (; column < head.v_dim; column += kLanes) delta_columns<1>(head, rows, n, column);
}

constexpr DeltaNetKernels kDeltaNet = {delta_unit, delta_gates, delta_recur};

}  // namespace HWY_NAMESPACE
}  // namespace gen::engine::cpu
HWY_AFTER_NAMESPACE();

#endif  // GEN_ENGINE_CPU_DELTA_NET_INL_H_

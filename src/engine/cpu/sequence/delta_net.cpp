// SPDX-License-Identifier: Apache-2.0
// delta_net: sequences and their heads are split over threads; a head's rows are processed in
// order, some at a time, so that its state is read from further away once for all of them. Value
// heads that share a key head normalise its rows again, which costs a fiftieth of the recurrence.
#include "engine/cpu/sequence/delta_net.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/cpu/sequence/delta_net-inl.h"
#include "engine/cpu/simd/lanes.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/cpu/sequence/delta_net-inl.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu/base/parallel_rows.h"
#include "engine/cpu/sequence/state_places.h"

namespace gen::engine::cpu {
namespace {

constexpr int64_t kRows = 32;  // at a time

/// A thread's scratch memory.
struct Scratch {
  float* q;      // [kRows][k_dim]
  float* k;      // [kRows][k_dim]
  float* strip;  // see DeltaHead
  float* state;  // [k_dim][v_dim]
  static int64_t floats(const DeltaShape& of) {
    return 2 * kRows * of.k_dim + delta_strip_floats(of.k_dim) + int64_t{of.k_dim} * of.v_dim;
  }
  Scratch(const DeltaShape& of, float* memory)
      : q(memory),
        k(q + kRows * of.k_dim),
        strip(k + kRows * of.k_dim),
        state(strip + delta_strip_floats(of.k_dim)) {}
};

/// One head of one sequence.
class HeadRun {
 public:
  HeadRun(const CpuContext& context, const DeltaNetArgs& args, const StateRows& rows, int32_t head,
          const Scratch& scratch)
      : kernels_(*context.kernels.delta_net),
        context_(context),
        args_(args),
        shape_(args.shape),
        first_row_(rows.first_row),
        state_(state_places(context, rows, args.layer)),
        head_(head),
        scratch_(scratch) {}

  void run() {
    const int64_t cells = int64_t{shape_.k_dim} * shape_.v_dim;
    const int64_t first = head_ * cells;
    float* const write = state_.write + first;
    const float* from = state_.read != nullptr ? state_.read + first : nullptr;
    if (from == nullptr) {
      std::fill_n(write, cells, 0.0F);
      from = write;
    }
    for (int64_t at = 0; at < state_.unsettled; at += kRows) {
      take_kept(from, write, at, std::min<int64_t>(kRows, state_.unsettled - at));
      from = write;
    }
    for (int64_t at = 0; at < state_.settled; at += kRows) {
      take_rows(from, write, at, std::min<int64_t>(kRows, state_.settled - at));
      from = write;
    }
    if (from != write) std::memcpy(write, from, static_cast<size_t>(cells) * sizeof(float));
    for (int64_t at = state_.settled; at < state_.rows; at += kRows) {
      take_rows(from, scratch_.state, at, std::min<int64_t>(kRows, state_.rows - at));
      from = scratch_.state;
    }
  }

 private:
  /// A kept row: k of all key heads, v of all heads, decays, strengths.
  struct KeptRow {
    int64_t k, v, decay, strength;
  };
  [[nodiscard]] KeptRow kept_row() const {
    const int64_t k = int64_t{shape_.k_head(head_)} * shape_.k_dim;
    const int64_t v = shape_.k_cols();
    const int64_t decay = v + shape_.v_cols();
    return {k, v + int64_t{head_} * shape_.v_dim, decay + head_, decay + shape_.v_heads + head_};
  }
  [[nodiscard]] DeltaHead head(const float* from, float* to) const {
    return {from, to, shape_.k_dim, shape_.v_dim, scratch_.strip};
  }

  void take_kept(const float* from, float* to, int64_t first, int64_t n) {
    const KeptRow in = kept_row();
    DeltaRow rows[kRows];
    for (int64_t i = 0; i < n; ++i) {
      const float* const row = state_.kept + (first + i) * state_.kept_stride;
      rows[i] = {nullptr, row + in.k, row + in.v, nullptr, row[in.decay], row[in.strength]};
    }
    kernels_.recur(head(from, to), rows, n);
  }

  void take_rows(const float* from, float* to, int64_t first, int64_t n) {
    const ConstRows qkv = context_.at(args_.qkv);
    const ConstRows alphas = context_.at(args_.alpha);
    const ConstRows betas = context_.at(args_.beta);
    const Rows y = context_.at(args_.y);
    const int64_t begin = first_row_ + first;
    float decays[kRows];
    float strengths[kRows];
    for (int64_t i = 0; i < n; i += kLanes) {
      float alpha[kLanes] = {};
      float beta[kLanes] = {};
      for (int64_t j = 0; j < std::min(kLanes, n - i); ++j) {
        alpha[j] = alphas.row(begin + i + j)[head_];
        beta[j] = betas.row(begin + i + j)[head_];
      }
      kernels_.gates(alpha, beta, context_.at(args_.dt)[head_], context_.at(args_.a)[head_],
                     decays + i, strengths + i);
    }
    const int64_t key = int64_t{shape_.k_head(head_)} * shape_.k_dim;
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape_.k_dim));
    DeltaRow rows[kRows];
    for (int64_t i = 0; i < n; ++i) {
      const float* const row = qkv.row(begin + i);
      float* const q = scratch_.q + i * shape_.k_dim;
      float* const k = scratch_.k + i * shape_.k_dim;
      kernels_.unit(row + key, shape_.eps, scale, q, shape_.k_dim);
      kernels_.unit(row + shape_.k_cols() + key, shape_.eps, 1.0F, k, shape_.k_dim);
      const int64_t value = int64_t{head_} * shape_.v_dim;
      rows[i] = {
          q,         k,           row + 2 * shape_.k_cols() + value, y.row(begin + i) + value,
          decays[i], strengths[i]};
    }
    keep(rows, first, n);
    kernels_.recur(head(from, to), rows, n);
  }

  void keep(const DeltaRow* rows, int64_t first, int64_t n) const {
    if (first < state_.settled) return;
    const KeptRow in = kept_row();
    for (int64_t i = 0; i < n; ++i) {
      float* const row = state_.keep + (first + i - state_.settled) * state_.kept_stride;
      // One of the heads that share a key head.
      if (head_ == (shape_.grouped ? shape_.k_head(head_) * (shape_.v_heads / shape_.k_heads)
                                   : shape_.k_head(head_))) {
        std::copy_n(rows[i].k, shape_.k_dim, row + in.k);
      }
      std::copy_n(rows[i].v, shape_.v_dim, row + in.v);
      row[in.decay] = rows[i].decay;
      row[in.strength] = rows[i].strength;
    }
  }

  const DeltaNetKernels& kernels_;
  const CpuContext& context_;
  const DeltaNetArgs& args_;
  const DeltaShape& shape_;
  int64_t first_row_;
  StatePlaces state_;
  int32_t head_;
  Scratch scratch_;
};

}  // namespace

const DeltaNetKernels* delta_net_kernels(CpuLevel level) noexcept {
  return GEN_LANES_PICK(level, kDeltaNet);
}

Status run(CpuContext& context, const DeltaNetArgs& args) {
  const int64_t heads = args.shape.v_heads;
  const int64_t items = args.n_sequences * heads;
  const int64_t elements =
      args.y.rows * args.shape.v_cols() * args.shape.k_dim / std::max<int64_t>(items, 1);
  const int64_t floats = Scratch::floats(args.shape);
  std::byte* memory = nullptr;
  GEN_TRY(context.stream.scratch(
      static_cast<size_t>(context.pool.size()) * static_cast<size_t>(floats) * sizeof(float),
      &memory));
  if (context.dry_run) return {};
  const StateRows* const sequences = context.at(args.sequences);
  parallel_rows(context, items, elements, [&](int64_t begin, int64_t end, int32_t thread) {
    const Scratch scratch(args.shape, reinterpret_cast<float*>(memory) + thread * floats);
    for (int64_t item = begin; item < end; ++item) {
      HeadRun(context, args, sequences[item / heads], static_cast<int32_t>(item % heads), scratch)
          .run();
    }
  });
  return {};
}

}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// An operation on a recurrent state, run over rows of one sequence in steps of any size, with what
// tests of all such operations prove: that neither steps, nor draft rows of which any number stays,
// nor other sequences, threads or levels show in a bit, and that nothing beside a layer is written.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "cache/state/state_shape.h"
#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {

/// Rows [first, first + n) of an operation's inputs, to be run as the rows of `sequences`.
struct StateCall {
  int64_t first = 0;
  int64_t n = 0;
  StateLayer layer;
  EnginePtr<const StateRows> sequences;
  int32_t n_sequences = 1;
};

/// An operation with its inputs.
struct StateOp {
  cache::StateShape shape;
  int64_t rows = 0;
  int64_t width = 0;  // of y
  /// Runs it; y is [call.n, width].
  std::function<Status(CpuContext& context, const StateCall& call, float* y)> run;
};

/// A sequence's state: one layer behind another.
class StateSteps {
 public:
  explicit StateSteps(const StateOp& op) : op_(op) {}

  /// y of the rows. The state does not take in the last `open` ones, of which `stay` go before the
  /// next step's.
  std::vector<float> step(CpuContext& context, int64_t first, int64_t n, int64_t open = 0,
                          int32_t stay = 0) {
    const auto stride = static_cast<size_t>(op_.shape.inputs + kBefore);
    std::vector<float> written(static_cast<size_t>(op_.shape.cells + kBefore) + 1, kUntouched);
    std::vector<float> keep(open > 0 ? stride * static_cast<size_t>(open) + 1 : 0, kUntouched);
    StateRows rows = {};
    rows.n_rows = static_cast<int32_t>(n);
    rows.unsettled = unsettled_;
    rows.read = cells_.empty() ? nullptr : engine_ptr(std::as_const(cells_).data());
    rows.write = engine_ptr(written.data());
    rows.kept = kept_.empty() ? nullptr : engine_ptr(std::as_const(kept_).data());
    if (open > 0) {
      rows.certain = static_cast<int32_t>(n - open);
      rows.keep = engine_ptr(keep.data());
    }
    std::vector<float> y(static_cast<size_t>(n * op_.width));
    const StateLayer layer = {kBefore, kBefore, static_cast<int64_t>(stride)};
    EXPECT_TRUE(
        op_.run(context, {first, n, layer, engine_ptr(&std::as_const(rows)), 1}, y.data()).ok());
    const auto untouched = [](const std::vector<float>& of, size_t begin) {
      return std::all_of(of.begin() + static_cast<ptrdiff_t>(begin),
                         of.begin() + static_cast<ptrdiff_t>(begin) + kBefore,
                         [](float x) { return x == kUntouched; });
    };
    EXPECT_TRUE(untouched(written, 0));
    EXPECT_EQ(written.back(), kUntouched);
    for (size_t i = 0; i < static_cast<size_t>(open); ++i) {
      EXPECT_TRUE(untouched(keep, i * stride));
    }
    if (open > 0) {
      EXPECT_EQ(keep.back(), kUntouched);
    }
    cells_ = std::move(written);
    kept_ = std::move(keep);
    unsettled_ = stay;
    return y;
  }
  /// The layer's cells.
  [[nodiscard]] std::vector<float> cells() const {
    return {cells_.begin() + kBefore, cells_.end() - 1};
  }

 private:
  static constexpr int64_t kBefore = 16;  // floats of another layer
  static constexpr float kUntouched = 7.0F;
  const StateOp& op_;
  std::vector<float> cells_;  // empty: zeros
  std::vector<float> kept_;
  int32_t unsettled_ = 0;
};

/// Every step and every number of drafts that stay give the bits of single rows at the scalar
/// level.
inline void expect_steps_do_not_show(const StateOp& op, CpuLevel level) {
  CpuBench bench(level, 3);
  CpuBench scalar(CpuLevel::kScalar);
  StateSteps plain(op);
  std::vector<float> want;
  for (int64_t t = 0; t < op.rows; ++t) {
    const std::vector<float> row = plain.step(*scalar, t, 1);
    want.insert(want.end(), row.begin(), row.end());
  }
  for (const int64_t n : {int64_t{1}, int64_t{5}, op.rows}) {
    for (const int64_t open : {0, 1, 3, 1000}) {
      StateSteps state(op);
      std::vector<float> got;
      for (int64_t at = 0; at < op.rows; at += n) {
        const int64_t count = std::min(n, op.rows - at);
        const int64_t kept = std::min(open, count);
        const auto part = state.step(*bench, at, count, kept, static_cast<int32_t>(kept));
        got.insert(got.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(same_bits(got, want)) << n << " " << open;
      if (open == 0) {
        EXPECT_TRUE(same_bits(state.cells(), plain.cells())) << n;
      }
    }
  }
  for (const int32_t certain : {0, 1, 4}) {
    for (int32_t stay = 0; stay <= 5; ++stay) {
      StateSteps state(op);
      state.step(*bench, 0, 6);
      state.step(*bench, 6, certain + 5, 5, stay);
      const int32_t next = 6 + certain + stay;
      const auto got = state.step(*bench, next, op.rows - next);
      const auto from = want.begin() + next * op.width;
      EXPECT_TRUE(same_bits(got, std::vector<float>(from, want.end()))) << certain << " " << stay;
      EXPECT_TRUE(same_bits(state.cells(), plain.cells())) << certain << " " << stay;
    }
  }
}

/// Sequences of several lengths in one call, at any number of threads.
inline void expect_sequences_do_not_show(const StateOp& op, CpuLevel level) {
  const int32_t lengths[] = {static_cast<int32_t>(op.rows) - 12, 1, 11};
  std::vector<float> want;
  std::vector<float> cells_want[3];
  {
    CpuBench bench(level);
    int64_t first = 0;
    for (size_t s = 0; s < 3; ++s, first += lengths[s - 1]) {
      StateSteps one(op);
      const auto part = one.step(*bench, first, lengths[s]);
      want.insert(want.end(), part.begin(), part.end());
      cells_want[s] = one.cells();
    }
  }
  for (const int32_t threads : {1, 4}) {
    CpuBench bench(level, threads);
    std::vector<float> cells[3];
    StateRows rows[3];
    int32_t first = 0;
    for (size_t s = 0; s < 3; ++s, first += lengths[s - 1]) {
      cells[s].resize(static_cast<size_t>(op.shape.cells));
      rows[s].first_row = first;
      rows[s].n_rows = lengths[s];
      rows[s].write = engine_ptr(cells[s].data());
    }
    std::vector<float> y(static_cast<size_t>(op.rows * op.width));
    const StateCall call = {
        0, op.rows, {0, 0, op.shape.inputs}, engine_ptr(static_cast<const StateRows*>(rows)), 3};
    ASSERT_TRUE(op.run(*bench, call, y.data()).ok());
    EXPECT_TRUE(same_bits(y, want)) << threads;
    for (size_t s = 0; s < 3; ++s) EXPECT_TRUE(same_bits(cells[s], cells_want[s])) << s;
  }
}

}  // namespace gen::engine::cpu

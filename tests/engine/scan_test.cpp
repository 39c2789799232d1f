// SPDX-License-Identifier: Apache-2.0
// Proves scan: values against double precision, equal bits however rows come (in steps, beside
// other sequences, kept first and taken in later), on every level and number of threads, in place,
// and nothing written beside a layer.
#include "engine/cpu/sequence/scan.h"

#include <cmath>
#include <utility>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"
#include "engine/state_steps.h"

namespace gen::engine::cpu {
namespace {

class ScanTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, ScanTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

/// Rows [T, channels] of one sequence, a stride apart.
struct Inputs {
  Inputs(int64_t rows_in, int64_t channels_in)
      : rows(rows_in), channels(channels_in), stride(channels_in + 3) {
    const auto size = static_cast<size_t>(rows * stride);
    a = random_floats(size, 1, 0.9F);
    b = random_floats(size, 2, 3.0F);
    x = random_floats(size, 3);
  }
  [[nodiscard]] StateOp op() const {
    const auto run_rows = [this](CpuContext& context, const StateCall& call, float* y) {
      const auto view = [&](const std::vector<float>& values) {
        return ConstMatrixView{engine_ptr(values.data() + call.first * stride), call.n, channels,
                               stride};
      };
      ScanArgs args;
      args.a = view(a);
      args.b = view(b);
      args.x = view(x);
      args.y = {engine_ptr(y), call.n, channels, channels};
      args.layer = call.layer;
      args.sequences = call.sequences;
      args.n_sequences = call.n_sequences;
      return run(context, args);
    };
    return {{channels, 2 * channels}, rows, channels, run_rows};
  }
  int64_t rows;
  int64_t channels;
  int64_t stride;
  std::vector<float> a, b, x;
};

TEST_P(ScanTest, IsCloseToDouble) {
  CpuBench bench(GetParam());
  for (const int64_t channels : {1, 15, 16, 17, 100}) {
    const Inputs inputs(40, channels);
    const StateOp op = inputs.op();
    const std::vector<float> y = StateSteps(op).step(*bench, 0, 40);
    for (int64_t c = 0; c < channels; ++c) {
      double h = 0.0;
      double error = 0.0;
      for (int64_t t = 0; t < 40; ++t) {
        const auto at = static_cast<size_t>(t * inputs.stride + c);
        const double a = inputs.a[at];
        const double bx = static_cast<double>(inputs.b[at]) * static_cast<double>(inputs.x[at]);
        h = a * h + bx;
        error = std::fabs(a) * error + (std::fabs(h) + std::fabs(bx)) * 0x1p-23;
        ASSERT_NEAR(y[static_cast<size_t>(t * channels + c)], h, error + 1e-37) << c << " " << t;
      }
    }
  }
}

TEST_P(ScanTest, StepsDoNotShow) { expect_steps_do_not_show(Inputs(24, 75).op(), GetParam()); }

TEST_P(ScanTest, SequencesAndThreadsDoNotShow) {
  expect_sequences_do_not_show(Inputs(23, 900).op(), GetParam());
}

TEST_P(ScanTest, RunsInPlace) {
  const Inputs inputs(23, 75);
  const StateOp op = inputs.op();
  CpuBench bench(GetParam());
  const std::vector<float> want = StateSteps(op).step(*bench, 0, 23);
  std::vector<float> y = inputs.x;
  std::vector<float> cells(75);
  StateRows rows = {};
  rows.n_rows = 23;
  rows.write = engine_ptr(cells.data());
  ScanArgs args;
  args.a = {engine_ptr(inputs.a.data()), 23, 75, inputs.stride};
  args.b = {engine_ptr(inputs.b.data()), 23, 75, inputs.stride};
  args.x = {engine_ptr(std::as_const(y).data()), 23, 75, inputs.stride};
  args.y = {engine_ptr(y.data()), 23, 75, inputs.stride};
  args.layer = {0, 0, 150};
  args.sequences = engine_ptr(&std::as_const(rows));
  args.n_sequences = 1;
  ASSERT_TRUE(run(*bench, args).ok());
  for (int64_t t = 0; t < 23; ++t) {
    const auto begin = y.begin() + t * inputs.stride;
    const auto from = want.begin() + t * 75;
    EXPECT_TRUE(
        same_bits(std::vector<float>(begin, begin + 75), std::vector<float>(from, from + 75)))
        << t;
    // What lies between rows.
    EXPECT_EQ(*(begin + 75), inputs.x[static_cast<size_t>(t * inputs.stride + 75)]);
  }
}

}  // namespace
}  // namespace gen::engine::cpu

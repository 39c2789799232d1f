// SPDX-License-Identifier: Apache-2.0
// Proves delta_net: values against double precision over short and over long sequences, and what
// state_steps.h says.
#include <cmath>

#include "engine/state_steps.h"

namespace gen::engine::cpu {
namespace {

class DeltaNetTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, DeltaNetTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

struct Net {
  Net(int64_t rows_in, const DeltaShape& shape_in)
      : rows(rows_in), shape(shape_in), width(2 * shape.k_cols() + shape.v_cols()) {
    const auto heads = static_cast<size_t>(shape.v_heads);
    qkv = random_floats(static_cast<size_t>(rows * width), 1, 2.0F);
    alpha = random_floats(static_cast<size_t>(rows) * heads, 2, 3.0F);
    beta = random_floats(static_cast<size_t>(rows) * heads, 3, 3.0F);
    dt = random_floats(heads, 4);
    a = random_floats(heads, 5);
    for (float& x : a) x = -std::fabs(x) - 0.01F;
  }
  [[nodiscard]] StateOp op() const {
    const auto run_rows = [this](CpuContext& context, const StateCall& call, float* y) {
      const auto gates = [&](const std::vector<float>& of) {
        return ConstMatrixView{engine_ptr(of.data() + call.first * shape.v_heads), call.n,
                               shape.v_heads, shape.v_heads};
      };
      DeltaNetArgs args;
      args.qkv = {engine_ptr(qkv.data() + call.first * width), call.n, width, width};
      args.alpha = gates(alpha);
      args.beta = gates(beta);
      args.dt = engine_ptr(dt.data());
      args.a = engine_ptr(a.data());
      args.shape = shape;
      args.y = {engine_ptr(y), call.n, shape.v_cols(), shape.v_cols()};
      args.layer = call.layer;
      args.sequences = call.sequences;
      args.n_sequences = call.n_sequences;
      return run(context, args);
    };
    return {{shape.v_cols() * shape.k_dim, shape.k_cols() + shape.v_cols() + 2 * shape.v_heads},
            rows,
            shape.v_cols(),
            run_rows};
  }
  /// The definition in double precision; the states at the end come behind the rows.
  [[nodiscard]] std::vector<double> exact() const {
    const auto at = [](int64_t i) { return static_cast<size_t>(i); };
    std::vector<double> y(at(rows * shape.v_cols()));
    std::vector<double> states;
    for (int32_t h = 0; h < shape.v_heads; ++h) {
      const int32_t g = shape.grouped ? h / (shape.v_heads / shape.k_heads) : h % shape.k_heads;
      std::vector<double> s(at(int64_t{shape.k_dim} * shape.v_dim));
      for (int64_t t = 0; t < rows; ++t) {
        const float* const row = qkv.data() + t * width;
        const auto unit = [&](const float* x) {
          std::vector<double> v(x, x + shape.k_dim);
          double squares = static_cast<double>(shape.eps);
          for (const double d : v) squares += d * d;
          for (double& d : v) d /= std::sqrt(squares);
          return v;
        };
        const std::vector<double> q = unit(row + int64_t{g} * shape.k_dim);
        const std::vector<double> k = unit(row + shape.k_cols() + int64_t{g} * shape.k_dim);
        const float* const v = row + 2 * shape.k_cols() + int64_t{h} * shape.v_dim;
        const int64_t gate = t * shape.v_heads + h;
        const double open = static_cast<double>(alpha[at(gate)]) + static_cast<double>(dt[at(h)]);
        const double decay = std::exp(static_cast<double>(a[at(h)]) * std::log1p(std::exp(open)));
        const double strength = 1.0 / (1.0 + std::exp(-static_cast<double>(beta[at(gate)])));
        for (double& cell : s) cell *= decay;
        for (int32_t j = 0; j < shape.v_dim; ++j) {
          double seen = 0.0;
          for (int32_t i = 0; i < shape.k_dim; ++i) seen += s[at(i * shape.v_dim + j)] * k[at(i)];
          double sum = 0.0;
          for (int32_t i = 0; i < shape.k_dim; ++i) {
            double& cell = s[at(i * shape.v_dim + j)];
            cell += k[at(i)] * strength * (static_cast<double>(v[j]) - seen);
            sum += cell * q[at(i)];
          }
          y[at(t * shape.v_cols() + int64_t{h} * shape.v_dim + j)] =
              sum / std::sqrt(static_cast<double>(shape.k_dim));
        }
      }
      states.insert(states.end(), s.begin(), s.end());
    }
    y.insert(y.end(), states.begin(), states.end());
    return y;
  }
  int64_t rows;
  DeltaShape shape;
  int64_t width;
  std::vector<float> qkv, alpha, beta, dt, a;
};

/// The largest difference relative to the root of the mean square.
double off_by(const std::vector<float>& got, const double* want) {
  double off = 0.0;
  double squares = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    off = std::max(off, std::fabs(static_cast<double>(got[i]) - want[i]));
    squares += want[i] * want[i];
  }
  return off / std::sqrt(squares / static_cast<double>(got.size()));
}

void expect_close(const Net& net, CpuLevel level, double bound) {
  CpuBench bench(level);
  const StateOp op = net.op();
  StateSteps state(op);
  const std::vector<double> want = net.exact();
  const std::vector<float> y = state.step(*bench, 0, net.rows);
  EXPECT_LT(off_by(y, want.data()), bound);
  EXPECT_LT(off_by(state.cells(), want.data() + y.size()), bound);
}

TEST_P(DeltaNetTest, IsCloseToDouble) {
  for (const bool grouped : {false, true}) {
    expect_close(Net(40, {2, 6, 32, 48, 1e-6F, grouped}), GetParam(), 1e-5);
    expect_close(Net(40, {1, 1, 16, 16, 1e-6F, grouped}), GetParam(), 1e-5);
    expect_close(Net(40, {2, 2, 128, 128, 1e-6F, grouped}), GetParam(), 1e-5);
  }
}

// What decays slowly is rounded once for each row, so the error grows with the rows that the state
// remembers and no further.
TEST_P(DeltaNetTest, StaysCloseToDoubleOverManyRows) {
  Net net(GetParam() == CpuLevel::kScalar ? 2000 : 100000, {1, 1, 16, 16, 1e-6F, false});
  net.a[0] = -1e-4F;
  expect_close(net, GetParam(), 1e-4);
}

TEST_P(DeltaNetTest, StepsDoNotShow) {
  expect_steps_do_not_show(Net(24, {2, 4, 32, 80, 1e-6F, false}).op(), GetParam());
  expect_steps_do_not_show(Net(24, {2, 4, 32, 80, 1e-6F, true}).op(), GetParam());
  expect_steps_do_not_show(Net(71, {1, 1, 16, 96, 1e-6F, true}).op(), GetParam());
}

TEST_P(DeltaNetTest, SequencesAndThreadsDoNotShow) {
  expect_sequences_do_not_show(Net(63, {3, 6, 64, 64, 1e-6F, false}).op(), GetParam());
}

}  // namespace
}  // namespace gen::engine::cpu

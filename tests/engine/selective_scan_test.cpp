// SPDX-License-Identifier: Apache-2.0
// Proves selective_scan: values against double precision over short and over long sequences, of
// heads with one decay and of channels with a decay for each number of state, and what
// state_steps.h says.
#include <cmath>

#include "engine/state_steps.h"

namespace gen::engine::cpu {
namespace {

class SelectiveScanTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, SelectiveScanTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

struct Shape {
  int64_t heads;
  int64_t channels;  // of a head
  int64_t groups;
  int64_t size;
  [[nodiscard]] int64_t x_cols() const { return heads * channels; }
  [[nodiscard]] int64_t b_cols() const { return groups * size; }
  [[nodiscard]] int64_t cells() const { return x_cols() * size; }
};

/// Rows of all inputs, which lie as in one wide product: x, b, c, dt, and what nobody reads.
struct Scan {
  Scan(int64_t rows_in, const Shape& shape_in)
      : rows(rows_in),
        shape(shape_in),
        width(shape.x_cols() + 2 * shape.b_cols() + shape.heads + 3) {
    const auto heads = static_cast<size_t>(shape.heads);
    in = random_floats(static_cast<size_t>(rows * width), 1, 2.0F);
    bias = random_floats(heads, 2, 2.0F);
    d = random_floats(heads, 3);
    a = random_floats(heads * (shape.channels == 1 ? static_cast<size_t>(shape.size) : 1), 4);
    for (float& each : a) each = -std::fabs(each) - 0.01F;
  }
  [[nodiscard]] int64_t b_at() const { return shape.x_cols(); }
  [[nodiscard]] int64_t c_at() const { return b_at() + shape.b_cols(); }
  [[nodiscard]] int64_t dt_at() const { return c_at() + shape.b_cols(); }
  [[nodiscard]] StateOp op() const {
    const auto run_rows = [this](CpuContext& context, const StateCall& call, float* y) {
      return run(context, args(call, {engine_ptr(y), call.n, shape.x_cols(), shape.x_cols()}));
    };
    return {{shape.cells(), shape.x_cols() + shape.heads + shape.b_cols()},
            rows,
            shape.x_cols(),
            run_rows};
  }
  [[nodiscard]] SelectiveScanArgs args(const StateCall& call, const MatrixView& y) const {
    const auto view = [&](int64_t first, int64_t cols) {
      return ConstMatrixView{engine_ptr(in.data() + call.first * width + first), call.n, cols,
                             width};
    };
    SelectiveScanArgs args;
    args.x = view(0, shape.x_cols());
    args.dt = view(dt_at(), shape.heads);
    args.b = view(b_at(), shape.b_cols());
    args.c = view(c_at(), shape.b_cols());
    args.n_groups = static_cast<int32_t>(shape.groups);
    args.dt_bias = engine_ptr(bias.data());
    args.a = engine_ptr(a.data());
    args.d = engine_ptr(d.data());
    args.y = y;
    args.layer = call.layer;
    args.sequences = call.sequences;
    args.n_sequences = call.n_sequences;
    return args;
  }
  int64_t rows;
  Shape shape;
  int64_t width;
  std::vector<float> in, bias, a, d;
};

/// The definition in double precision, with bounds of the error of every value: a state's error
/// fades as the state does, and a row adds what its roundings may.
struct Exact {
  explicit Exact(const Scan& scan) {
    const Shape& of = scan.shape;
    const auto at = [](int64_t i) { return static_cast<size_t>(i); };
    const auto value = [&](int64_t t, int64_t i) {
      return static_cast<double>(scan.in[at(t * scan.width + i)]);
    };
    y.resize(at(scan.rows * of.x_cols()));
    y_bound = y;
    for (int64_t p = 0; p < of.x_cols(); ++p) {
      const int64_t h = p / of.channels;
      const int64_t g = h / (of.heads / of.groups);
      std::vector<double> s(at(of.size));
      std::vector<double> bound = s;
      for (int64_t t = 0; t < scan.rows; ++t) {
        const double open = value(t, scan.dt_at() + h) + static_cast<double>(scan.bias[at(h)]);
        const double delta = std::log1p(std::exp(open));
        // Relative errors: softplus is within 4 ulp, and its argument was rounded.
        const double delta_error = 8 * kUlp + std::fabs(open) * kUlp / delta;
        double sum = 0.0;
        double sum_bound = 0.0;
        double sizes = 0.0;
        for (int64_t n = 0; n < of.size; ++n) {
          const auto a = static_cast<double>(scan.a[at(of.channels == 1 ? p * of.size + n : h)]);
          const double decay = std::exp(delta * a);
          const double decay_error = std::fabs(delta * a) * (delta_error + kUlp) + 2 * kUlp;
          const double b = value(t, scan.b_at() + g * of.size + n) * delta * value(t, p);
          double& cell = s[at(n)];
          double& off = bound[at(n)];
          off = decay * (1 + decay_error) * off + std::fabs(decay * cell) * decay_error;
          cell = decay * cell + b;
          off += std::fabs(b) * (delta_error + 3 * kUlp) + std::fabs(cell) * kUlp;
          const double c = value(t, scan.c_at() + g * of.size + n);
          sum += cell * c;
          sum_bound += off * std::fabs(c);
          sizes += std::fabs(cell * c);
        }
        const double direct = static_cast<double>(scan.d[at(h)]) * value(t, p);
        y[at(t * of.x_cols() + p)] = sum + direct;
        y_bound[at(t * of.x_cols() + p)] =
            sum_bound + (sizes + std::fabs(direct)) * static_cast<double>(of.size + 4) * kUlp;
      }
      cells.insert(cells.end(), s.begin(), s.end());
      cell_bound.insert(cell_bound.end(), bound.begin(), bound.end());
    }
  }
  static constexpr double kUlp = 0x1p-24;
  std::vector<double> y, y_bound;
  std::vector<double> cells, cell_bound;  // the states at the end
};

void expect_within(const std::vector<float>& got, const std::vector<double>& want,
                   const std::vector<double>& bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], bound[i] + 1e-37) << i;
  }
}

void expect_close(const Scan& scan, CpuLevel level) {
  SCOPED_TRACE(testing::Message() << scan.shape.heads << " heads of " << scan.shape.channels
                                  << " channels of " << scan.shape.size);
  CpuBench bench(level);
  const StateOp op = scan.op();
  StateSteps state(op);
  const Exact want(scan);
  expect_within(state.step(*bench, 0, scan.rows), want.y, want.y_bound);
  expect_within(state.cells(), want.cells, want.cell_bound);
}

TEST_P(SelectiveScanTest, IsCloseToDouble) {
  expect_close(Scan(40, {4, 64, 2, 128}), GetParam());
  expect_close(Scan(40, {6, 24, 3, 33}), GetParam());
  expect_close(Scan(40, {2, 3, 1, 1}), GetParam());
  expect_close(Scan(40, {2, 100, 1, 256}), GetParam());
  expect_close(Scan(40, {70, 1, 1, 16}), GetParam());
  expect_close(Scan(40, {130, 1, 2, 7}), GetParam());
}

// Twenty thousand rows, of which a state with a decay near 1 remembers thousands: its error is
// within a thousandth of a per cent of its size and stays there.
TEST_P(SelectiveScanTest, StaysCloseToDoubleOverManyRows) {
  for (const int64_t channels : {2, 1}) {
    Scan scan(GetParam() == CpuLevel::kScalar ? 4000 : 20000, {2, channels, 1, 16});
    for (float& each : scan.bias) each = -4.0F;
    for (float& each : scan.a) each *= 0.01F;
    CpuBench bench(GetParam());
    const StateOp op = scan.op();
    StateSteps state(op);
    const std::vector<float> y = state.step(*bench, 0, scan.rows);
    const Exact want(scan);
    expect_within(y, want.y, want.y_bound);
    double size = 0.0;
    for (const double cell : want.cells) size = std::max(size, std::fabs(cell));
    expect_within(state.cells(), want.cells, std::vector<double>(want.cells.size(), 1e-5 * size));
  }
}

TEST_P(SelectiveScanTest, StepsDoNotShow) {
  expect_steps_do_not_show(Scan(24, {4, 80, 2, 128}).op(), GetParam());
  expect_steps_do_not_show(Scan(24, {6, 24, 3, 33}).op(), GetParam());
  expect_steps_do_not_show(Scan(24, {150, 1, 1, 16}).op(), GetParam());
  expect_steps_do_not_show(Scan(24, {150, 1, 3, 20}).op(), GetParam());
}

TEST_P(SelectiveScanTest, SequencesAndThreadsDoNotShow) {
  expect_sequences_do_not_show(Scan(63, {6, 64, 2, 32}).op(), GetParam());
  expect_sequences_do_not_show(Scan(63, {200, 1, 1, 16}).op(), GetParam());
}

TEST_P(SelectiveScanTest, WorksInPlace) {
  CpuBench bench(GetParam(), 4);
  for (const Shape& shape : {Shape{4, 80, 2, 128}, Shape{150, 1, 1, 16}}) {
    Scan scan(9, shape);
    const StateOp op = scan.op();
    const std::vector<float> want = StateSteps(op).step(*bench, 0, 9);
    std::vector<float> cells(static_cast<size_t>(shape.cells()));
    StateRows rows = {};
    rows.n_rows = 9;
    rows.write = engine_ptr(cells.data());
    const StateCall call = {0, 9, {}, engine_ptr(static_cast<const StateRows*>(&rows)), 1};
    const std::vector<float> before = scan.in;
    ASSERT_TRUE(
        run(*bench, scan.args(call, {engine_ptr(scan.in.data()), 9, shape.x_cols(), scan.width}))
            .ok());
    for (int64_t t = 0; t < 9; ++t) {
      const auto row = scan.in.begin() + t * scan.width;
      const auto from = want.begin() + t * shape.x_cols();
      EXPECT_TRUE(same_bits(std::vector<float>(row, row + shape.x_cols()),
                            std::vector<float>(from, from + shape.x_cols())));
      EXPECT_TRUE(std::equal(row + shape.x_cols(), row + scan.width,
                             before.begin() + t * scan.width + shape.x_cols()));
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

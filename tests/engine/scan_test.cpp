// SPDX-License-Identifier: Apache-2.0
// Proves scan: values against double precision, equal bits however rows come (in steps, beside
// other sequences, kept first and taken in later), on every level and number of threads, in place,
// and nothing written beside a layer.
#include "engine/cpu/sequence/scan.h"

#include <cmath>

#include "engine/cpu/base/ops_run.h"
#include "engine/cpu_fixture.h"

namespace gen::engine::cpu {
namespace {

class ScanTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, ScanTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

constexpr int64_t kBefore = 16;  // floats of another layer
constexpr float kUntouched = 7.0F;

/// Rows [T, channels] of one sequence, a stride apart.
struct Inputs {
  Inputs(int64_t rows_in, int64_t channels_in)
      : rows(rows_in), channels(channels_in), stride(channels_in + 3) {
    const auto size = static_cast<size_t>(rows * stride);
    a = random_floats(size, 1, 0.9F);
    b = random_floats(size, 2, 3.0F);
    x = random_floats(size, 3);
  }
  int64_t rows;
  int64_t channels;
  int64_t stride;
  std::vector<float> a, b, x;
};

/// A state of one layer behind another, as RecurrentState keeps it.
struct State {
  explicit State(int64_t channels_in) : channels(channels_in) {}

  /// Rows [first, first + n) of the inputs; y. With `open` the state takes none of them in, and
  /// `stay` of them go before the next ones.
  std::vector<float> step(CpuContext& context, const Inputs& inputs, int64_t first, int64_t n,
                          bool open = false, int32_t stay = 0) {
    const auto width = static_cast<size_t>(2 * channels + kBefore);
    std::vector<float> written(static_cast<size_t>(channels + kBefore) + 1, kUntouched);
    std::vector<float> keep(open ? width * static_cast<size_t>(n) : 0, kUntouched);
    rows = {};
    rows.n_rows = static_cast<int32_t>(n);
    rows.unsettled = unsettled;
    rows.read = cells.empty() ? nullptr : engine_ptr(std::as_const(cells).data());
    rows.write = engine_ptr(written.data());
    rows.kept = kept.empty() ? nullptr : engine_ptr(std::as_const(kept).data());
    rows.keep = open ? engine_ptr(keep.data()) : nullptr;
    std::vector<float> y(static_cast<size_t>(n * channels));
    const auto view = [&](const std::vector<float>& values) {
      return ConstMatrixView{engine_ptr(values.data() + first * inputs.stride), n, channels,
                             inputs.stride};
    };
    ScanArgs args;
    args.a = view(inputs.a);
    args.b = view(inputs.b);
    args.x = view(inputs.x);
    args.y = {engine_ptr(y.data()), n, channels, channels};
    args.layer = {kBefore, kBefore, static_cast<int64_t>(width)};
    args.sequences = engine_ptr(static_cast<const StateRows*>(&rows));
    args.n_sequences = 1;
    EXPECT_TRUE(run(context, args).ok());
    for (size_t i = 0; i < static_cast<size_t>(kBefore); ++i) EXPECT_EQ(written[i], kUntouched);
    EXPECT_EQ(written.back(), kUntouched);
    cells = std::move(written);
    kept = std::move(keep);
    unsettled = open ? stay : 0;
    return y;
  }

  int64_t channels;
  std::vector<float> cells;  // empty: zeros
  std::vector<float> kept;
  int32_t unsettled = 0;
  StateRows rows;
};

TEST_P(ScanTest, IsCloseToDouble) {
  CpuBench bench(GetParam());
  for (const int64_t channels : {1, 15, 16, 17, 100}) {
    const Inputs inputs(40, channels);
    const std::vector<float> y = State(channels).step(*bench, inputs, 0, 40);
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

TEST_P(ScanTest, StepsDoNotShow) {
  CpuBench bench(GetParam());
  CpuBench scalar(CpuLevel::kScalar);
  const int64_t channels = 75;
  const Inputs inputs(24, channels);
  const std::vector<float> want = State(channels).step(*scalar, inputs, 0, 24);
  for (const int64_t n : {1, 5, 24}) {
    for (const bool open : {false, true}) {
      State state(channels);
      std::vector<float> got;
      for (int64_t at = 0; at < 24; at += n) {
        const int64_t count = std::min<int64_t>(n, 24 - at);
        const auto part = state.step(*bench, inputs, at, count, open, static_cast<int32_t>(count));
        got.insert(got.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(same_bits(got, want)) << n << " " << open;
    }
  }
  // Of five rows these stay.
  for (int32_t stay = 0; stay <= 5; ++stay) {
    State state(channels);
    state.step(*bench, inputs, 0, 6);
    state.step(*bench, inputs, 6, 5, true, stay);
    const auto got = state.step(*bench, inputs, 6 + stay, 8);
    const auto from = want.begin() + (6 + stay) * channels;
    EXPECT_TRUE(same_bits(got, std::vector<float>(from, from + 8 * channels))) << stay;
  }
}

TEST_P(ScanTest, SequencesAndThreadsDoNotShow) {
  const int64_t channels = 900;
  const Inputs inputs(23, channels);
  const int32_t lengths[] = {9, 1, 13};
  std::vector<float> want[3];
  {
    CpuBench bench(GetParam());
    int64_t first = 0;
    for (size_t s = 0; s < 3; ++s, first += lengths[s - 1]) {
      want[s] = State(channels).step(*bench, inputs, first, lengths[s]);
    }
  }
  for (const int32_t threads : {1, 4}) {
    CpuBench bench(GetParam(), threads);
    std::vector<float> y = inputs.x;  // in place
    std::vector<float> cells[3];
    StateRows rows[3];
    int32_t first = 0;
    for (size_t s = 0; s < 3; ++s, first += lengths[s - 1]) {
      cells[s].resize(static_cast<size_t>(channels));
      rows[s].first_row = first;
      rows[s].n_rows = lengths[s];
      rows[s].write = engine_ptr(cells[s].data());
    }
    ScanArgs args;
    args.a = {engine_ptr(inputs.a.data()), 23, channels, inputs.stride};
    args.b = {engine_ptr(inputs.b.data()), 23, channels, inputs.stride};
    args.x = {engine_ptr(std::as_const(y).data()), 23, channels, inputs.stride};
    args.y = {engine_ptr(y.data()), 23, channels, inputs.stride};
    args.layer = {0, 0, 2 * channels};
    args.sequences = engine_ptr(static_cast<const StateRows*>(rows));
    args.n_sequences = 3;
    ASSERT_TRUE(run(*bench, args).ok());
    for (size_t s = 0; s < 3; ++s) {
      for (int64_t t = 0; t < lengths[s]; ++t) {
        const auto begin = y.begin() + (rows[s].first_row + t) * inputs.stride;
        const auto from = want[s].begin() + t * channels;
        EXPECT_TRUE(same_bits(std::vector<float>(begin, begin + channels),
                              std::vector<float>(from, from + channels)))
            << s << " " << t;
        // What lies between rows.
        EXPECT_EQ(
            *(begin + channels),
            inputs.x[static_cast<size_t>((rows[s].first_row + t) * inputs.stride + channels)]);
      }
      EXPECT_TRUE(same_bits(cells[s], std::vector<float>(want[s].end() - channels, want[s].end())));
    }
  }
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves causal_conv: values against double precision, and what state_steps.h says.
#include <cmath>

#include "engine/state_steps.h"

namespace gen::engine::cpu {
namespace {

class CausalConvTest : public ::testing::TestWithParam<CpuLevel> {};
INSTANTIATE_TEST_SUITE_P(Levels, CausalConvTest, ::testing::ValuesIn(levels_here()),
                         [](const auto& row) { return cpu_level_name(row.param); });

struct Conv {
  Conv(int64_t rows_in, int64_t channels_in, int32_t taps_in, bool bias, Act act_in)
      : rows(rows_in), channels(channels_in), stride(channels_in + 3), taps(taps_in), act(act_in) {
    x = random_floats(static_cast<size_t>(rows * stride), 1, 2.0F);
    w = random_floats(static_cast<size_t>(taps * channels), 2);
    if (bias) b = random_floats(static_cast<size_t>(channels), 3);
  }
  [[nodiscard]] StateOp op() const {
    const auto run_rows = [this](CpuContext& context, const StateCall& call, float* y) {
      CausalConvArgs args;
      args.x = {engine_ptr(x.data() + call.first * stride), call.n, channels, stride};
      args.w = engine_ptr(w.data());
      if (!b.empty()) args.b = engine_ptr(b.data());
      args.taps = taps;
      args.act = act;
      args.y = {engine_ptr(y), call.n, channels, channels};
      args.layer = call.layer;
      args.sequences = call.sequences;
      args.n_sequences = call.n_sequences;
      return run(context, args);
    };
    return {{(taps - 1) * channels, channels}, rows, channels, run_rows};
  }
  int64_t rows;
  int64_t channels;
  int64_t stride;
  int32_t taps;
  Act act;
  std::vector<float> x, w, b;
};

TEST_P(CausalConvTest, IsCloseToDouble) {
  CpuBench bench(GetParam());
  for (const int64_t channels : {1, 16, 40}) {
    for (const int32_t taps : {2, 3, 4, 7}) {
      for (const Act act : {Act::kNone, Act::kSilu}) {
        const Conv conv(13, channels, taps, taps != 3, act);
        const StateOp op = conv.op();
        const std::vector<float> y = StateSteps(op).step(*bench, 0, conv.rows);
        for (int64_t t = 0; t < conv.rows; ++t) {
          for (int64_t c = 0; c < channels; ++c) {
            double sum = conv.b.empty() ? 0.0 : static_cast<double>(conv.b[static_cast<size_t>(c)]);
            double size = std::fabs(sum);
            for (int64_t j = 0; j < taps; ++j) {
              const int64_t from = t - taps + 1 + j;
              if (from < 0) continue;
              const double part =
                  static_cast<double>(conv.x[static_cast<size_t>(from * conv.stride + c)]) *
                  static_cast<double>(conv.w[static_cast<size_t>(j * channels + c)]);
              sum += part;
              size += std::fabs(part);
            }
            const double want = act == Act::kSilu ? sum / (1.0 + std::exp(-sum)) : sum;
            ASSERT_NEAR(y[static_cast<size_t>(t * channels + c)], want,
                        (size * (taps + 1) + std::fabs(want) * 8) * 0x1p-24)
                << channels << " " << taps << " " << t;
          }
        }
      }
    }
  }
}

TEST_P(CausalConvTest, StepsDoNotShow) {
  expect_steps_do_not_show(Conv(24, 75, 4, true, Act::kSilu).op(), GetParam());
  expect_steps_do_not_show(Conv(24, 300, 3, false, Act::kNone).op(), GetParam());
}

TEST_P(CausalConvTest, SequencesAndThreadsDoNotShow) {
  expect_sequences_do_not_show(Conv(23, 1500, 4, true, Act::kSilu).op(), GetParam());
}

}  // namespace
}  // namespace gen::engine::cpu

// SPDX-License-Identifier: Apache-2.0
// Proves that a head of two products in memory computes what its definition says (plain arithmetic
// in double precision), on the CPU engine and on one whose memory only operations may touch, in
// steps of any number of rows, and that it needs its tensors no longer once it is made. Refusals:
// tests/api/eagle_custom_test.c.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "model/draft_head.h"
#include "model/model.h"
#include "support/cpu_engine.h"
#include "support/far_engine.h"
#include "support/tiny_head.h"

namespace gen::model {
namespace {

using test::features_of;
using test::Floats;
using test::relative_error;

constexpr int32_t kMlpVocab = 37;

/// Random tensors of a width, and what they make of rows.
struct RandomMlp {
  explicit RandomMlp(int32_t n)
      : hidden(n),
        norm(features_of(1, n, 1)),
        bias(features_of(1, n, 2)),
        fc1(features_of(static_cast<size_t>(n), n, 3)),
        fc2(features_of(static_cast<size_t>(n), n, 4)),
        head(features_of(kMlpVocab, n, 5)) {}

  [[nodiscard]] MlpTensors tensors() const {
    return {.hidden = hidden,
            .vocab_size = kMlpVocab,
            .norm_weight = norm.data(),
            .norm_bias = bias.data(),
            .fc1_weight = fc1.data(),
            .fc2_weight = fc2.data(),
            .lm_head = head.data()};
  }
  /// y = x W, where W is inputs by outputs.
  [[nodiscard]] static std::vector<double> times(const std::vector<double>& x, const Floats& w) {
    std::vector<double> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * double{w[i * y.size() + j]};
    }
    return y;
  }
  [[nodiscard]] std::vector<double> state(const float* row) const {
    const auto n = static_cast<size_t>(hidden);
    double mean = 0.0;
    double variance = 0.0;
    for (size_t i = 0; i < n; ++i) mean += double{row[i]} / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
      variance += std::pow(double{row[i]} - mean, 2) / static_cast<double>(n);
    }
    std::vector<double> x(n);
    for (size_t i = 0; i < n; ++i) {
      x[i] =
          (double{row[i]} - mean) / std::sqrt(variance + 1e-5) * double{norm[i]} + double{bias[i]};
    }
    std::vector<double> inner = times(x, fc1);
    for (double& z : inner) z /= 1.0 + std::exp(-z);
    return times(inner, fc2);
  }

  int32_t hidden;
  Floats norm;
  Floats bias;
  Floats fc1;
  Floats fc2;
  Floats head;
};

HeadTarget target_of(int32_t hidden, std::shared_ptr<engine::Engine> engine) {
  HeadTarget target;
  target.engine = std::move(engine);
  target.vocab_size = kMlpVocab;
  target.hidden = hidden;
  target.only_tap = 3;
  target.max_seq_len = 64;
  target.max_batch_rows = 16;
  return target;
}

TEST(MlpHead, ComputesWhatItsDefinitionSays) {
  test::FarMemory far;
  for (const int32_t hidden : {8, 24, 64}) {
    const std::shared_ptr<engine::Engine> engines[] = {test::cpu_engine(),
                                                       std::make_shared<test::FarEngine>(far)};
    for (const auto& engine : engines) {
      SCOPED_TRACE(std::string(engine->name()) + " " + std::to_string(hidden));
      auto mlp = std::make_unique<RandomMlp>(hidden);
      const auto head = make_mlp_head(mlp->tensors(), target_of(hidden, engine)).value();
      EXPECT_EQ(head->taps, std::vector<int32_t>{3});
      EXPECT_EQ(head->width, hidden);
      EXPECT_EQ(head->own_width, hidden);
      for (const size_t rows : {size_t{1}, size_t{5}, size_t{16}}) {
        const Floats features = features_of(rows, hidden, 9);
        std::vector<double> states;
        std::vector<double> logits;
        for (size_t row = 0; row < rows; ++row) {
          const auto state = mlp->state(features.data() + row * static_cast<size_t>(hidden));
          states.insert(states.end(), state.begin(), state.end());
          for (size_t token = 0; token < kMlpVocab; ++token) {
            double sum = 0.0;
            for (size_t i = 0; i < state.size(); ++i) {
              sum += state[i] * double{mlp->head[token * state.size() + i]};
            }
            logits.push_back(sum);
          }
        }
        std::vector<int32_t> tokens(rows, 7);
        std::vector<int32_t> positions(rows);
        for (size_t i = 0; i < rows; ++i) positions[i] = static_cast<int32_t>(i);
        std::vector<uint8_t> wants(rows, graph::kWantsLogits);
        graph::BatchSequence sequence;
        sequence.n_rows = static_cast<int32_t>(rows);
        Floats got(rows * kMlpVocab);
        Floats own(rows * static_cast<size_t>(hidden));
        const graph::Tap tap = {.layer = head->state, .out = own.data()};
        graph::Batch batch;
        batch.tokens = tokens;
        batch.positions = positions;
        batch.wants = wants;
        batch.sequences = {&sequence, 1};
        batch.features = features;
        batch.logits = got.data();
        batch.logits_rows = rows;
        batch.taps = {&tap, 1};
        ASSERT_TRUE(head->first->forward(batch).ok());
        // Products of a width w round their sums by some ulps of single precision.
        EXPECT_LT(relative_error(own, states), 1e-5);
        EXPECT_LT(relative_error(got, logits), 1e-5);
        tokens[0] = kMlpVocab;  // tokens are not used, and checked nevertheless
        EXPECT_EQ(head->first->forward(batch).code(), Code::kOutOfRange);
      }
      // Its tensors may be gone.
      for (Floats* all : {&mlp->norm, &mlp->bias, &mlp->fc1, &mlp->fc2, &mlp->head}) {
        std::fill(all->begin(), all->end(), std::numeric_limits<float>::quiet_NaN());
      }
      const RandomMlp same(hidden);
      const Floats features = features_of(1, hidden, 10);
      const int32_t token = 0;
      const uint8_t wants = graph::kWantsNothing;
      graph::BatchSequence sequence;
      sequence.n_rows = 1;
      Floats own(static_cast<size_t>(hidden));
      const graph::Tap tap = {.layer = head->state, .out = own.data()};
      graph::Batch batch;
      batch.tokens = {&token, 1};
      batch.positions = {&token, 1};
      batch.wants = {&wants, 1};
      batch.sequences = {&sequence, 1};
      batch.features = features;
      batch.taps = {&tap, 1};
      ASSERT_TRUE(head->first->forward(batch).ok());
      EXPECT_LT(relative_error(own, same.state(features.data())), 1e-5);
    }
  }
}

}  // namespace
}  // namespace gen::model

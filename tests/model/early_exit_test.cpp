// SPDX-License-Identifier: Apache-2.0
// Proves that a model of another's first layers computes what the definition says of these layers
// (a separate forward pass in double precision), with that one's weights and no copy of them, and
// lives on without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model/arch/registry.h"
#include "support/loaded_tiny.h"

namespace gen::model {
namespace {

const std::vector<int32_t> kPrompt = {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 38};

double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0.0;
  double size = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

std::vector<float> run(const Model& model) {
  const auto cache =
      cache::make_cache("fp32", model.layer_shapes(), 64, engine::system_memory()).value();
  const auto state = model.new_sequence_state().value();
  test::OwnedBatch batch;
  EXPECT_TRUE(batch.add(*cache, kPrompt, true, state.get()).ok());
  const int32_t vocab = model.traits().vocab_size;
  const Status status = model.forward(batch.finish(vocab));
  EXPECT_TRUE(status.ok()) << status.message();
  batch.commit();
  return batch.results(vocab);
}

TEST(EarlyExit, IsWhatTheFirstLayersCompute) {
  for (const arch::Architecture* row : arch::architectures()) {
    for (const bool tied : {false, true}) {
      for (const DType v_type : {DType::kF32, DType::kQ8_0}) {
        test::TinyModelSpec spec;
        spec.architecture = row->name;
        spec.layers = 4;
        spec.tied = tied;
        spec.v_type = v_type;   // products that cannot be one are split
        spec.experts_used = 6;  // all that there are: what rounding might choose otherwise
        const test::TinyModel tiny(spec);
        auto loaded = std::make_unique<test::LoadedTiny>(tiny);
        for (int32_t n = 1; n < spec.layers; ++n) {
          SCOPED_TRACE(testing::Message() << row->name << ", " << n << " layers, tied " << tied);
          auto exit = loaded->model().first_layers(n);
          ASSERT_TRUE(exit.ok()) << exit.status().message();
          EXPECT_EQ((*exit)->traits().num_layers, n);
          size_t attend = 0;
          for (int32_t i = 0; i < n; ++i) attend += tiny.attends(i) ? 1U : 0U;
          EXPECT_EQ((*exit)->layer_shapes().size(), attend);
          EXPECT_LT(relative_error(run(**exit), tiny.logits(kPrompt, n)),
                    v_type == DType::kF32 ? 2e-5 : 4e-2);
        }
        EXPECT_EQ(loaded->model().first_layers(0).status().code(), Code::kInvalidArgument);
        EXPECT_EQ(loaded->model().first_layers(4).status().code(), Code::kInvalidArgument);
      }
    }
  }
}

TEST(EarlyExit, SharesTheWeightsAndKeepsThem) {
  test::TinyModelSpec spec;
  spec.layers = 3;
  spec.hidden = 128;
  spec.heads = 8;
  spec.feed_forward = 512;
  const test::TinyModel tiny(spec);
  auto loaded = std::make_unique<test::LoadedTiny>(tiny);
  const size_t all = loaded->model().memory("weights").value();
  const auto exit = loaded->model().first_layers(2).value();
  EXPECT_LT(exit->memory("weights").value(), all / 20);  // norms alone
  EXPECT_LT(exit->memory("stream").value(), loaded->model().memory("stream").value());
  const std::vector<float> before = run(*exit);
  const std::vector<std::byte> bytes = loaded->release();  // that weights may point into
  EXPECT_EQ(run(*exit), before);
}

TEST(EarlyExit, IsNoneOfOneLayer) {
  test::TinyModelSpec spec;
  spec.layers = 1;
  const test::LoadedTiny loaded{test::TinyModel(spec)};
  EXPECT_EQ(loaded.model().first_layers(1).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace gen::model

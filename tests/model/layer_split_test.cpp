// SPDX-License-Identifier: Apache-2.0
// Proves that what a device is asked for before a model's layers go there counts the logits of a
// step, of which a device takes room for many rows at once.
#include "model/layer_split.h"

#include <gtest/gtest.h>

#include <numeric>

#include "model/loader.h"
#include "support/far_engine.h"
#include "support/tiny_graph.h"

namespace gen::model {
namespace {

TEST(LayerSplit, RoomForLogitsIsAskedFor) {
  size_t asked[2] = {0, 0};
  constexpr int32_t kVocabs[] = {1000, 5000};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    test::TinyShape shape;
    shape.vocab = kVocabs[i];
    const test::TinyGraph tiny(shape);
    test::FarMemory memory;
    const auto device = std::make_shared<test::FarEngine>(memory);
    device->pads = true;
    const LayerSplit split(tiny.graph(), shape.layers, device, test::cpu_engine());
    graph::CompileOptions options;
    options.max_seq_len = 64;
    int32_t layers = 0;
    const auto plan = split.compile(kFittingLayers, options, &layers);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(layers, shape.layers);
    // Asked for last, of the plan that was made: caches, rows and what rows want.
    ASSERT_EQ(device->asked.size(), 3U);
    asked[i] = std::accumulate(device->asked.begin(), device->asked.end(), size_t{0});
  }
  EXPECT_GE(asked[1] - asked[0], 64 * sizeof(float) * static_cast<size_t>(kVocabs[1] - kVocabs[0]));
}

}  // namespace
}  // namespace gen::model

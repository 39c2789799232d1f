// SPDX-License-Identifier: Apache-2.0
// Proves how much of a model goes to a device: numbers are taken, with less memory experts leave
// first, and what the device is asked for before counts the logits of a step, of which it takes
// room for many rows at once.
#include "model/layer_split.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

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
    DeviceLayers done;
    const auto plan = split.compile({.layers = kFittingLayers}, options, &done);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(done.layers, shape.layers);
    EXPECT_EQ(done.experts, shape.layers);
    // Asked for last, of the plan that was made: caches, rows and what rows want.
    ASSERT_EQ(device->asked.size(), 3U);
    asked[i] = std::accumulate(device->asked.begin(), device->asked.end(), size_t{0});
  }
  EXPECT_GE(asked[1] - asked[0], 64 * sizeof(float) * static_cast<size_t>(kVocabs[1] - kVocabs[0]));
}

/// With less and less room experts go first, from the first layer on, and then layers.
TEST(LayerSplit, ExpertsLeaveTheDeviceFirst) {
  test::TinyShape shape;
  shape.layers = 4;
  shape.experts = 6;
  const test::TinyGraph tiny(shape);
  graph::CompileOptions options;
  options.max_seq_len = 64;
  std::vector<std::pair<int32_t, int32_t>> seen;
  constexpr size_t kStep = 4096;
  for (size_t room = 200 * kStep; room > 0; room -= kStep) {
    test::FarMemory memory;
    const auto device = std::make_shared<test::FarEngine>(memory);
    device->room = room;
    const LayerSplit split(tiny.graph(), shape.layers, device, test::cpu_engine());
    DeviceLayers done;
    const auto plan = split.compile({kFittingLayers, kFittingLayers}, options, &done);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const std::pair<int32_t, int32_t> now(done.layers, done.experts);
    if (seen.empty() || seen.back() != now) seen.push_back(now);
  }
  const std::vector<std::pair<int32_t, int32_t>> want = {{4, 4}, {4, 3}, {4, 2}, {4, 1}, {4, 0},
                                                         {3, 0}, {2, 0}, {1, 0}, {0, 0}};
  EXPECT_EQ(seen, want);
}

TEST(LayerSplit, NumbersAreTaken) {
  test::TinyShape shape;
  shape.layers = 3;
  for (const int32_t experts : {0, 4}) {
    shape.experts = experts;
    const test::TinyGraph tiny(shape);
    graph::CompileOptions options;
    options.max_seq_len = 64;
    test::FarMemory memory;
    const auto device = std::make_shared<test::FarEngine>(memory);
    const LayerSplit split(tiny.graph(), shape.layers, device, test::cpu_engine());
    const auto done_with = [&](const DeviceLayers& wanted) {
      DeviceLayers done;
      EXPECT_TRUE(split.compile(wanted, options, &done).ok());
      return std::pair(done.layers, done.experts);
    };
    EXPECT_EQ(done_with({}), std::pair(3, 3));
    EXPECT_EQ(done_with({9, 1}), std::pair(3, experts > 0 ? 1 : 3));
    EXPECT_EQ(done_with({2, kAllLayers}), std::pair(2, 2));
    EXPECT_EQ(done_with({2, 0}), std::pair(2, experts > 0 ? 0 : 2));
    EXPECT_EQ(done_with({0, 3}), std::pair(0, 0));
    EXPECT_EQ(done_with({kFittingLayers, 1}), std::pair(3, experts > 0 ? 1 : 3));
    EXPECT_EQ(done_with({kAllLayers, kFittingLayers}), std::pair(3, 3));
  }
}

}  // namespace
}  // namespace gen::model

// SPDX-License-Identifier: Apache-2.0
// Proves that a plan reaches what its operations read and write through the engine alone: on an
// engine whose memory nobody may touch and which does nothing before it is asked to finish, results
// are those of the CPU engine, bit for bit.
#include "engine/memory/host_memory.h"
#include "support/far_engine.h"

#include <gtest/gtest.h>

#include "support/plan_side.h"

namespace gen::graph {
namespace {

using Side = test::PlanSide;

/// The same on both engines; `scenario` gives what it saw.
template <typename Scenario>
void expect_equal(Scenario scenario) {
  const test::TinyGraph tiny;
  test::FarMemory memory;
  for (const int32_t threads : {1, 3}) {
    Side near(tiny, test::cpu_engine({.threads = threads}), engine::system_memory());
    Side far(tiny, std::make_shared<test::FarEngine>(memory, threads), memory);
    const std::vector<float> want = scenario(near);
    ASSERT_FALSE(want.empty());
    EXPECT_EQ(scenario(far), want) << threads << " threads";
  }
}

TEST(FarEngine, SequencesOfAllKindsOfCachesTogether) {
  expect_equal([](Side& side) {
    std::vector<std::unique_ptr<cache::KvCache>> caches;
    caches.push_back(side.cache("fp32"));
    caches.push_back(side.paged("fp32"));
    caches.push_back(side.cache("fp16"));
    caches.push_back(side.lane("fp32"));
    caches.push_back(side.cache("fp8"));
    caches.push_back(side.paged("fp16"));
    caches.push_back(side.tiered("fp32"));
    return test::sequences_together(side, caches);
  });
}

TEST(FarEngine, TreesTapsAndEmbeddings) { expect_equal(test::trees_taps_and_embeddings); }

TEST(FarEngine, NothingIsTouchedBeforeItFinishes) {
  test::FarMemory memory;
  test::FarEngine engine(memory);
  auto buffer = std::move(engine.memory().allocate(64)).value();
  auto stream = std::move(engine.new_stream()).value();
  const float sent[] = {1.0F, 2.0F};
  float got[] = {0.0F, 0.0F};
  ASSERT_TRUE(engine.upload(*stream, buffer.data(), sent, sizeof(sent)).ok());
  ASSERT_TRUE(engine.download(*stream, got, buffer.data(), sizeof(got)).ok());
  EXPECT_EQ(got[1], 0.0F);
  ASSERT_TRUE(engine.finish(*stream).ok());
  EXPECT_EQ(got[1], 2.0F);
}

}  // namespace
}  // namespace gen::graph

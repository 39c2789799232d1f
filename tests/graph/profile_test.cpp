// SPDX-License-Identifier: Apache-2.0
// Proves that a profile counts each instruction's calls, rows, bytes and products as a hand count
// of the tiny graph gives them, and leaves results alone.
#include "graph/profile.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "graph/execution_plan.h"
#include "support/reference_cache.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

struct Sum {
  int64_t calls = 0;
  int64_t rows = 0;
  double bytes = 0;
  double products = 0;
};

class ProfileTest : public ::testing::Test {
 protected:
  ProfileTest()
      : engine_(std::make_shared<test::ReferenceEngine>()),
        pool_(engine_),
        cache_(tiny_.layer_shapes(), 64) {
    CompileOptions options;
    options.max_seq_len = 64;
    plan_ = std::move(compile(tiny_.graph(), engine_, options)).value();
  }
  /// Runs n tokens after what the cache holds; logits of the last one.
  std::vector<float> feed(int32_t n, engine::Tracer* tracer) {
    const std::vector<int32_t> tokens(static_cast<size_t>(n), 7);
    test::OwnedBatch batch;
    EXPECT_TRUE(batch.add(cache_, tokens, /*all=*/false).ok());
    batch.finish(30).tracer = tracer;
    auto workspace = pool_.borrow();
    EXPECT_TRUE(plan_->run(batch.batch, **workspace).ok());
    batch.commit();
    return batch.results(30);
  }
  static std::map<std::string, Sum> sums(const Profile& profile) {
    std::map<std::string, Sum> out;
    for (const ProfileEntry& entry : profile.entries()) {
      Sum& sum = out[entry.name];
      sum.calls += entry.calls;
      sum.rows += entry.rows;
      sum.bytes += entry.bytes;
      sum.products += entry.products;
    }
    return out;
  }

  test::TinyGraph tiny_;
  std::shared_ptr<test::ReferenceEngine> engine_;
  WorkspacePool pool_;
  test::ReferenceCache cache_;
  std::shared_ptr<const ExecutionPlan> plan_;
};

TEST_F(ProfileTest, CountsAreThoseOfAHandCount) {
  Profile profile;
  feed(5, &profile);
  feed(3, &profile);
  auto by_name = sums(profile);
  // Two layers of float32; q is 24 wide, k 12, v 20, of 24 inputs: 56 rows as one product.
  const Sum qkv = by_name["linear q+k+v"];
  EXPECT_EQ(qkv.calls, 4);
  EXPECT_EQ(qkv.rows, 2 * 8);
  EXPECT_EQ(qkv.bytes, 2.0 * 2 * 56 * 24 * 4);
  EXPECT_EQ(qkv.products, 2.0 * 8 * 56 * 24);
  const Sum gate_up = by_name["linear gate+up"];
  // In the last layer, and in the head, only rows that want logits go on: one in each run.
  EXPECT_EQ(gate_up.products, (8.0 + 2) * 2 * 40 * 24);
  EXPECT_EQ(by_name["linear head"].calls, 2);
  EXPECT_EQ(by_name["linear head"].products, 2.0 * 30 * 24);
  // Rows at positions 0 to 7 see 1 to 8 entries: 36; 4 heads of 6 and 10.
  double products = 0;
  double bytes = 0;
  for (const int layer : {0, 1}) {
    const Sum attention = by_name["attention " + std::to_string(layer)];
    products += attention.products;
    bytes += attention.bytes;
  }
  EXPECT_EQ(products, 2.0 * 36 * 4 * (6 + 10));
  // Five entries, then eight, of 2 heads.
  EXPECT_EQ(bytes, 2.0 * (5 + 8) * 2 * (6 + 10) * 4);
  EXPECT_EQ(by_name["rms_norm"].products, 0);
}

TEST_F(ProfileTest, TimeIsSpentAndResultsStay) {
  const std::vector<float> plain = feed(6, nullptr);
  ASSERT_TRUE(cache_.truncate(0).ok());
  Profile profile;
  EXPECT_EQ(feed(6, &profile), plain);
  double seconds = 0;
  for (const ProfileEntry& entry : profile.entries()) seconds += entry.seconds;
  EXPECT_GT(seconds, 0);
  EXPECT_FALSE(profile.incomplete());
}

TEST_F(ProfileTest, WhatFailedIsNotCounted) {
  Profile profile;
  engine::TraceEvent event;
  event.index = 2;
  event.op = "linear";
  profile.record(event);
  ASSERT_EQ(profile.entries().size(), 3U);
  EXPECT_EQ(profile.entries()[2].calls, 0);
  profile.done();
  EXPECT_EQ(profile.entries()[2].calls, 1);
  EXPECT_EQ(profile.entries()[0].calls, 0);
}

TEST_F(ProfileTest, ACallersFunctionIsCountedWithoutWhatItAsksFor) {
  using Clock = std::chrono::steady_clock;
  Profile profile;
  engine::TraceEvent within;
  within.index = 0;
  within.op = "attention";
  engine::TraceEvent whole;
  whole.index = 1;
  whole.op = "forward";
  whole.rows = 3;
  const auto begin = Clock::now();
  for (int i = 0; i < 2; ++i) {
    profile.enter();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    profile.record(within);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    profile.done();
    if (i == 0) profile.leave(whole);  // the second one fails
  }
  const std::chrono::duration<double> wall = Clock::now() - begin;
  ASSERT_EQ(profile.entries().size(), 2U);
  const ProfileEntry& forward = profile.entries()[1];
  EXPECT_EQ(forward.name, "forward");
  EXPECT_EQ(forward.calls, 1);
  EXPECT_EQ(forward.rows, 3);
  EXPECT_GE(forward.seconds, 0.02);
  EXPECT_GE(profile.entries()[0].seconds, 0.04);
  // No moment is counted twice, and the failed call's own are not counted at all.
  EXPECT_LE(forward.seconds + profile.entries()[0].seconds, wall.count() - 0.02);
}

}  // namespace
}  // namespace gen::graph

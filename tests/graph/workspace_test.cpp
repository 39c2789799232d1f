// SPDX-License-Identifier: Apache-2.0
// Proves that workspaces come back to their pool, and that a steady decode step takes no memory at
// all: neither through the engine's allocator nor through operator new.
#include "base/mass_slices.h"
#include "graph/workspace.h"

#include <gtest/gtest.h>

#include <thread>

#include "graph/execution_plan.h"
#include "support/counting_allocator.h"
#include "support/counting_new.h"
#include "support/reference_cache.h"
#include "support/reference_engine.h"
#include "support/tiny_graph.h"

namespace gen::graph {
namespace {

/// Operations that compute nothing, so that only the plan's own allocations count.
class IdleEngine final : public engine::Engine {
 public:
  explicit IdleEngine(Allocator& allocator) : inner_({}, allocator) {}
  [[nodiscard]] const char* name() const noexcept override { return "idle"; }
  [[nodiscard]] engine::EngineMemory& memory() noexcept override { return inner_.memory(); }
  [[nodiscard]] bool reaches_host() const noexcept override { return true; }
  Result<std::unique_ptr<engine::Weight>> prepare(
      engine::WeightRole role, std::span<const engine::WeightSource> sources,
      const std::shared_ptr<engine::WeightMemory>& memory) override {
    return inner_.prepare(role, sources, memory);
  }
  [[nodiscard]] size_t activation_bytes(uint32_t forms, int64_t cols) const noexcept override {
    return inner_.activation_bytes(forms, cols);
  }
  Result<std::unique_ptr<engine::Stream>> new_stream() override { return inner_.new_stream(); }
  [[nodiscard]] bool can(engine::Op) const noexcept override { return true; }
  Status run(engine::Stream&, const engine::OpArgs&) override { return {}; }
  Status upload(engine::Stream&, engine::EnginePtr<std::byte>, const void*, size_t) override {
    return {};
  }
  Status download(engine::Stream&, void*, engine::EnginePtr<const std::byte>, size_t) override {
    return {};
  }
  Status finish(engine::Stream&) override { return {}; }

 private:
  test::ReferenceEngine inner_;
};

TEST(Workspace, SteadyStepsTakeNoMemory) {
  const test::TinyGraph tiny;
  const auto shapes = tiny.layer_shapes();
  test::CountingAllocator allocator;
  auto engine = std::make_shared<IdleEngine>(allocator);
  CompileOptions options;
  options.max_seq_len = 64;
  const auto plan = compile(tiny.graph(), engine, options);
  ASSERT_TRUE(plan.ok());
  WorkspacePool pool(engine);
  test::ReferenceCache first(shapes, 64);
  test::ReferenceCache second(shapes, 64);
  test::OwnedBatch batch;
  ASSERT_TRUE(batch.add(first, std::vector<int32_t>{1}).ok());
  ASSERT_TRUE(batch.add(second, std::vector<int32_t>{2, 3, 4}).ok());
  batch.parents = {-1, -1, 1, 1};  // a tree needs bits, too
  batch.wants = {kWantsBest, kWantsLogits, kWantsNothing, kWantsBest};
  batch.finish(30);
  int32_t tokens[4] = {};
  float logits[4] = {};
  const uint32_t bits[] = {~uint32_t{0}};
  const int32_t aside[] = {2, 5};
  const RowExtras extras[] = {{.row = 0, .aside = aside, .temperature = 0.5, .place = 0.5},
                              {.row = 3, .mask = bits}};
  float aside_logits[2] = {};
  double mass[2] = {};
  std::vector<float> slice(2 * kMassSlice);
  batch.batch.best = {2, tokens, logits, 2, mass, 1, slice.data(), aside_logits};
  batch.batch.extras = extras;
  const auto step = [&] {
    auto workspace = pool.borrow();
    return workspace.ok() && plan.value()->run(batch.batch, **workspace).ok();
  };
  ASSERT_TRUE(step());
  const size_t allocations = allocator.calls;
  const size_t before = test::news;
  bool all = true;
  for (int i = 0; i < 10; ++i) all = step() && all;
  EXPECT_EQ(test::news, before);
  EXPECT_EQ(allocator.calls, allocations);
  EXPECT_TRUE(all);
  EXPECT_GT(before, 0U);  // the counter counts
}

TEST(WorkspacePool, LendsTheLastOneBack) {
  test::CountingAllocator allocator;
  auto engine =
      std::make_shared<test::ReferenceEngine>(test::ReferenceEngine::Options(), allocator);
  WorkspacePool pool(engine);
  Workspace* first = nullptr;
  {
    const auto lease = pool.borrow();
    ASSERT_TRUE(lease.ok());
    first = &**const_cast<Result<WorkspacePool::Lease>&>(lease);
    ASSERT_TRUE(first->reserve({1000, 0}, {500, 0}).ok());
  }
  {
    auto again = pool.borrow();
    auto other = pool.borrow();
    ASSERT_TRUE(again.ok() && other.ok());
    EXPECT_EQ(&**again, first);
    EXPECT_NE(&**other, first);
    EXPECT_EQ(pool.bytes(), 1500U);
  }
}

TEST(WorkspacePool, FailedGrowthLeavesItUsable) {
  test::CountingAllocator allocator;
  auto engine =
      std::make_shared<test::ReferenceEngine>(test::ReferenceEngine::Options(), allocator);
  WorkspacePool pool(engine);
  auto lease = pool.borrow();
  ASSERT_TRUE(lease.ok());
  Workspace& workspace = **lease;
  ASSERT_TRUE(workspace.reserve({100, 0}, {100, 0}).ok());
  allocator.fail_at = allocator.calls;
  EXPECT_EQ(workspace.reserve({1000, 0}, {100, 0}).code(), Code::kOutOfMemory);
  EXPECT_EQ(pool.bytes(), 100U);  // what was too small is gone, the rest stays
  EXPECT_TRUE(workspace.reserve({1000, 0}, {100, 0}).ok());
  EXPECT_EQ(pool.bytes(), 1100U);
}

TEST(WorkspacePool, WhatIsWantedIsTakenIfItCanBeHad) {
  test::CountingAllocator allocator;
  auto engine =
      std::make_shared<test::ReferenceEngine>(test::ReferenceEngine::Options(), allocator);
  WorkspacePool pool(engine);
  auto lease = pool.borrow();
  ASSERT_TRUE(lease.ok());
  Workspace& workspace = **lease;
  ASSERT_TRUE(workspace.reserve({100, 800}, {50, 20}).ok());
  EXPECT_EQ(pool.bytes(), 850U);
  const size_t calls = allocator.calls;
  ASSERT_TRUE(workspace.reserve({800, 900}, {0, 60}).ok());  // there is room
  EXPECT_EQ(allocator.calls, calls);
  allocator.fail_at = allocator.calls;
  ASSERT_TRUE(workspace.reserve({1000, 5000}, {0, 0}).ok());
  EXPECT_EQ(pool.bytes(), 1050U);
}

TEST(WorkspacePool, ThreadsBorrowAtOnce) {
  auto engine = std::make_shared<test::ReferenceEngine>();
  WorkspacePool pool(engine);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        auto lease = pool.borrow();
        ASSERT_TRUE(lease.ok());
        ASSERT_TRUE((**lease).reserve({64, 0}, {64, 0}).ok());
        static_cast<void>(pool.bytes());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.bytes(), 4U * 128);
}

}  // namespace
}  // namespace gen::graph

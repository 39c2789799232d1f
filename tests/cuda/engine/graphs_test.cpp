// SPDX-License-Identifier: Apache-2.0
// Proves that steps which are replayed as CUDA graphs give what the same rows give in one pass,
// with other sessions, tokens, lengths and block tables than those they were captured with; that
// graphs do not outlive what they read; and that a steady step is one list of operations.
#include <new>

#include "cuda/emulator/emulator.h"
#include "cuda/engine/allocators.h"
#include "cuda/engine/op_bench.h"
#include "cuda/engine/step_graphs.h"
#include "cuda/ops/pairs.h"
#include "support/plan_side.h"

namespace gen::graph {
namespace {

using test::OpBench;
using test::PlanSide;
using test::random_row;

cuda::StepGraphs::Counts counts(engine::Engine& engine) {
  return static_cast<cuda::CudaEngine&>(engine).graphs();
}

TEST(CudaGraphs, AnySessionsReplayThem) {
  const test::TinyGraph tiny;
  const auto engine = test::cuda_engine();
  PlanSide side(tiny, engine, engine->memory());
  PlanSide apart(tiny, engine, engine->memory());  // so that the other's first step is its smallest
  constexpr size_t kSessions = 5;
  constexpr uint64_t kBuckets = 4;  // 1, 2, 4 and 8 rows
  constexpr size_t kTokens = 21;
  struct Session {
    std::vector<int32_t> tokens;
    std::vector<float> want;
    std::vector<float> got;
    std::unique_ptr<cache::KvCache> cache;
  };
  std::vector<Session> sessions(kSessions);
  for (size_t i = 0; i < kSessions; ++i) {
    for (size_t t = 0; t < kTokens; ++t) {
      sessions[i].tokens.push_back(static_cast<int32_t>((i * 7 + t * (i + 3)) % 29));
    }
    const auto whole = apart.paged("fp16");
    sessions[i].want = apart.feed(*whole, sessions[i].tokens);
    sessions[i].cache = side.paged("fp16");
  }
  const auto before = counts(*engine);
  uint64_t waits = 0;
  // Which sessions come together changes, and how many, and which is first.
  uint64_t steps = 0;
  for (size_t turn = 0;; ++turn) {
    const size_t n = 1 + turn / 5 % kSessions;
    test::OwnedBatch batch;
    std::vector<Session*> together;
    for (size_t i = 0; i < kSessions && together.size() < n; ++i) {
      Session& session = sessions[(turn + i) % kSessions];
      const size_t done = session.got.size() / static_cast<size_t>(side.vocab());
      if (done == kTokens) continue;
      ASSERT_TRUE(batch.add(*session.cache, std::span(session.tokens).subspan(done, 1)).ok());
      together.push_back(&session);
    }
    if (together.empty()) break;
    const uint64_t waited = cuda::emulator::host_waits();  // also for blocks that caches take
    const std::vector<float> logits = side.run(batch);
    if (steps > 0) waits += cuda::emulator::host_waits() - waited;  // the first takes memory
    auto from = logits.begin();
    for (Session* session : together) {
      session->got.insert(session->got.end(), from, from + side.vocab());
      from += side.vocab();
    }
    ++steps;
  }
  for (const Session& session : sessions) EXPECT_TRUE(test::same_bits(session.got, session.want));
  const auto after = counts(*engine);
  // The host waits for each step's end and for nothing within it, but once for the memory of one
  // row's kernel.
  EXPECT_GT(after.tried, before.tried);
  EXPECT_EQ(waits, steps - 1 + 1);
  // Each bucket is met plainly once and captured once, however many sessions fill it.
  EXPECT_EQ(after.captured - before.captured, kBuckets);
  // One row may have come to be one kernel, whichever is faster here.
  const uint64_t replayed = after.replayed - before.replayed;
  EXPECT_EQ(replayed + after.by_kernel - before.by_kernel, steps - kBuckets);
  EXPECT_EQ(after.different, 0U);
}

/// A list of products of one row, long enough to be captured.
struct Products {
  Products(OpBench& bench, const engine::Weight& weight) {
    const uint32_t forms = weight.activation_forms();
    const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(forms, 64));
    engine::LinearArgs args;
    args.weight = &weight;
    args.x = {bench.room(bytes / 4).as<std::byte>(), forms, 1, 64};
    bench.run(engine::PackArgs{{bench.put(random_row(64, 3)), 1, 64, 64}, args.x});
    for (int32_t i = 0; i < 8; ++i) {
      args.y = {bench.room(5), 1, 5, 5};
      list.push_back(args);
    }
    out = args.y.data;
  }
  void use(const engine::Weight& weight) {
    for (engine::OpArgs& args : list) std::get<engine::LinearArgs>(args).weight = &weight;
  }
  std::vector<engine::OpArgs> list;
  engine::EnginePtr<float> out;
};

std::unique_ptr<engine::Weight> weight_of(OpBench& bench, float value) {
  const std::vector<float> values(5 * 64, value);
  const engine::WeightSource source = {"w",  DType::kF32, 5, 64, std::as_bytes(std::span(values)),
                                       false};
  return std::move(bench.engine().prepare(engine::WeightRole::kLinear, {&source, 1}, nullptr))
      .value();
}

TEST(CudaGraphs, WeightsThatAreGoneAreNotRead) {
  OpBench bench(test::cuda_engine());
  auto weight = weight_of(bench, 1.0F);
  Products products(bench, *weight);
  std::vector<float> first;
  for (int32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(bench.run_all(products.list).ok());
    first = bench.get(products.out, 5);
  }
  EXPECT_EQ(counts(bench.engine()).replayed, 2U);
  // Where the new one lies is most likely the old one's place.
  for (int32_t i = 2; i < 6; ++i) {
    weight.reset();
    weight = weight_of(bench, static_cast<float>(i));
    products.use(*weight);
    ASSERT_TRUE(bench.run_all(products.list).ok());
    const auto now = bench.get(products.out, 5);
    for (size_t k = 0; k < now.size(); ++k) {
      EXPECT_NEAR(now[k], first[k] * static_cast<float>(i), 1e-4F);
    }
  }
}

/// Products of `rows` rows of BF16, which take scratch memory by their rows.
struct ManyRows {
  ManyRows(OpBench& bench, const engine::Weight& weight, int64_t rows) {
    const uint32_t forms = weight.activation_forms();
    const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(forms, 64));
    engine::LinearArgs args;
    args.weight = &weight;
    args.deterministic = true;
    args.x = {bench.room(rows * bytes / 4).as<std::byte>(), forms, rows, 64};
    const auto x = bench.put(random_row(static_cast<size_t>(64 * rows), 3));
    bench.run(engine::PackArgs{{x, rows, 64, 64}, args.x});
    for (int32_t i = 0; i < 8; ++i) {
      args.y = {bench.room(5 * rows), rows, 5, 5};
      list.push_back(args);
    }
    out = args.y.data;
  }
  std::vector<engine::OpArgs> list;
  engine::EnginePtr<float> out;
};

TEST(CudaGraphs, LongStepsAreNotKept) {
  OpBench bench(test::cuda_engine());
  const auto weight = weight_of(bench, 1.0F);
  for (const int32_t rows : {256, 257}) {
    const ManyRows list(bench, *weight, rows);
    for (int32_t i = 0; i < 3; ++i) ASSERT_TRUE(bench.run_all(list.list).ok());
    EXPECT_EQ(counts(bench.engine()).captured, 1U) << rows;
    EXPECT_EQ(counts(bench.engine()).replayed, 2U) << rows;
  }
}

TEST(CudaGraphs, ScratchMemoryThatGrowsLeavesThemAsTheyAre) {
  OpBench bench(test::cuda_engine());
  const std::vector<uint16_t> values(5 * 64, 0x3F80);  // ones
  const engine::WeightSource source = {"w",  DType::kBF16, 5, 64, std::as_bytes(std::span(values)),
                                       false};
  const auto weight =
      std::move(bench.engine().prepare(engine::WeightRole::kLinear, {&source, 1}, nullptr)).value();
  const ManyRows few(bench, *weight, 12);
  ASSERT_TRUE(bench.run_all(few.list).ok());
  ASSERT_TRUE(bench.run_all(few.list).ok());
  const auto first = bench.get(few.out, 60);
  const ManyRows many(bench, *weight, 600);
  ASSERT_TRUE(bench.run_all(many.list).ok());
  bench.write(few.out.as<std::byte>(), std::vector<std::byte>(60 * sizeof(float)));
  ASSERT_TRUE(bench.run_all(few.list).ok());
  EXPECT_TRUE(test::same_bits(bench.get(few.out, 60), first));
  EXPECT_EQ(counts(bench.engine()).captured, 1U);
  EXPECT_EQ(counts(bench.engine()).replayed, 2U);
}

/// Of sums, which cost less.
struct Sums {
  explicit Sums(OpBench& bench) {
    const auto x = bench.put(random_row(5, 3));
    engine::AddArgs args;
    args.a = args.b = {x, 1, 5, 5};
    for (int32_t i = 0; i < 8; ++i) {
      args.y = {bench.room(5), 1, 5, 5};
      list.push_back(args);
    }
    out = args.y.data;
  }
  std::vector<engine::OpArgs> list;
  engine::EnginePtr<float> out;
};

TEST(CudaGraphs, ManyListsAndFailures) {
  OpBench bench(test::cuda_engine());
  std::vector<Sums> all;
  constexpr size_t kLists = 34;  // two more than are kept
  for (size_t i = 0; i < kLists; ++i) all.emplace_back(bench);
  all.push_back(all[0]);  // which has gone by then
  for (const Sums& each : all) {
    ASSERT_TRUE(bench.run_all(each.list).ok());
    ASSERT_TRUE(bench.run_all(each.list).ok());
  }
  EXPECT_TRUE(test::same_bits(bench.get(all[9].out, 5), bench.get(all[0].out, 5)));
  EXPECT_EQ(counts(bench.engine()).captured, kLists + 1);
  // A list that fails fails each time, and leaves the others as they are.
  std::vector<engine::OpArgs> broken = all[0].list;
  engine::ActivateArgs ungated;
  ungated.activation.kind = engine::Act::kClampedSwiglu;
  broken.push_back(ungated);
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bench.run_all(broken).code(), Code::kUnsupported);
    EXPECT_TRUE(bench.run_all(all[0].list).ok());
  }
}

/// Host memory may be short while a list is captured: for a plan of a library's product, say.
TEST(CudaGraphs, AListThatThrowsIsCapturedLater) {
  OpBench bench(test::cuda_engine());
  const Sums sums(bench);
  const auto pool = cuda::PoolAllocator::create(0).value();
  const auto queue = cuda::DeviceQueue::create(0, pool->table()).value();
  cuda::StepGraphs graphs(*queue);
  int32_t calls = 0;
  const auto run_list = [&](std::span<const engine::OpArgs> list) -> Status {
    GEN_TRY(cuda::run_list(queue->context(), list));
    if (++calls == 2) throw std::bad_alloc();
    return {};
  };
  const auto run = [&] {
    const cuda::DeviceQueue::Turn turn(*queue);
    return graphs.run(sums.list, run_list);
  };
  ASSERT_TRUE(run().ok());
  EXPECT_THROW(static_cast<void>(run()), std::bad_alloc);
  {
    const cuda::DeviceQueue::Turn turn(*queue);
    const Status status = queue->finish();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  for (int32_t i = 0; i < 2; ++i) {
    const Status status = run();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(graphs.counts().captured, 1U);
  EXPECT_EQ(graphs.counts().replayed, 2U);
  const cuda::DeviceQueue::Turn turn(*queue);
  EXPECT_TRUE(queue->finish().ok());
}

}  // namespace
}  // namespace gen::graph

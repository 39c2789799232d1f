// SPDX-License-Identifier: Apache-2.0
// Proves that where a row must have one result a library (here the stub of cuBLASLt) makes products
// of F16 and BF16 weights only by a way whose sums are, bit for bit, those of our own kernel; that
// it does make them by that way then; and that what is tried, refused, short or lost on the way
// there shows in no result.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/log.h"
#include "cuda/engine/allocators.h"
#include "cuda/engine/cublaslt_calls.h"
#include "cuda/engine/linear_case.h"
#include "support/gpu_allocator.h"
#include "support/loaded_tiny.h"

namespace gen::test {
namespace {

const std::vector<AddsUp> kThreeWays = {AddsUp::kAtOnce, AddsUp::kInHalves, AddsUp::kAsWeDo};

std::shared_ptr<engine::Engine> engine_with_ways(const std::vector<AddsUp>& ways) {
  auto made = engine_with(GEN_CUBLASLT_STUB);
  calls().ways = ways;
  return made;
}

/// The ways that were asked for since the last call.
std::vector<int> ways_taken() { return std::exchange(calls().whole, {}); }

/// What a trial asks for: each way once, and those that pass again: to warm up, and three times for
/// the clock.
std::vector<int> tried(size_t ways, const std::vector<int>& passing) {
  std::vector<int> all;
  for (int way = 0; way < static_cast<int>(ways); ++way) {
    const bool passes = std::find(passing.begin(), passing.end(), way) != passing.end();
    all.insert(all.end(), passes ? 5 : 1, way);
  }
  return all;
}

LinearCase one_result(const Matrix& w, int64_t rows) {
  LinearCase c;
  c.weights = {&w};
  c.rows = rows;
  c.deterministic = true;
  return c;
}

/// Rows [first, first + n) of a matrix that has them `stride` apart.
std::vector<float> some_rows(const std::vector<float>& of, int64_t first, int64_t n,
                             int64_t stride) {
  return {of.begin() + first * stride, of.begin() + (first + n) * stride};
}

/// Whatever stands beside a row, and whether it is in a trial or after it.
TEST(CudaOwnBits, ARowHasOneResult) {
  constexpr int64_t kRows = 100;
  constexpr int64_t kCols = 104;
  struct Case {
    DType type;
    int64_t outputs;
    bool gated, bias, residual;
  };
  // Of BF16 42 outputs lie where the library may put its sums, without a residual and with one.
  for (const Case& each :
       {Case{DType::kF16, 43, false, false, false}, Case{DType::kF16, 42, true, false, false},
        Case{DType::kBF16, 43, false, true, true}, Case{DType::kBF16, 43, true, true, false},
        Case{DType::kBF16, 44, true, false, false}, Case{DType::kBF16, 42, false, false, false},
        Case{DType::kBF16, 42, false, false, true}}) {
    SCOPED_TRACE(testing::Message() << dtype_name(each.type) << each.outputs << each.gated
                                    << each.bias << each.residual);
    const Matrix w(each.type, each.outputs, kCols, 1);
    const Matrix up(each.type, each.outputs, kCols, 2);
    const auto x = random_row(static_cast<size_t>(kRows * kCols), 3);
    LinearCase c = one_result(w, kRows);
    if (each.gated) {
      c.weights.push_back(&up);
      c.role = WeightRole::kGated;
      c.activation = {engine::Act::kSilu};
    }
    c.bias = each.bias;
    c.residual = each.residual;
    OpBench with(engine_with_ways(kThreeWays));
    OpBench without(cuda_engine());
    const int64_t stride = each.outputs + 2;
    const auto all = run(without, c, x);
    const auto expect = [&](int64_t first, int64_t n) {
      SCOPED_TRACE(testing::Message() << n << " rows from " << first);
      c.rows = n;
      const auto rows = some_rows(x, first, n, kCols);
      const auto got = run(with, c, rows);
      // What is added to a row belongs to its place, so there it is not the row of all.
      if (each.residual) {
        ASSERT_TRUE(same_bits(got, run(without, c, rows)));
      }
      for (int64_t t = 0; t < n && !each.residual; ++t) {
        ASSERT_TRUE(same_bits(some_rows(got, t * stride, each.outputs, 1),
                              some_rows(all, (first + t) * stride, each.outputs, 1)))
            << "row " << t;
      }
    };
    const bool some = each.gated || each.bias || each.residual;
    for (int64_t n = 1; n <= 40; n += some ? 13 : 3) expect(n, n);
    for (const int64_t n : {int64_t{32}, int64_t{64}, kRows}) expect(kRows - n, n);
  }
}

/// A trial takes one way after another until one has the bits; from then on that is taken, for all
/// numbers of rows that are filled up to the same. Other sizes are tried for themselves.
TEST(CudaOwnBits, TheWayThatWasFoundIsTaken) {
  OpBench with(engine_with_ways(kThreeWays));
  OpBench without(cuda_engine());
  const Matrix w(DType::kBF16, 43, 104, 1);
  const Matrix other(DType::kBF16, 43, 96, 2);
  const auto x = random_row(100 * 104, 3);
  using Ways = std::vector<int>;
  const auto taken = [&](LinearCase c) {
    ways_taken();
    const auto rows = some_rows(x, 0, c.rows, c.weights[0]->cols);
    EXPECT_TRUE(same_bits(run(with, c, rows), run(without, c, rows)));
    return ways_taken();
  };
  EXPECT_EQ(taken(one_result(w, 8)), Ways());  // a kernel of its own
  EXPECT_EQ(taken(one_result(w, 20)), tried(3, {2}));
  EXPECT_EQ(taken(one_result(w, 20)), Ways({2}));
  EXPECT_EQ(taken(one_result(w, 32)), Ways({2}));
  EXPECT_EQ(taken(one_result(w, 17)), Ways({2}));
  EXPECT_EQ(taken(one_result(w, 16)), tried(3, {2}));
  EXPECT_EQ(taken(one_result(w, 9)), Ways({2}));
  EXPECT_EQ(taken(one_result(w, 70)), tried(3, {2}));
  EXPECT_EQ(taken(one_result(w, 96)), Ways({2}));
  EXPECT_EQ(taken(one_result(other, 20)), tried(3, {2}));
  LinearCase gated = one_result(w, 20);
  gated.weights.push_back(&w);
  gated.role = WeightRole::kGated;
  EXPECT_EQ(taken(gated), Ways({2, 2}));
  // Where sums go right to their place, with and without something to add them to.
  const Matrix straight(DType::kBF16, 42, 104, 4);
  LinearCase added = one_result(straight, 32);
  EXPECT_EQ(taken(added), tried(3, {2}));
  EXPECT_EQ(taken(added), Ways({2}));
  added.residual = true;
  EXPECT_EQ(taken(added), tried(3, {2}));
  calls().residuals = 0;
  EXPECT_EQ(taken(added), Ways({2}));
  EXPECT_EQ(calls().residuals, 1);
  added.rows = 31;
  EXPECT_EQ(taken(added), tried(3, {2}));
  EXPECT_EQ(calls().residuals, 1);
  // What need not have one result is asked for as ever.
  LinearCase free = one_result(w, 20);
  free.deterministic = false;
  calls().made = 0;
  run(with, free, some_rows(x, 0, 20, 104));
  EXPECT_EQ(calls().made, 1);
  EXPECT_EQ(ways_taken(), Ways());
}

/// What fills rows up is compared, too: other numbers of rows that are filled up to the same have
/// their own there.
TEST(CudaOwnBits, RowsThatFillUpAreCompared) {
  OpBench with(engine_with_ways({AddsUp::kAsWeDoButTheLast, AddsUp::kAsWeDo}));
  OpBench without(cuda_engine());
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(32 * 104, 3);
  const auto run_rows = [&](OpBench& bench, int64_t n) {
    return run(bench, one_result(w, n), some_rows(x, 0, n, 104));
  };
  run_rows(with, 20);
  EXPECT_EQ(ways_taken(), tried(2, {1}));
  EXPECT_TRUE(same_bits(run_rows(with, 32), run_rows(without, 32)));
  EXPECT_EQ(ways_taken(), std::vector<int>({1}));
}

/// Of ways that have the bits the fastest one is taken, never one that has not, and none where our
/// own kernel is as fast.
TEST(CudaOwnBits, TheFastestIsTaken) {
  constexpr auto kOther = AddsUp::kAtOnce;
  constexpr auto kOurs = AddsUp::kAsWeDo;
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  OpBench without(cuda_engine());
  const LinearCase c = one_result(w, 20);
  const auto own = run(without, c, x);
  struct Case {
    std::vector<AddsUp> ways;
    std::vector<double> way_us;
    double own_us;
    std::vector<int> passing;
    int taken;  // -1: our own kernel
  };
  for (const Case& each :
       {Case{{kOurs, kOurs, kOurs}, {30, 20, 25}, 40, {0, 1, 2}, 1},
        Case{{kOurs, kOurs, kOurs}, {30, 20, 10}, 40, {0, 1, 2}, 2},
        Case{{kOurs, kOurs, kOurs}, {20, 20, 20}, 40, {0, 1, 2}, 0},
        Case{{kOther, kOurs, kOther, kOurs}, {1, 30, 2, 35}, 40, {1, 3}, 1},
        Case{{kOurs, kOther, kOurs}, {30, 1, 20}, 40, {0, 2}, 2},
        Case{{kOurs, kOther, kOurs}, {30, 1, 20}, 19, {0, 2}, -1},
        Case{{kOurs, kOther, kOurs}, {30, 1, 20}, 20, {0, 2}, -1},
        Case{{kOurs, kOther}, {30, 1}, 31, {0}, 0}, Case{{kOther, kOther}, {1, 1}, 40, {}, -1}}) {
    SCOPED_TRACE(testing::Message() << each.ways.size() << " ways, to take " << each.taken);
    OpBench with(engine_with_ways(each.ways));
    calls().way_us = each.way_us;
    calls().own_us = each.own_us;
    EXPECT_TRUE(same_bits(run(with, c, x), own));
    EXPECT_EQ(ways_taken(), tried(each.ways.size(), each.passing));
    for (int32_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(same_bits(run(with, c, x), own));
      EXPECT_EQ(ways_taken(), each.taken < 0 ? std::vector<int>() : std::vector<int>({each.taken}));
    }
  }
}

TEST(CudaOwnBits, NoWayHasThem) {
  OpBench with(engine_with_ways({AddsUp::kAtOnce, AddsUp::kInHalves}));
  OpBench without(cuda_engine());
  const Matrix w(DType::kF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  const LinearCase c = one_result(w, 20);
  const auto own = run(without, c, x);
  EXPECT_TRUE(same_bits(run(with, c, x), own));
  EXPECT_EQ(ways_taken(), std::vector<int>({0, 1}));
  for (int32_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(run(with, c, x), own));
  EXPECT_EQ(ways_taken(), std::vector<int>());
  // A model's first and last shape may be of any size, but those of a few sums tell too little.
  const Matrix small(DType::kBF16, 15, 104, 1);
  run(with, one_result(small, 20), x);
  EXPECT_EQ(ways_taken(), std::vector<int>());
}

/// Sums that are exact, or nothing, are the same in any order: such a trial says nothing, and the
/// next one does. After many of them there are no more.
TEST(CudaOwnBits, WhatTellsNothingDecidesNothing) {
  Matrix w(DType::kBF16, 43, 104, 1);
  Matrix zeros = w;
  std::fill(zeros.bytes.begin(), zeros.bytes.end(), std::byte{0});
  const auto x = random_row(20 * 104, 3);
  const std::vector<float> ones(20 * 104, 1.0F);
  OpBench without(cuda_engine());
  using Ways = std::vector<int>;
  {
    OpBench with(engine_with_ways({AddsUp::kAtOnce, AddsUp::kAsWeDo}));
    const auto taken = [&](const Matrix& of, const std::vector<float>& rows) {
      const LinearCase c = one_result(of, 20);
      EXPECT_TRUE(same_bits(run(with, c, rows), run(without, c, rows)));
      return ways_taken();
    };
    Matrix whole = w;
    for (size_t i = 0; i < whole.bytes.size(); i += 2) {
      whole.bytes[i] = std::byte{0x80};
      whole.bytes[i + 1] = std::byte{0x3F};
    }
    EXPECT_EQ(taken(zeros, x), Ways({0}));
    EXPECT_EQ(taken(whole, ones), Ways({0}));
    EXPECT_EQ(taken(w, x), tried(2, {1}));
    EXPECT_EQ(taken(w, x), Ways({1}));
    EXPECT_EQ(taken(zeros, x), Ways({1}));
  }
  OpBench with(engine_with_ways({AddsUp::kAsWeDo}));
  for (int32_t i = 0; i < 70; ++i) run(with, one_result(zeros, 20), x);
  EXPECT_EQ(ways_taken().size(), 64U);
  EXPECT_TRUE(same_bits(run(with, one_result(w, 20), x), run(without, one_result(w, 20), x)));
  EXPECT_EQ(ways_taken(), Ways());
}

TEST(CudaOwnBits, CallsThatFail) {
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  const LinearCase c = one_result(w, 20);
  OpBench without(cuda_engine());
  const auto own = run(without, c, x);
  using Ways = std::vector<int>;
  {
    OpBench with(engine_with_ways(kThreeWays));
    calls().answer = 13;
    EXPECT_TRUE(same_bits(run(with, c, x), own));
    EXPECT_EQ(ways_taken(), Ways({0, 1, 2}));
    calls().answer = 0;
    EXPECT_TRUE(same_bits(run(with, c, x), own));
    EXPECT_EQ(ways_taken(), Ways());
  }
  {
    OpBench with(engine_with_ways(kThreeWays));
    run(with, c, x);
    calls().answer = 13;
    ways_taken();
    EXPECT_TRUE(same_bits(run(with, c, x), own));
    EXPECT_EQ(ways_taken(), Ways({2}));
    EXPECT_TRUE(same_bits(run(with, c, x), own));
    EXPECT_EQ(ways_taken(), Ways());
  }
  for (const char* missing : {"off", "/nowhere/libcublasLt.so"}) {
    OpBench bench(engine_with(missing));
    EXPECT_TRUE(same_bits(run(bench, c, x), own)) << missing;
  }
}

/// A product with the weights, rows and results that it keeps.
struct KeptProduct {
  KeptProduct(OpBench& bench, const Matrix& w, const std::vector<float>& x, int64_t rows) {
    const WeightSource source = w.source();
    weight = std::move(bench.engine().prepare(WeightRole::kLinear, {&source, 1}, nullptr)).value();
    const uint32_t forms = weight->activation_forms();
    const auto bytes = static_cast<int64_t>(bench.engine().activation_bytes(forms, w.cols));
    args.weight = weight.get();
    args.deterministic = true;
    args.x = {bench.room(rows * bytes / 4).as<std::byte>(), forms, rows, w.cols};
    bench.run(engine::PackArgs{{bench.put(x), rows, w.cols, w.cols}, args.x});
    args.y = {bench.room(rows * w.rows), rows, w.rows, w.rows};
  }
  std::unique_ptr<engine::Weight> weight;
  engine::LinearArgs args;
};

/// What an engine without the library gives.
std::vector<float> by_our_kernel(const Matrix& w, const std::vector<float>& x, int64_t rows) {
  OpBench bench(cuda_engine());
  const KeptProduct product(bench, w, x, rows);
  bench.run(product.args);
  return bench.get(product.args.y.data, rows * w.rows);
}

/// Each call of a trial may fail. What cannot be timed is not compared by time: then it is the
/// first way that has the bits.
TEST(CudaOwnBits, CallsOfATrialThatFail) {
  const std::vector<AddsUp> ways = {AddsUp::kAtOnce, AddsUp::kAsWeDo, AddsUp::kAsWeDo};
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  const auto own = by_our_kernel(w, x, 20);
  size_t first = 0;
  size_t failed = 0;
  for (uint64_t after = 0;; ++after) {
    SCOPED_TRACE(after);
    OpBench bench(engine_with_ways(ways));
    calls().way_us = {1, 20, 10};
    const KeptProduct product(bench, w, x, 20);
    cuda::emulator::fail_call(after, cuda::device::kInvalidValue);
    const Status status = bench.try_run(product.args);
    const bool through = cuda::emulator::forget_failing_call();
    if (status.ok()) {
      EXPECT_TRUE(same_bits(bench.get(product.args.y.data, 20 * 43), own));
    } else {
      EXPECT_EQ(status.code(), Code::kDevice) << status.message();
      ++failed;
    }
    ways_taken();
    for (int32_t i = 0; i < 3; ++i) {
      bench.run(product.args);
      EXPECT_TRUE(same_bits(bench.get(product.args.y.data, 20 * 43), own));
    }
    // One that a call has failed for may be left out.
    const int taken = ways_taken().back();
    EXPECT_TRUE(taken == 1 || taken == 2);
    if (taken == 1) ++first;
    if (!through) continue;
    EXPECT_EQ(taken, 2);
    break;
  }
  // The first of the two is taken where the other's first product fails, or one of its six calls
  // for a time: four products and two events; where one of its own events does; and where one of
  // our kernel's six does. Else the trial goes on without a way, or comes again.
  EXPECT_EQ(first, 1U + 6U + 2U + 6U);
  EXPECT_GE(failed, 6U);
}

/// Scratch memory, or what a trial has found, may find no room: then it is our own kernel's, the
/// next one tries again, and what cannot be made at all says so.
TEST(CudaOwnBits, LackOfMemoryAtAnyCall) {
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  const auto own = by_our_kernel(w, x, 20);
  const auto pool = cuda::PoolAllocator::create(0).value();
  size_t refusals = 0;
  size_t made = 0;
  for (bool through = false; !through; ++refusals) {
    TestGpuAllocator refusing(pool->table());
    setenv("GEN_CUBLASLT", GEN_CUBLASLT_STUB, 1);
    engine::EngineOptions options;
    options.gpu_allocator = {std::shared_ptr<void>(), &refusing.table()};
    OpBench bench(engine::create_engine(cuda::cuda_backend(), options).value());
    unsetenv("GEN_CUBLASLT");
    begin_calls();
    calls().ways = kThreeWays;
    const KeptProduct product(bench, w, x, 20);
    const size_t before = refusing.calls;
    refusing.refused = before + refusals;
    const Status status = bench.try_run(product.args);
    through = refusing.calls <= refusing.refused;
    refusing.refused = TestGpuAllocator::kNone;
    if (status.ok()) {
      ++made;
      EXPECT_TRUE(same_bits(bench.get(product.args.y.data, 20 * 43), own)) << refusals;
    } else {
      EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
    }
    for (int32_t i = 0; i < 2; ++i) {
      bench.run(product.args);
      EXPECT_TRUE(same_bits(bench.get(product.args.y.data, 20 * 43), own)) << refusals;
    }
    EXPECT_EQ(ways_taken().back(), 2);
  }
  EXPECT_GE(refusals, 2U);
  EXPECT_EQ(made, refusals);  // our own kernel has room each time
}

TEST(CudaOwnBits, ADeviceLostMeanwhile) {
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  uint64_t before = cuda::emulator::kernels_run();
  {
    OpBench bench(cuda_engine());
    const KeptProduct product(bench, w, x, 20);
    before = cuda::emulator::kernels_run() - before;
  }
  for (uint64_t after = 0;; ++after) {
    SCOPED_TRACE(after);
    cuda::emulator::Options options;
    options.lost_after = cuda::emulator::kernels_run() + before + 1 + after;
    cuda::emulator::configure(options);
    bool through = false;
    {
      OpBench bench(engine_with_ways(kThreeWays));
      const KeptProduct product(bench, w, x, 20);
      const Status status = bench.try_run(product.args);
      through = status.ok();
      EXPECT_TRUE(through || status.code() == Code::kDevice) << status.message();
      if (!through) {
        EXPECT_EQ(bench.try_run(product.args).code(), Code::kDevice);
      }
    }
    cuda::emulator::configure({});
    EXPECT_EQ(cuda::emulator::live_device_bytes(), 0U);
    if (!through) continue;
    EXPECT_GT(after,
              9U);  // rounding, three of each: the library's, our own, comparing; and the end
    break;
  }
}

/// An estimate's dry run takes the memory that a first step takes, whose products are tried, and
/// later ones take no more.
TEST(CudaOwnBits, ADryRunTakesWhatATrialTakes) {
  const auto pool = cuda::PoolAllocator::create(0).value();
  struct Case {
    DType type;
    int64_t outputs;
    int64_t rows;
    bool residual;
  };
  for (const Case& each : {Case{DType::kF16, 43, 20, false}, Case{DType::kBF16, 44, 32, false},
                           Case{DType::kBF16, 44, 32, true}, Case{DType::kBF16, 44, 31, true}}) {
    SCOPED_TRACE(testing::Message() << dtype_name(each.type) << each.rows << each.residual);
    const Matrix w(each.type, each.outputs, 104, 1);
    const auto x = random_row(static_cast<size_t>(each.rows * 104), 3);
    const auto bytes = [&](const char* library, bool dry) {
      TestGpuAllocator counted(pool->table());
      setenv("GEN_CUBLASLT", library, 1);
      engine::EngineOptions options;
      options.gpu_allocator = {std::shared_ptr<void>(), &counted.table()};
      options.dry_run = dry;
      OpBench bench(engine::create_engine(cuda::cuda_backend(), options).value());
      unsetenv("GEN_CUBLASLT");
      begin_calls();  // no real clock decides which way is kept
      calls().ways = kThreeWays;
      KeptProduct product(bench, w, x, each.rows);
      if (each.residual) {
        product.args.residual = {product.args.y.data, each.rows, each.outputs, each.outputs};
      }
      bench.run(product.args);
      const size_t first = counted.live_bytes();
      bench.run(product.args);
      EXPECT_EQ(counted.live_bytes(), first);
      EXPECT_EQ(ways_taken().size(), dry || calls().made == 0 ? 0U : 8U);
      return first;
    };
    const size_t with = bytes(GEN_CUBLASLT_STUB, false);
    EXPECT_EQ(bytes(GEN_CUBLASLT_STUB, true), with);
    const size_t without = bytes("off", false);
    EXPECT_EQ(bytes("off", true), without);
    EXPECT_GE(with, without + (size_t{4} << 20));
  }
}

/// A list is captured when it comes again, so its products have been tried by then. One that could
/// not be decided is our own kernel's in the graph.
TEST(CudaOwnBits, Graphs) {
  const Matrix w(DType::kBF16, 43, 104, 1);
  const auto x = random_row(20 * 104, 3);
  const auto own = by_our_kernel(w, x, 20);
  OpBench with(engine_with_ways(kThreeWays));
  auto& graphs = static_cast<cuda::CudaEngine&>(with.engine());
  const auto list_of = [](const KeptProduct& product) {
    return std::vector<engine::OpArgs>(8, engine::OpArgs(product.args));
  };
  const auto run_list = [&](const KeptProduct& product) {
    with.write(product.args.y.data.as<std::byte>(), std::vector<std::byte>(20 * 43 * 4));
    const Status status = with.run_all(list_of(product));
    EXPECT_TRUE(status.ok()) << status.message();
    return with.get(product.args.y.data, 20 * 43);
  };
  const KeptProduct product(with, w, x, 20);
  EXPECT_TRUE(same_bits(run_list(product), own));
  std::vector<int> all = tried(3, {2});
  all.insert(all.end(), 7, 2);
  EXPECT_EQ(ways_taken(), all);
  EXPECT_TRUE(same_bits(run_list(product), own));
  EXPECT_EQ(ways_taken(), std::vector<int>(8, 2));
  EXPECT_EQ(graphs.graphs().captured, 1U);
  EXPECT_TRUE(same_bits(run_list(product), own));
  EXPECT_EQ(ways_taken(), std::vector<int>());
  EXPECT_EQ(graphs.graphs().replayed, 2U);

  // Of another size, with rows of nothing at first.
  const Matrix other(DType::kBF16, 43, 96, 2);
  const auto y = random_row(20 * 96, 3);
  const KeptProduct late(with, other, std::vector<float>(20 * 96), 20);
  EXPECT_TRUE(same_bits(run_list(late), std::vector<float>(20 * 43)));
  EXPECT_EQ(ways_taken(), std::vector<int>(8, 0));
  with.run(engine::PackArgs{{with.put(y), 20, 96, 96}, late.args.x});
  const auto want = by_our_kernel(other, y, 20);
  for (int32_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(run_list(late), want));
  EXPECT_EQ(graphs.graphs().captured, 2U);
  EXPECT_EQ(ways_taken(), std::vector<int>());
  // Outside of the graph there is still a trial.
  with.run(late.args);
  EXPECT_EQ(ways_taken(), tried(3, {2}));
  EXPECT_TRUE(same_bits(run_list(late), want));
  EXPECT_EQ(ways_taken(), std::vector<int>());
}

/// Whole models, in steps of any size, some of which come again as graphs.
TEST(CudaOwnBits, Models) {
  for (const DType type : {DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(dtype_name(type));
    TinyModelSpec spec;
    spec.type = type;
    spec.hidden = 64;
    spec.heads = 4;
    spec.feed_forward = 96;
    const TinyModel tiny(spec);
    const auto logits = [&](const std::shared_ptr<engine::Engine>& engine) {
      TinyEngineOptions options;
      options.engine = engine;
      const LoadedTiny model(tiny, options);
      std::vector<float> all;
      for (const size_t each : {20U, 20U, 20U, 11U, 7U}) {
        const auto cache =
            cache::make_cache("fp16", model.model().layer_shapes(), 128, engine->memory()).value();
        std::vector<int32_t> tokens(40);
        for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 47);
        for (size_t at = 0; at < tokens.size(); at += each) {
          OwnedBatch batch;
          const size_t n = std::min<size_t>(each, tokens.size() - at);
          EXPECT_TRUE(batch.add(*cache, std::span(tokens).subspan(at, n)).ok());
          batch.batch.deterministic = true;
          const Status status = model.model().forward(batch.finish(model.vocab()));
          EXPECT_TRUE(status.ok()) << status.message();
          batch.commit();
          const auto part = batch.results(model.vocab());
          all.insert(all.end(), part.begin(), part.end());
        }
      }
      return all;
    };
    const auto want = logits(cuda_engine());
    const auto engine = engine_with_ways(kThreeWays);
    EXPECT_TRUE(same_bits(logits(engine), want));
    const auto taken = ways_taken();
    EXPECT_GT(std::count(taken.begin(), taken.end(), 2), 20);
    EXPECT_GT(static_cast<cuda::CudaEngine&>(*engine).graphs().replayed, 0U);
    // Of five passes over the text each has the same bits.
    const auto pass = static_cast<std::ptrdiff_t>(want.size() / 5);
    for (std::ptrdiff_t i = 1; i < 5; ++i) {
      EXPECT_TRUE(same_bits({want.begin(), want.begin() + pass},
                            {want.begin() + i * pass, want.begin() + (i + 1) * pass}));
    }
  }
}

/// What is found is told at the level for details, once for a shape.
TEST(CudaOwnBits, IsLogged) {
  const Matrix w(DType::kBF16, 43, 104, 1);
  static std::vector<std::string> own_bits_lines;
  set_log_sink([](void*, int32_t level,
                  const char* line) { own_bits_lines.push_back(std::to_string(level) + line); },
               nullptr);
  set_log_level(LogLevel::kDebug);
  const auto x = random_row(20 * 104, 4);
  const auto said = [&](OpBench& bench, const std::vector<float>& rows) {
    own_bits_lines.clear();
    for (int32_t i = 0; i < 3; ++i) run(bench, one_result(w, 20), rows);
    return own_bits_lines;
  };
  using Lines = std::vector<std::string>;
  OpBench three(engine_with_ways(kThreeWays));
  EXPECT_EQ(
      said(three, x),
      Lines({"4cuBLASLt: 1 of 3 algorithms passed their trial for 32 rows of BF16 weights, 43 "
             "x 104: algorithm 3, 1.0 us, our kernel 100.0"}));
  OpBench slower(engine_with_ways(kThreeWays));
  calls().way_us = {1.0, 1.0, 250.5};
  EXPECT_EQ(
      said(slower, x),
      Lines({"4cuBLASLt: 1 of 3 algorithms passed their trial for 32 rows of BF16 weights, 43 "
             "x 104: algorithm 3, 250.5 us, our kernel 100.0, which is kept"}));
  OpBench other(engine_with_ways({AddsUp::kAtOnce}));
  EXPECT_EQ(said(other, x),
            Lines({"4cuBLASLt: none of 1 algorithms passed its trial for 32 rows of BF16 weights, "
                   "43 x 104"}));
  // Of 32 rows 14 are numbers, seven and the same ones among those that fill up: too few.
  std::vector<float> few = x;
  std::fill(few.begin() + 7 * 104, few.end(), std::nanf(""));
  OpBench one(engine_with_ways({AddsUp::kAsWeDo}));
  EXPECT_EQ(said(one, few), Lines());
  EXPECT_EQ(
      said(one, x),
      Lines({"4cuBLASLt: 1 of 1 algorithms passed their trial for 32 rows of BF16 weights, 43 "
             "x 104: algorithm 1, 1.0 us, our kernel 100.0"}));
  set_log_level(LogLevel::kOff);
  set_log_sink(nullptr, nullptr);
}

}  // namespace
}  // namespace gen::test

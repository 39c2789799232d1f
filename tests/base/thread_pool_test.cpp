// SPDX-License-Identifier: Apache-2.0
// Proves the pool's contract: every index once per run on its own thread, run() returns after all
// shares, no wake-up is lost between spinning and sleeping, callers take turns, bad arguments are
// refused; and that split_range covers a range exactly. Meant to run under the thread sanitizer
// too.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

namespace gen {
namespace {

std::shared_ptr<ThreadPool> make_pool(int32_t threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

class ThreadPoolSizes : public ::testing::TestWithParam<int32_t> {};

TEST_P(ThreadPoolSizes, RunsEveryIndexOnceOnItsOwnThread) {
  const int32_t size = GetParam();
  auto pool = make_pool(size);
  ASSERT_EQ(pool->size(), size);
  std::vector<int> calls(static_cast<size_t>(size));  // plain: each index has its own element
  std::vector<std::thread::id> threads(static_cast<size_t>(size));
  pool->run([&](int32_t index) {
    ++calls[static_cast<size_t>(index)];
    threads[static_cast<size_t>(index)] = std::this_thread::get_id();
  });
  for (int count : calls) EXPECT_EQ(count, 1);
  EXPECT_EQ(threads[0], std::this_thread::get_id()) << "the caller works as index 0";
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), static_cast<size_t>(size));
}

TEST_P(ThreadPoolSizes, ManyRunsBackToBack) {
  auto pool = make_pool(GetParam());
  int64_t total = 0;
  std::vector<int64_t> sums(static_cast<size_t>(GetParam()));
  constexpr int kRuns = 3000;
  for (int run = 0; run < kRuns; ++run) {
    pool->run([&](int32_t index) { sums[static_cast<size_t>(index)] += run; });
    total += run;
  }
  for (int64_t sum : sums) EXPECT_EQ(sum, total);
}

// Gaps around the spin time make workers meet the next job while spinning, while going to sleep
// and while asleep.
TEST_P(ThreadPoolSizes, NoWakeUpIsLostWhileFallingAsleep) {
  auto pool = make_pool(GetParam());
  std::atomic<int64_t> shares{0};
  constexpr int kRuns = 600;
  for (int run = 0; run < kRuns; ++run) {
    pool->run([&](int32_t) { shares.fetch_add(1, std::memory_order_relaxed); });
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(run % 120);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
  EXPECT_EQ(shares.load(), int64_t{kRuns} * GetParam());
}

// A slow share makes the caller sleep; a fast one finds it spinning.
TEST_P(ThreadPoolSizes, ReturnsOnlyAfterTheSlowestShare) {
  auto pool = make_pool(GetParam());
  for (int run = 0; run < 40; ++run) {
    std::atomic<int32_t> finished{0};
    pool->run([&](int32_t index) {
      if (index == GetParam() - 1) std::this_thread::sleep_for(std::chrono::microseconds(run * 10));
      finished.fetch_add(1, std::memory_order_relaxed);
    });
    ASSERT_EQ(finished.load(), GetParam());
  }
}

TEST_P(ThreadPoolSizes, ConcurrentCallersTakeTurns) {
  auto pool = make_pool(GetParam());
  std::atomic<int> jobs_inside{0};
  std::atomic<int> overlaps{0};
  int64_t unguarded = 0;  // written by index 0 of each job; a data race if two jobs overlap
  constexpr int kCallers = 4;
  constexpr int kRuns = 200;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&] {
      for (int run = 0; run < kRuns; ++run) {
        pool->run([&](int32_t index) {
          if (index != 0) return;
          if (jobs_inside.fetch_add(1) != 0) overlaps.fetch_add(1);
          ++unguarded;
          jobs_inside.fetch_sub(1);
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(overlaps.load(), 0);
  EXPECT_EQ(unguarded, kCallers * kRuns);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolSizes, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, IsDestroyedWhileWorkersSpinOrSleep) {
  for (int i = 0; i < 50; ++i) {
    auto pool = make_pool(4);
    if (i % 2 == 0) pool->run([](int32_t) {});
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

TEST(ThreadPool, ZeroMeansUsableCpus) {
  auto pool = make_pool(0);
  EXPECT_EQ(pool->size(), usable_cpus());
}

TEST(ThreadPool, RefusesBadThreadCounts) {
  for (int32_t threads : {-1, 1025, INT32_MIN, INT32_MAX}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.status().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(pool.status().message()).find(std::to_string(threads)), std::string::npos)
        << pool.status().message();
  }
}

TEST(ThreadPool, RefusesUnknownCpus) {
  for (int32_t cpu : {-1, 1 << 20}) {
    auto pool = ThreadPool::create(2, std::span(&cpu, 1));
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.status().code(), Code::kInvalidArgument);
    EXPECT_NE(std::string(pool.status().message()).find(std::to_string(cpu)), std::string::npos);
  }
}

TEST(ThreadPool, PinsWorkersAndLeavesTheCallerAlone) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int32_t last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &mine)) last = cpu;
  }
  auto pool = ThreadPool::create(3, std::span(&last, 1));
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  cpu_set_t masks[3];
  pool.value()->run(
      [&](int32_t index) { sched_getaffinity(0, sizeof masks[index], &masks[index]); });
  EXPECT_TRUE(CPU_EQUAL(&masks[0], &mine));
  for (int worker : {1, 2}) {
    EXPECT_EQ(CPU_COUNT(&masks[worker]), 1);
    EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(last), &masks[worker]));
  }
}

TEST(ThreadPool, WorkersTakeNoSignals) {
  auto pool = make_pool(2);
  int blocked = 0;
  pool->run([&](int32_t index) {
    if (index == 0) return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGINT) + sigismember(&mask, SIGUSR1);
  });
  EXPECT_EQ(blocked, 2);
}

TEST(ThreadPool, IdlePoolUsesNoCpu) {
  auto pool = make_pool(4);
  pool->run([](int32_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // let the workers fall asleep
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  EXPECT_LT(used, 0.05);  // three spinning workers on any machine would use at least 0.2
}

TEST(UsableCpus, IsWithinTheAffinityMask) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&mine));
}

TEST(SplitRange, CoversTheRangeInGrains) {
  for (int64_t count : {0, 1, 7, 8, 9, 64, 65, 1000}) {
    for (int64_t grain : {1, 3, 8, 64}) {
      for (int32_t parts : {1, 2, 3, 8, 1024}) {
        int64_t next = 0;
        int64_t smallest = INT64_MAX;
        int64_t largest = 0;
        for (int32_t part = 0; part < parts; ++part) {
          const IndexRange range = split_range(count, grain, parts, part);
          ASSERT_EQ(range.begin, next) << "ranges are contiguous and in order";
          ASSERT_LE(range.begin, range.end);
          ASSERT_TRUE(range.begin % grain == 0 || range.begin == count);
          const int64_t grains = (range.end - range.begin + grain - 1) / grain;
          smallest = std::min(smallest, grains);
          largest = std::max(largest, grains);
          next = range.end;
        }
        EXPECT_EQ(next, count);
        EXPECT_LE(largest - smallest, 1) << "shares are even";
      }
    }
  }
}

TEST(SplitRange, HoldsAtTheEndOfTheType) {
  const IndexRange last = split_range(INT64_MAX, 4096, 3, 2);
  EXPECT_EQ(last.end, INT64_MAX);
  EXPECT_EQ(last.begin % 4096, 0);
}

}  // namespace
}  // namespace gen

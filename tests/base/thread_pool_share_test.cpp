// SPDX-License-Identifier: Apache-2.0
// Proves that a job that may be split into any number of shares does not wait for workers that get
// no CPU: hooks hold workers back and replace the clock, so nothing here depends on time. Meant to
// run under the thread sanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace gen {
namespace {

constexpr int64_t kMilli = 1'000'000;

void wait_until(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

/// A clock that stands still, and a door that workers stand at before they take an offer.
struct World {
  std::atomic<int64_t> time{0};
  std::atomic<int> reads{0};
  std::atomic<bool> open{true};
  std::atomic<int> arrived{0};

  ThreadPoolHooks hooks() {
    return {[](void* user) {
              auto& world = *static_cast<World*>(user);
              const int64_t now = world.time.load();
              world.reads.fetch_add(1);  // last: who sees it may change the time
              return now;
            },
            [](void* user, int32_t) {
              auto& world = *static_cast<World*>(user);
              world.arrived.fetch_add(1);
              wait_until(world.open);
            },
            this};
  }
};

std::shared_ptr<ThreadPool> make_pool(int32_t threads, World& world) {
  auto pool = ThreadPool::create(threads, {}, world.hooks());
  EXPECT_TRUE(pool.ok()) << pool.status().message();
  return std::move(pool).value();
}

/// Runs a job in which the caller's share goes on until a worker has begun another one.
void expect_both_work(ThreadPool& pool) {
  std::atomic<bool> begun{false};
  std::thread::id threads[2];
  pool.share([&](int32_t index, int32_t shares) {
    ASSERT_EQ(shares, 2);
    threads[index] = std::this_thread::get_id();
    if (index == 1) begun.store(true);
    if (index == 0) wait_until(begun);
  });
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_NE(threads[1], threads[0]);
}

TEST(ThreadPoolShare, AWorkerThatDoesNotComeHoldsUpNobody) {
  for (const int32_t size : {2, 3, 8}) {
    World world;
    auto pool = make_pool(size, world);
    world.open.store(false);
    std::vector<int> calls(static_cast<size_t>(size));
    for (int job = 0; job < 100; ++job) {
      pool->share([&](int32_t index, int32_t shares) {
        EXPECT_EQ(shares, size);
        EXPECT_NE(index, shares);
        ++calls[static_cast<size_t>(index)];
      });
    }
    for (const int count : calls) EXPECT_EQ(count, 100);
    world.open.store(true);
  }
}

// The worker has seen the offer of the first job and takes it after a hundred others.
TEST(ThreadPoolShare, AnOfferOfAJobThatIsOverIsNotTaken) {
  World world;
  auto pool = make_pool(2, world);
  world.open.store(false);
  std::atomic<int> wrong{0};
  const auto caller = std::this_thread::get_id();
  for (int job = 0; job < 100; ++job) {
    pool->share([&](int32_t index, int32_t) {
      if (std::this_thread::get_id() != caller) wrong.fetch_add(1);
      while (index == 0 && world.arrived.load() == 0) std::this_thread::yield();
    });
  }
  world.open.store(true);
  expect_both_work(*pool);
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPoolShare, WhatAWorkerHasBegunIsWaitedFor) {
  World world;
  auto pool = make_pool(2, world);
  for (int job = 0; job < 100; ++job) {
    std::atomic<bool> begun{false};
    std::atomic<bool> free{false};
    int result = 0;  // plain: the caller reads it when share() has returned
    pool->share([&](int32_t index, int32_t) {
      if (index == 0) {
        wait_until(begun);
        free.store(true);
      } else {
        begun.store(true);
        wait_until(free);
        for (int i = 0; i < job; ++i) std::this_thread::yield();
        result = job + 1;
      }
    });
    ASSERT_EQ(result, job + 1);
  }
}

/// A job whose worker is away for `away` while the caller waits for it.
void run_late(ThreadPool& pool, World& world, int64_t away) {
  std::atomic<bool> begun{false};
  const int before = world.reads.load();
  pool.share([&](int32_t index, int32_t shares) {
    ASSERT_EQ(shares, 2);
    if (index == 0) return wait_until(begun);
    begun.store(true);
    // The caller reads the clock when the job begins and when its own share is done.
    while (world.reads.load() < before + 2) std::this_thread::yield();
    world.time.fetch_add(away);
  });
}

int32_t shares_now(ThreadPool& pool) {
  std::atomic<int32_t> number{0};
  pool.share([&](int32_t, int32_t shares) { number.store(shares); });
  return number.load();
}

TEST(ThreadPoolShare, AWorkerThatIsAwayRestsAndIsTriedAgain) {
  World world;
  auto pool = make_pool(2, world);
  ASSERT_EQ(shares_now(*pool), 2);
  for (const int64_t rest : {50, 200, 800, 1000, 1000}) {  // four times as long, up to the limit
    run_late(*pool, world, 5 * kMilli);
    EXPECT_EQ(shares_now(*pool), 1);
    world.time.fetch_add(rest * kMilli - 1);
    EXPECT_EQ(shares_now(*pool), 1) << rest;
    world.time.fetch_add(1);
    EXPECT_EQ(shares_now(*pool), 2) << rest;
    expect_both_work(*pool);
  }
  world.time.fetch_add(1000 * kMilli);
  run_late(*pool, world, 5 * kMilli);
  world.time.fetch_add(50 * kMilli);
  EXPECT_EQ(shares_now(*pool), 2) << "it had lasted, so this is a first time";
}

TEST(ThreadPoolShare, AWorkerThatIsAwayForAMomentGoesOn) {
  World world;
  auto pool = make_pool(2, world);
  for (int job = 0; job < 100; ++job) {
    run_late(*pool, world, kMilli);
    world.time.fetch_add(16 * kMilli);
  }
  EXPECT_EQ(shares_now(*pool), 2);
}

// The thread of a share is its own even where the pool rests.
TEST(ThreadPoolShare, RunUsesAllThreads) {
  World world;
  auto pool = make_pool(2, world);
  run_late(*pool, world, 5 * kMilli);
  ASSERT_EQ(shares_now(*pool), 1);
  std::thread::id threads[2];
  std::atomic<int> here{0};
  pool->run([&](int32_t index) {
    threads[index] = std::this_thread::get_id();
    here.fetch_add(1);
    while (here.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_NE(threads[1], threads[0]);
}

// Workers that stay away for a random while at every point where they may: each share of each job
// is done once, and what it has written is seen.
TEST(ThreadPoolShare, EveryShareIsDoneOnce) {
  for (const int32_t size : {2, 3, 8}) {
    std::atomic<uint32_t> state{1};
    ThreadPoolHooks hooks;
    hooks.user = &state;
    hooks.arrives = [](void* user, int32_t worker) {
      auto& turn = *static_cast<std::atomic<uint32_t>*>(user);
      std::minstd_rand random(turn.fetch_add(1) + static_cast<uint32_t>(worker));
      for (uint32_t i = random() % 4; i > 0; --i) std::this_thread::yield();
    };
    auto made = ThreadPool::create(size, {}, hooks);
    ASSERT_TRUE(made.ok());
    std::vector<int64_t> sums(static_cast<size_t>(size));  // plain: each share has its own
    int64_t wanted = 0;
    for (int64_t job = 0; job < 2000; ++job) {
      std::vector<int> calls(static_cast<size_t>(size));
      int32_t number = 0;
      (*made)->share([&](int32_t index, int32_t shares) {
        if (index == 0) number = shares;
        ++calls[static_cast<size_t>(index)];
        sums[static_cast<size_t>(index)] += job;
      });
      for (int32_t index = 0; index < size; ++index) {
        ASSERT_EQ(calls[static_cast<size_t>(index)], index < number ? 1 : 0);
      }
      wanted += number * job;
    }
    int64_t sum = 0;
    for (const int64_t one : sums) sum += one;
    EXPECT_EQ(sum, wanted);
  }
}

TEST(ThreadPoolShare, CallersTakeTurns) {
  World world;
  auto pool = make_pool(3, world);
  int64_t unguarded = 0;  // written by share 0 of each job; a data race if two jobs overlap
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 200; ++job) {
        pool->share([&](int32_t index, int32_t) {
          if (index == 0) ++unguarded;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(unguarded, 800);
}

}  // namespace
}  // namespace gen

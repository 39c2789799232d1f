// SPDX-License-Identifier: Apache-2.0
// Proves that each thread is told whether it is inside itself and no other, and that what is
// postponed ends once, in order, and not before the one who asked has left.
#include "base/callbacks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace gen {
namespace {

struct Ended : Postponed {
  Ended(int own_number, std::vector<int>* list) : number(own_number), ended(list) {
    end = [](Postponed* self) noexcept {
      auto* one = static_cast<Ended*>(self);
      one->ended->push_back(one->number);
    };
  }
  int number;
  std::vector<int>* ended;
};

TEST(Callbacks, EachThreadIsToldOfItself) {
  Callbacks callbacks;
  EXPECT_FALSE(callbacks.inside());
  {
    const Callbacks::Inside outer(callbacks);
    const Callbacks::Inside inner(callbacks);
    EXPECT_TRUE(callbacks.inside());
    std::thread([&] {
      EXPECT_FALSE(callbacks.inside());
      const Callbacks::Inside own(callbacks);
      EXPECT_TRUE(callbacks.inside());
    }).join();
    EXPECT_TRUE(callbacks.inside());
  }
  EXPECT_FALSE(callbacks.inside());
}

TEST(Callbacks, EndsComeAfterTheCallbackInOrder) {
  Callbacks callbacks;
  std::vector<int> log;
  Ended first(1, &log);
  Ended second(2, &log);
  {
    const Callbacks::Inside inside(callbacks);
    callbacks.postpone(&first);
    callbacks.postpone(&second);
    callbacks.settle();
    EXPECT_TRUE(log.empty());
    std::thread([&] { callbacks.settle(); }).join();
    EXPECT_TRUE(log.empty()) << "the thread that asked has not left";
  }
  callbacks.settle();
  EXPECT_EQ(log, (std::vector<int>{1, 2}));
  callbacks.settle();
  EXPECT_EQ(log.size(), 2U);
}

TEST(Callbacks, WhatOthersAskedForEndsMeanwhile) {
  Callbacks callbacks;
  std::vector<int> log;
  Ended mine(1, &log);
  Ended theirs(2, &log);
  const Callbacks::Inside inside(callbacks);
  callbacks.postpone(&mine);
  std::thread([&] {
    {
      const Callbacks::Inside there(callbacks);
      callbacks.postpone(&theirs);
    }
    callbacks.settle();
  }).join();
  EXPECT_EQ(log, std::vector<int>{2});
}

TEST(Callbacks, ManyThreadsLoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  Callbacks callbacks;
  std::atomic<int> ended{0};
  struct Counted : Postponed {
    std::atomic<int>* ended;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        auto* counted = new Counted;
        counted->ended = &ended;
        counted->end = [](Postponed* self) noexcept {
          const auto* own = static_cast<Counted*>(self);
          ++*own->ended;
          delete own;
        };
        {
          const Callbacks::Inside inside(callbacks);
          EXPECT_TRUE(callbacks.inside());
          callbacks.postpone(counted);
        }
        EXPECT_FALSE(callbacks.inside());
        callbacks.settle();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, kThreads * kRounds);
}

}  // namespace
}  // namespace gen

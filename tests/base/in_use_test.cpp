// SPDX-License-Identifier: Apache-2.0
// Proves that a second entry is told kBusy, from the same thread and from others, and that the flag
// orders what its holders wrote.
#include "base/in_use.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace gen {
namespace {

TEST(InUse, SecondEntryIsBusyUntilTheFirstLeaves) {
  InUseFlag flag;
  {
    InUseGuard first(&flag);
    EXPECT_TRUE(first.entered("session").ok());
    EXPECT_TRUE(flag.held());
    {
      InUseGuard second(&flag);
      EXPECT_EQ(second.entered("session").code(), Code::kBusy);
      EXPECT_STREQ(second.entered("session").message(), "session is in use by another call");
    }
    InUseGuard third(&flag);
    EXPECT_FALSE(third.entered("session").ok()) << "a refused guard must not free the flag";
  }
  EXPECT_FALSE(flag.held());
  InUseGuard again(&flag);
  EXPECT_TRUE(again.entered("session").ok());
}

TEST(InUse, WhoEndsAnObjectInUseLeavesThatToItsUser) {
  InUseFlag flag;
  EXPECT_TRUE(flag.retire()) << "nobody uses it";
  EXPECT_TRUE(flag.try_enter());
  EXPECT_FALSE(flag.leave());
  EXPECT_TRUE(flag.try_enter());
  EXPECT_FALSE(flag.retire());
  EXPECT_TRUE(flag.held());
  EXPECT_FALSE(flag.try_enter());
  EXPECT_TRUE(flag.leave());
}

TEST(InUse, OneOfManyThreadsGetsIn) {
  InUseFlag flag;
  int64_t plain = 0;
  std::atomic<int64_t> entries{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) {
        InUseGuard guard(&flag);
        if (!guard.entered("object").ok()) continue;
        ++plain;
        entries.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, entries.load());
  EXPECT_GT(plain, 0);
}

}  // namespace
}  // namespace gen

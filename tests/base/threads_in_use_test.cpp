// SPDX-License-Identifier: Apache-2.0
// Proves how many threads a pool uses, in simulated time: all of them where nobody waits for long,
// one less while waiting costs more than a sixteenth of the time, all of them again when it no
// longer does.
#include "base/threads_in_use.h"

#include <gtest/gtest.h>

namespace gen {
namespace {

constexpr int64_t kMicro = 1000;
constexpr int64_t kMilli = 1000 * kMicro;

TEST(ThreadsInUse, AreAllWhereNobodyWaits) {
  for (const int32_t most : {1, 2, 8, 1024}) {
    ThreadsInUse threads(most);
    for (int64_t now = 0; now < 100 * kMilli; now += kMilli) EXPECT_EQ(threads.begin(now), most);
  }
}

// A thread that takes as long for one share as the caller for two is no loss: the caller would have
// had to do both.
TEST(ThreadsInUse, WaitingAsLongAsTheOwnShareTookIsNoLoss) {
  ThreadsInUse threads(2);
  int64_t now = 0;
  for (int job = 0; job < 1000; ++job) {
    ASSERT_EQ(threads.begin(now), 2) << job;
    now += 20 * kMilli;
    threads.note(10 * kMilli, 10 * kMilli, now);
  }
}

TEST(ThreadsInUse, OneLongWaitIsEnough) {
  ThreadsInUse threads(2);
  ASSERT_EQ(threads.begin(0), 2);
  threads.note(10 * kMicro, 3 * kMilli + 10 * kMicro, 3 * kMilli);
  EXPECT_EQ(threads.begin(3 * kMilli), 1);
  EXPECT_EQ(threads.begin(53 * kMilli - 1), 1);
  EXPECT_EQ(threads.begin(53 * kMilli), 2) << "50 ms later";
}

// Each millisecond costs `micros`; how many milliseconds until a thread rests, at most `most`.
int64_t milliseconds_until_rest(int64_t micros, int64_t most) {
  ThreadsInUse threads(2);
  for (int64_t i = 1; i <= most; ++i) {
    if (threads.begin(i * kMilli) == 1) return i;
    threads.note(kMicro, (micros + 1) * kMicro, i * kMilli + 100 * kMicro);
  }
  return most;
}

TEST(ThreadsInUse, ASixteenthOfTheTimeIsNotTooMuch) {
  EXPECT_EQ(milliseconds_until_rest(62, 10000), 10000);
  // 70 of 1000 are 7.5 more than are paid off: 2000 / 7.5 = 267.
  EXPECT_NEAR(static_cast<double>(milliseconds_until_rest(70, 10000)), 267, 12);
}

/// A machine on which every job with `most` threads costs a time slice, and jobs take 10
/// microseconds each; until `end`.
struct Busy {
  int64_t now = 0;
  int64_t cost = 0;
  int trials = 0;
  void run(ThreadsInUse& threads, int32_t most, int64_t end) {
    while (now < end) {
      now += 10 * kMicro;
      if (threads.begin(now) < most) continue;
      ++trials;
      now += 4 * kMilli;
      cost += 4 * kMilli;
      threads.note(10 * kMicro, 4 * kMilli, now);
    }
  }
};

TEST(ThreadsInUse, ABusyMachineCostsLittle) {
  ThreadsInUse threads(2);
  Busy busy;
  busy.run(threads, 2, 70 * kMilli);
  EXPECT_EQ(busy.trials, 2) << "50 ms of rest after the first";
  busy.run(threads, 2, 2000 * kMilli);
  EXPECT_EQ(busy.trials, 4) << "then 200 ms and 800";
  busy.run(threads, 2, 60'000 * kMilli);
  EXPECT_LE(busy.cost, busy.now / 200);
  EXPECT_GE(busy.trials, 50) << "but it is tried, about each second";
}

TEST(ThreadsInUse, ComeBackWhenItIsQuiet) {
  ThreadsInUse threads(8);
  int64_t now = 0;
  while (threads.begin(now) > 3) {
    now += 4 * kMilli;
    threads.note(10 * kMicro, 4 * kMilli, now);
  }
  EXPECT_LE(now, 25 * kMilli);
  const int64_t quiet = now;
  while (threads.begin(now) < 8) now += 10 * kMicro;
  EXPECT_LE(now - quiet, 300 * kMilli);
  // And what was long ago makes the next rest no longer.
  now += 1000 * kMilli;
  ASSERT_EQ(threads.begin(now), 8);
  threads.note(0, 3 * kMilli, now);
  EXPECT_EQ(threads.begin(now), 7);
  EXPECT_EQ(threads.begin(now + 50 * kMilli), 8);
}

TEST(ThreadsInUse, AStallOfYearsIsOneWait) {
  ThreadsInUse threads(2);
  constexpr int64_t kYears = INT64_MAX / 4;
  ASSERT_EQ(threads.begin(kYears), 2);
  threads.note(0, kYears, 2 * kYears);
  EXPECT_EQ(threads.begin(2 * kYears), 1);
  EXPECT_EQ(threads.begin(2 * kYears + 50 * kMilli), 2);
}

}  // namespace
}  // namespace gen

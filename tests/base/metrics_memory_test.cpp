// SPDX-License-Identifier: Apache-2.0
// The collector of metrics: sums, buckets against their definition, exactness under threads, and
// what it does without memory. This program counts through its own operator new.
#include "base/metrics_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/counting_new.h"

namespace gen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Metrics, NobodyListens) {
  Metrics& none = no_metrics();
  EXPECT_FALSE(none.active());
  none.add("a", 1);
  none.set("a", 1);
  none.observe("a", 1);
  EXPECT_TRUE(MetricsMemory().active());
}

TEST(Metrics, BoundsAreAsDefined) {
  std::vector<double> seconds;
  for (const char* const exponent : {"e-4", "e-3", "e-2", "e-1", "e0", "e1"}) {
    for (const char* const digit : {"1", "2", "5"}) {
      seconds.push_back(std::stod(std::string(digit) + exponent));
    }
  }
  seconds.push_back(100);
  const auto found = histogram_bounds("a_seconds");
  EXPECT_EQ(std::vector<double>(found.begin(), found.end()), seconds);
  std::vector<double> counts;
  for (double bound = 1; bound <= 4096; bound *= 2) counts.push_back(bound);
  for (const char* const name : {"a", "seconds", "_seconds_", "a_seconds.b", ""}) {
    const auto other = histogram_bounds(name);
    EXPECT_EQ(std::vector<double>(other.begin(), other.end()), counts) << name;
  }
}

TEST(Metrics, WhatIsToldIsThere) {
  MetricsMemory memory;
  EXPECT_TRUE(memory.snapshot().counters.empty());
  memory.add("a", 2);
  memory.add("a", 0.5);
  memory.set("a", 7);  // the same name of another kind is another metric
  memory.set("a", 3);
  memory.add("b", 0);
  const MetricsSnapshot snapshot = memory.snapshot();
  EXPECT_EQ(snapshot.counters.at("a"), 2.5);
  EXPECT_EQ(snapshot.counters.at("b"), 0);
  EXPECT_EQ(snapshot.gauges.at("a"), 3);
  EXPECT_EQ(snapshot.counters.size() + snapshot.gauges.size(), 3U);
  memory.add("a", 1);
  EXPECT_EQ(snapshot.counters.at("a"), 2.5);  // a copy
}

// The bucket of a value, by counting the bounds below it.
TEST(Metrics, BucketsHoldWhatIsNotAbove) {
  for (const char* const name : {"t_seconds", "rows"}) {
    const auto bounds = histogram_bounds(name);
    std::vector<double> values{-1, 0, 1e-9, 1e9, kInfinity, -kInfinity};
    for (const double bound : bounds) {
      values.insert(values.end(), {bound, std::nextafter(bound, 0), std::nextafter(bound, 1e9)});
    }
    for (const double value : values) {
      MetricsMemory memory;
      memory.observe(name, value);
      memory.observe(name, 0);
      const HistogramValues found = memory.snapshot().histograms.at(name);
      std::vector<uint64_t> expected(bounds.size() + 1);
      size_t below = 0;
      for (const double bound : bounds) below += bound < value ? 1U : 0U;
      ++expected[below];
      ++expected[0];
      EXPECT_EQ(found.counts, expected) << value;
      EXPECT_EQ(found.count, 2U);
      EXPECT_EQ(found.sum, value);
    }
  }
}

TEST(Metrics, NothingIsNotANumber) {
  MetricsMemory memory;
  memory.add("a", std::nan(""));
  memory.set("a", std::nan(""));
  memory.observe("a", std::nan(""));
  const MetricsSnapshot snapshot = memory.snapshot();
  EXPECT_TRUE(snapshot.counters.empty() && snapshot.gauges.empty() && snapshot.histograms.empty());
}

TEST(Metrics, SixteenThreadsLoseNothing) {
  constexpr int kThreads = 16;
  constexpr int kRounds = 2000;
  MetricsMemory memory;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&memory, i] {
      const std::string own = "of" + std::to_string(i);
      for (int round = 0; round < kRounds; ++round) {
        memory.add("all", 1);
        memory.add(own.c_str(), 2);
        memory.set(own.c_str(), round);
        memory.observe("rows", round % 5);
        if (round % 100 == 0) (void)memory.snapshot();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MetricsSnapshot snapshot = memory.snapshot();
  EXPECT_EQ(snapshot.counters.at("all"), kThreads * kRounds);
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(snapshot.counters.at("of" + std::to_string(i)), 2 * kRounds);
    EXPECT_EQ(snapshot.gauges.at("of" + std::to_string(i)), kRounds - 1);
  }
  const HistogramValues& rows = snapshot.histograms.at("rows");
  EXPECT_EQ(rows.count, static_cast<uint64_t>(kThreads * kRounds));
  EXPECT_EQ(rows.sum, kThreads * kRounds * 2);
  constexpr uint64_t kEach = kThreads * kRounds / 5;
  EXPECT_EQ(rows.counts[0], 2 * kEach);  // 0 and 1
  EXPECT_EQ(rows.counts[1], kEach);      // 2
  EXPECT_EQ(rows.counts[2], 2 * kEach);  // 3 and 4
}

TEST(Metrics, WithoutMemoryANameIsLeftOut) {
  for (size_t nth = 0; nth < 12; ++nth) {
    MetricsMemory memory;
    memory.add("there", 1);
    test::news = 0;
    test::fail_new_at = nth;
    memory.add("a name that is longer than a short string", 1);
    memory.set("a name that is longer than a short string", 1);
    memory.observe("a name that is longer than a short string", 1);
    memory.add("there", 1);
    test::fail_new_at = ~size_t{0};
    const MetricsSnapshot snapshot = memory.snapshot();
    EXPECT_EQ(snapshot.counters.at("there"), 2);
    EXPECT_GE(snapshot.counters.size() + snapshot.gauges.size() + snapshot.histograms.size(), 3U);
    for (const auto& [name, values] : snapshot.histograms) {
      EXPECT_EQ(values.count, 1U);
      EXPECT_EQ(values.counts.size(), 14U);
    }
  }
}

// Once a name is known nothing is allocated for it.
TEST(Metrics, TellingAllocatesNothing) {
  MetricsMemory memory;
  const auto tell = [&memory] {
    memory.add("a name that is longer than a short string", 1);
    memory.set("a name that is longer than a short string", 1);
    memory.observe("a name that is longer than a short string", 1);
  };
  tell();
  test::news = 0;
  for (int i = 0; i < 100; ++i) tell();
  EXPECT_EQ(test::news, 0U);
}

}  // namespace
}  // namespace gen

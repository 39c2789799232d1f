// SPDX-License-Identifier: Apache-2.0
// Proves that the log is silent by default, filters before it formats, and can be rewired while
// other threads log.
#include "base/log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace gen {
namespace {

struct Lines {
  std::vector<std::pair<int32_t, std::string>> got;
  static void take(void* user, int32_t level, const char* message) {
    static_cast<Lines*>(user)->got.emplace_back(level, message);
  }
};

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override {
    set_log_sink(nullptr, nullptr);
    set_log_level(LogLevel::kOff);
  }
};

TEST_F(LogTest, SilentWithoutASink) {
  set_log_level(LogLevel::kDebug);
  EXPECT_FALSE(log_enabled(LogLevel::kError));
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  log(LogLevel::kError, "nobody hears %d", 1);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(LogTest, SilentWithoutALevel) {
  Lines lines;
  set_log_sink(Lines::take, &lines);
  log(LogLevel::kError, "nobody hears");
  EXPECT_TRUE(lines.got.empty());
}

TEST_F(LogTest, DeliversUpToTheLevel) {
  Lines lines;
  set_log_sink(Lines::take, &lines);
  set_log_level(LogLevel::kWarning);
  log(LogLevel::kError, "e%d", 1);
  log(LogLevel::kWarning, "w%s", "2");
  log(LogLevel::kInfo, "i");
  ASSERT_EQ(lines.got.size(), 2U);
  EXPECT_EQ(lines.got[0], std::make_pair(1, std::string("e1")));
  EXPECT_EQ(lines.got[1], std::make_pair(2, std::string("w2")));
}

TEST_F(LogTest, LevelsFilter) {
  Lines lines;
  set_log_sink(Lines::take, &lines);
  set_log_level(LogLevel::kOff);
  log(LogLevel::kError, "no");
  set_log_level(LogLevel::kDebug);
  log(LogLevel::kDebug, "yes");
  log(LogLevel::kOff, "off is not a level to log at");
  ASSERT_EQ(lines.got.size(), 1U);
  EXPECT_EQ(lines.got[0].second, "yes");
}

TEST_F(LogTest, LongLinesAreCut) {
  Lines lines;
  set_log_sink(Lines::take, &lines);
  set_log_level(LogLevel::kError);
  log(LogLevel::kError, "%s", std::string(5000, 'x').c_str());
  ASSERT_EQ(lines.got.size(), 1U);
  EXPECT_EQ(lines.got[0].second, std::string(1023, 'x'));
}

TEST_F(LogTest, ReplacedSinkIsNeverRunningAfterwards) {
  set_log_level(LogLevel::kError);
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&stop] {
      while (!stop.load()) log(LogLevel::kError, "line");
    });
  }
  for (int round = 0; round < 200; ++round) {
    int64_t count = 0;  // on this stack frame: a late call would be a use after scope and a race
    set_log_sink([](void* user, int32_t, const char*) { ++*static_cast<int64_t*>(user); }, &count);
    std::this_thread::yield();
    set_log_sink(nullptr, nullptr);
    const int64_t after = count;
    std::this_thread::yield();
    ASSERT_EQ(count, after);
  }
  stop.store(true);
  for (std::thread& writer : writers) writer.join();
}

// A sink that does what it must not: it logs, replaces itself and throws.
struct Unruly {
  int calls = 0;
  Lines* next = nullptr;
  static void take(void* user, int32_t /*level*/, const char* message) {
    auto& self = *static_cast<Unruly*>(user);
    ++self.calls;
    EXPECT_TRUE(in_log_sink());
    log(LogLevel::kError, "%s again", message);
    set_log_level(LogLevel::kWarning);
    set_log_sink(Lines::take, self.next);
    log(LogLevel::kError, "still dropped");
    throw std::runtime_error("unruly");
  }
};

TEST_F(LogTest, WhatASinkDoesToTheLogHoldsAfterIt) {
  Lines lines;
  Unruly unruly;
  unruly.next = &lines;
  set_log_level(LogLevel::kDebug);
  set_log_sink(Unruly::take, &unruly);
  log(LogLevel::kInfo, "first");
  EXPECT_FALSE(in_log_sink());
  EXPECT_EQ(unruly.calls, 1);
  EXPECT_TRUE(lines.got.empty());
  log(LogLevel::kInfo, "below the new level");
  log(LogLevel::kWarning, "second");
  EXPECT_EQ(unruly.calls, 1);
  ASSERT_EQ(lines.got.size(), 1U);
  EXPECT_EQ(lines.got[0].second, "second");
}

}  // namespace
}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// The log's state and delivery. `threshold` is what log() looks at without the lock: the level if
// there is a sink, else off. See log.h.
#include "base/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace gen {
namespace {

struct State {
  std::mutex mutex;
  LogSink sink = nullptr;
  void* user = nullptr;
  LogLevel level = LogLevel::kOff;
  std::atomic<LogLevel> threshold{LogLevel::kOff};

  void update() noexcept {
    threshold.store(sink != nullptr ? level : LogLevel::kOff, std::memory_order_relaxed);
  }
};

constinit State state;  // no code runs at load or at exit

}  // namespace

void set_log_sink(LogSink sink, void* user) noexcept {
  const std::lock_guard lock(state.mutex);
  state.sink = sink;
  state.user = user;
  state.update();
}

void set_log_level(LogLevel level) noexcept {
  const std::lock_guard lock(state.mutex);
  state.level = level;
  state.update();
}

bool log_enabled(LogLevel level) noexcept {
  return level != LogLevel::kOff && level <= state.threshold.load(std::memory_order_relaxed);
}

void log(LogLevel level, const char* format, ...) noexcept {
  if (!log_enabled(level)) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  // The lock is held over the call, so a sink that was replaced is never running afterwards.
  const std::lock_guard lock(state.mutex);
  if (state.sink != nullptr && level <= state.level) {
    state.sink(state.user, static_cast<int32_t>(level), text);
  }
}

}  // namespace gen

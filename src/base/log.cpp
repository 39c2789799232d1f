// SPDX-License-Identifier: Apache-2.0
// The log's state and delivery. `threshold` is what log() looks at without the lock: the level if
// there is a sink, else off. See log.h.
#include "base/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "base/c_locale.h"
#include "base/callbacks.h"

namespace gen {
namespace {

struct Settings {
  LogSink sink = nullptr;
  void* user = nullptr;
  LogLevel level = LogLevel::kOff;
};

struct LogState {
  std::mutex mutex;
  Settings now;
  Settings next;  // what the sink that is being called has set
  Callbacks callbacks;
  std::atomic<LogLevel> threshold{LogLevel::kOff};

  void update() noexcept {
    threshold.store(now.sink != nullptr ? now.level : LogLevel::kOff, std::memory_order_relaxed);
  }
};

constinit LogState state;  // no code runs at load or at exit

// Changes the settings now, or after the sink that this thread is in.
template <typename F>
void change(F&& set) noexcept {
  if (in_log_sink()) {
    set(state.next);
    return;
  }
  const std::lock_guard lock(state.mutex);
  set(state.now);
  state.update();
}

}  // namespace

void set_log_sink(LogSink sink, void* user) noexcept {
  change([=](Settings& settings) {
    settings.sink = sink;
    settings.user = user;
  });
}

void set_log_level(LogLevel level) noexcept {
  change([=](Settings& settings) { settings.level = level; });
}

bool in_log_sink() noexcept { return state.callbacks.inside(); }

bool log_enabled(LogLevel level) noexcept {
  return level != LogLevel::kOff && level <= state.threshold.load(std::memory_order_relaxed);
}

void log(LogLevel level, const char* format, ...) noexcept {
  if (!log_enabled(level) || in_log_sink()) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  {
    const CLocale numbers;
    std::vsnprintf(text, sizeof text, format, arguments);
  }
  va_end(arguments);
  // The lock is held over the call, so a sink that was replaced is never running afterwards.
  const std::lock_guard lock(state.mutex);
  if (state.now.sink == nullptr || level > state.now.level) return;
  state.next = state.now;
  try {
    const Callbacks::Inside inside(state.callbacks);
    state.now.sink(state.now.user, static_cast<int32_t>(level), text);
  } catch (...) {  // nobody to tell
  }
  state.now = state.next;
  state.update();
}

}  // namespace gen

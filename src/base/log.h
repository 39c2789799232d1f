// SPDX-License-Identifier: Apache-2.0
// The log: one sink for the process, silent until the host sets both a sink and a level. This is
// the library's only mutable global.
#pragma once

#include <cstdint>

namespace gen {

/// Ascending detail; numbers are those of the public header.
enum class LogLevel : int32_t { kOff = 0, kError = 1, kWarning = 2, kInfo = 3, kDebug = 4 };

/// Receives one line without its line break. Calls come from any thread, one at a time. Lines
/// logged within the sink are dropped, settings changed within it apply after it, and exceptions
/// are swallowed.
using LogSink = void (*)(void* user, int32_t level, const char* message);

/// Replaces the sink; null silences. Once this returns, the former sink is not called any more;
/// when called within a sink, once that sink returns.
void set_log_sink(LogSink sink, void* user) noexcept;

/// Lines above `level` are dropped; kOff at first.
void set_log_level(LogLevel level) noexcept;

/// True if a line of this level would reach a sink.
bool log_enabled(LogLevel level) noexcept;

/// Whether this thread is in the sink just now. Costs one relaxed load.
bool in_log_sink() noexcept;

/// Formats and delivers one line, if enabled. Costs one relaxed load if not.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...) noexcept;

}  // namespace gen

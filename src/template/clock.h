// SPDX-License-Identifier: Apache-2.0
// The time for strftime_now, and Python's strftime in the C locale.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "base/status.h"

namespace gen::templates {

/// A date and time of day. Threads: a value.
struct LocalTime {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0, microsecond = 0;

  static LocalTime of(const std::tm& time) noexcept;
  /// The machine's clock in its time zone.
  static LocalTime system();
  /// "2024-07-26", "2024-07-26T13:05:00", with or without fractions and a trailing time zone, which
  /// is ignored. kInvalidArgument for anything else.
  static Result<LocalTime> from_iso(std::string_view text);
  [[nodiscard]] int weekday() const noexcept;      // 0: Sunday
  [[nodiscard]] int day_of_year() const noexcept;  // from 1
  friend bool operator==(const LocalTime&, const LocalTime&) = default;
};

std::string format_time(std::string_view format, const LocalTime& time);

}  // namespace gen::templates

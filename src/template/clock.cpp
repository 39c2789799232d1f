// SPDX-License-Identifier: Apache-2.0
// Dates, see clock.h.
#include "template/clock.h"

#include <charconv>
#include <cstdio>

namespace gen::templates {
namespace {

constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};

bool leap(int year) noexcept { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in(int year, int month) noexcept {
  constexpr int kDaysIn[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && leap(year) ? 29 : kDaysIn[month - 1];
}

void add_number(std::string* out, int number, int width, char fill = '0') {
  const std::string digits = std::to_string(number);
  if (digits.size() < static_cast<size_t>(width)) {
    out->append(static_cast<size_t>(width) - digits.size(), fill);
  }
  *out += digits;
}

}  // namespace

LocalTime LocalTime::of(const std::tm& time) noexcept {
  return {time.tm_year + 1900,
          time.tm_mon + 1,
          time.tm_mday,
          time.tm_hour,
          time.tm_min,
          time.tm_sec,
          0};
}

LocalTime LocalTime::system() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return of(local);
}

Result<LocalTime> LocalTime::from_iso(std::string_view text) {
  const auto fail = [&] {
    return error(Code::kInvalidArgument, "'%.40s' is not a time such as 2024-07-26T13:05:00",
                 std::string(text.substr(0, 40)).c_str());
  };
  size_t at = 0;
  const auto number = [&](size_t digits, int low, int high, int* out) {
    if (at + digits > text.size()) return false;
    const char* const begin = text.data() + at;
    for (size_t i = 0; i < digits; ++i) {
      if (begin[i] < '0' || begin[i] > '9') return false;
    }
    std::from_chars(begin, begin + digits, *out);
    at += digits;
    return *out >= low && *out <= high;
  };
  const auto sign = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != std::string_view::npos && ++at != 0;
  };
  LocalTime time;
  if (!number(4, 1, 9999, &time.year) || !sign("-") || !number(2, 1, 12, &time.month) ||
      !sign("-") || !number(2, 1, days_in(time.year, time.month), &time.day)) {
    return fail();
  }
  if (at == text.size()) return time;
  if (!sign("T ") || !number(2, 0, 23, &time.hour) || !sign(":") ||
      !number(2, 0, 59, &time.minute)) {
    return fail();
  }
  if (sign(":") && !number(2, 0, 59, &time.second)) return fail();
  if (sign(".")) {
    int scale = 100000;
    const size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) {
      time.microsecond += (text[at] - '0') * scale;
    }
    if (at == begin) return fail();
  }
  if (at == text.size() || text.substr(at) == "Z") return time;
  int hours = 0;
  int minutes = 0;
  if (!sign("+-") || !number(2, 0, 23, &hours)) return fail();
  if (at < text.size() && (sign(":"), !number(2, 0, 59, &minutes))) return fail();
  if (at != text.size()) return fail();
  return time;
}

int LocalTime::day_of_year() const noexcept {
  int days = day;
  for (int m = 1; m < month; ++m) days += days_in(year, m);
  return days;
}

int LocalTime::weekday() const noexcept {
  const int before = year - 1;
  return (before * 365 + before / 4 - before / 100 + before / 400 + day_of_year()) % 7;
}

std::string format_time(std::string_view format, const LocalTime& t) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    char c = format[++i];
    bool bare = false;  // %-d: no leading zeros
    if (c == '-' && i + 1 < format.size()) {
      bare = true;
      c = format[++i];
    }
    const auto number = [&](int value, int width, char fill = '0') {
      add_number(&out, value, bare ? 1 : width, fill);
    };
    const int twelve = t.hour % 12 == 0 ? 12 : t.hour % 12;
    const int monday = (t.weekday() + 6) % 7;
    switch (c) {
      case 'Y':
        number(t.year, 1);
        break;
      case 'y':
        number(t.year % 100, 2);
        break;
      case 'C':
        number(t.year / 100, 2);
        break;
      case 'm':
        number(t.month, 2);
        break;
      case 'd':
        number(t.day, 2);
        break;
      case 'e':
        number(t.day, 2, ' ');
        break;
      case 'H':
        number(t.hour, 2);
        break;
      case 'I':
        number(twelve, 2);
        break;
      case 'k':
        number(t.hour, 2, ' ');
        break;
      case 'l':
        number(twelve, 2, ' ');
        break;
      case 'M':
        number(t.minute, 2);
        break;
      case 'S':
        number(t.second, 2);
        break;
      case 'f':
        add_number(&out, t.microsecond, 6);
        break;
      case 'j':
        number(t.day_of_year(), 3);
        break;
      case 'p':
        out += t.hour < 12 ? "AM" : "PM";
        break;
      case 'P':
        out += t.hour < 12 ? "am" : "pm";
        break;
      case 'A':
        out += kDays[t.weekday()];
        break;
      case 'a':
        out += std::string_view(kDays[t.weekday()]).substr(0, 3);
        break;
      case 'B':
        out += kMonths[t.month - 1];
        break;
      case 'b':
      case 'h':
        out += std::string_view(kMonths[t.month - 1]).substr(0, 3);
        break;
      case 'w':
        number(t.weekday(), 1);
        break;
      case 'u':
        number(monday + 1, 1);
        break;
      case 'U':
        number((t.day_of_year() + 6 - t.weekday()) / 7, 2);
        break;
      case 'W':
        number((t.day_of_year() + 6 - monday) / 7, 2);
        break;
      case 'D':
        out += format_time("%m/%d/%y", t);
        break;
      case 'x':
        out += format_time("%m/%d/%y", t);
        break;
      case 'F':
        out += format_time("%Y-%m-%d", t);
        break;
      case 'T':
      case 'X':
        out += format_time("%H:%M:%S", t);
        break;
      case 'R':
        out += format_time("%H:%M", t);
        break;
      case 'r':
        out += format_time("%I:%M:%S %p", t);
        break;
      case 'c':
        out += format_time("%a %b %e %H:%M:%S %Y", t);
        break;
      case 'z':
      case 'Z':
        break;  // empty, as for Python's times without a zone
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case '%':
        out += '%';
        break;
      default:
        out += '%';
        if (bare) out += '-';
        out += c;
    }
  }
  return out;
}

}  // namespace gen::templates

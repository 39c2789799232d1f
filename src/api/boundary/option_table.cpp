// SPDX-License-Identifier: Apache-2.0
// Parses option values, independent of the process locale, and describes options. See
// option_table.h.
#include "api/boundary/option_table.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/json_text.h"

namespace gen::api {
namespace {

template <typename T>
Result<T> parse_number(const char* text, const char* kind) {
  T value{};
  const char* end = text + std::strlen(text);
  const auto [stopped, failure] = std::from_chars(text, end, value);
  if (failure != std::errc() || stopped != end) {
    return error(Code::kInvalidArgument, "\"%.60s\" is not %s", text, kind);
  }
  return value;
}

}  // namespace

Result<int64_t> parse_int(const char* text) {
  return parse_number<int64_t>(text, "a whole number");
}

Result<uint64_t> parse_uint(const char* text) {
  return parse_number<uint64_t>(text, "a whole number of at least 0");
}

Result<double> parse_double(const char* text) { return parse_number<double>(text, "a number"); }

Result<bool> parse_bool(const char* text) {
  const std::string_view value(text);
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return error(Code::kInvalidArgument, "\"%.60s\" is not 0, 1, false or true", text);
}

Status named(const char* key, Status status) {
  if (status.ok() || std::string_view(status.message()).find(key) != std::string_view::npos) {
    return status;
  }
  return error(status.code(), "%s: %s", key, status.message());
}

Status unknown_option(const char* key, std::span<const std::string_view> known) {
  std::string names;
  for (const std::string_view name : known) names.append(names.empty() ? "" : ", ").append(name);
  return error(Code::kInvalidArgument, "unknown option \"%.200s\", known are %s", key,
               names.c_str());
}

std::string number_text(double value) {
  char text[40];
  const auto [end, failure] = std::to_chars(text, text + sizeof text, value);
  return failure == std::errc() ? std::string(text, end) : std::string("0");
}

std::string range_text(double least, double most) {
  if (!std::isfinite(least)) {
    return std::isfinite(most) ? "up to " + number_text(most) : "any number";
  }
  return number_text(least) + (std::isfinite(most) ? " to " + number_text(most) : " and up");
}

Status check_range(const char* what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  if (least == kAnyLeast) {  // lower values mean the default
    return error(Code::kInvalidArgument, "%s %lld is above %lld", what,
                 static_cast<long long>(value), static_cast<long long>(most));
  }
  return error(Code::kInvalidArgument, "%s %lld is outside [%lld, %lld]", what,
               static_cast<long long>(value), static_cast<long long>(least),
               static_cast<long long>(most));
}

std::string describe_rows(std::span<const OptionText> rows) {
  std::string out = "[";
  for (const OptionText& row : rows) {
    const std::pair<const char*, const std::string&> parts[] = {
        {"key", row.key}, {"type", row.type}, {"range", row.range}, {"default", row.initial},
        {"off", row.off}, {"help", row.help}, {"value", row.value},
    };
    out += out.size() > 1 ? ",{" : "{";
    const char* comma = "";
    for (const auto& [name, text] : parts) {
      if (text.empty() && &text == &row.off) continue;
      out.append(comma).append("\"").append(name).append("\":").append(json_quote(text));
      comma = ",";
    }
    out += '}';
  }
  return out + "]";
}

}  // namespace gen::api

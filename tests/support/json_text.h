// SPDX-License-Identifier: Apache-2.0
// Values as the text that Python's json.dumps(value, ensure_ascii=False) makes of them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "grammar/schema/json_value.h"

namespace gen::grammar::test {

inline void write_string(std::string_view text, std::string* out) {
  *out += '"';
  for (const char c : text) {
    static constexpr std::string_view kFrom = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kTo = "\"\\bfnrt";
    if (const size_t place = kFrom.find(c); place != std::string_view::npos) {
      *out += '\\';
      *out += kTo[place];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      *out += escape;
    } else {
      *out += c;
    }
  }
  *out += '"';
}

// Whole numbers keep their digits; others become the shortest text of the nearest double, with an
// exponent below 1e-4 and from 1e16 on.
inline std::string number_text(const std::string& text) {
  if (text.find_first_of(".eE") == std::string::npos) return text == "-0" ? "0" : text;
  const double value = std::strtod(text.c_str(), nullptr);
  if (!std::isfinite(value)) return value < 0 ? "-Infinity" : "Infinity";
  char buffer[64];
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto made = std::to_chars(buffer, buffer + sizeof buffer, value,
                                  plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string digits(buffer, made.ptr);
  if (plain && digits.find('.') == std::string::npos) digits += ".0";
  return digits;
}

inline void write_json(const JsonValue& value, std::string* out) {
  switch (value.type) {
    case JsonType::kNull:
      *out += "null";
      break;
    case JsonType::kFalse:
      *out += "false";
      break;
    case JsonType::kTrue:
      *out += "true";
      break;
    case JsonType::kNumber:
      *out += number_text(value.text);
      break;
    case JsonType::kString:
      write_string(value.text, out);
      break;
    case JsonType::kArray:
      *out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) *out += ", ";
        write_json(value.items[i], out);
      }
      *out += ']';
      break;
    case JsonType::kObject:
      *out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) *out += ", ";
        write_string(value.members[i].first, out);
        *out += ": ";
        write_json(value.members[i].second, out);
      }
      *out += '}';
      break;
  }
}

inline std::string json_text(const JsonValue& value) {
  std::string text;
  write_json(value, &text);
  return text;
}

}  // namespace gen::grammar::test

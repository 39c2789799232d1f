// SPDX-License-Identifier: Apache-2.0
// See text_format.h.
#include "text_format.h"

#include <cstdarg>
#include <cstdio>

namespace cli {

std::string format(const char* form, ...) {
  char text[1001];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

std::string printable(const std::string& text) {
  std::string out;
  const auto escape = [&out](unsigned byte) { out += format("\\x%02x", byte); };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      escape(byte);
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {  // U+0080 to U+009F
      escape(next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string percent(double share) { return share > 0 ? format("%.1f %%", share * 100) : "-"; }

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return format(unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
}

std::string count_text(uint64_t count) {
  constexpr const char* kUnits[] = {"", " K", " M", " B", " T"};
  auto value = static_cast<double>(count);
  size_t unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return format(unit == 0 ? "%.0f%s" : value < 9.95 ? "%.2f%s" : "%.1f%s", value, kUnits[unit]);
}

std::string number(double value) { return value > 0 ? format("%.1f", value) : "-"; }

}  // namespace cli

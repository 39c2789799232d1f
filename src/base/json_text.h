// SPDX-License-Identifier: Apache-2.0
// Just enough JSON writing for descriptions: quoting a string.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace gen {

/// `text` as a JSON string with its quotes; bytes above 127 pass as they are.
inline std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// Just enough JSON writing for descriptions: quoting a string.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace gen {

/// `text` as a JSON string with its quotes. Characters above 127 are kept; each byte that is not
/// valid UTF-8, which JSON cannot hold, becomes U+FFFD.
inline std::string json_quote(std::string_view text) {
  std::string out = "\"";
  size_t valid = utf8_valid_prefix(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (i == valid) {
      utf8_append(0xFFFD, &out);
      valid = i + 1 + utf8_valid_prefix(text.substr(i + 1));
    } else if (c == '"' || c == '\\') {
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

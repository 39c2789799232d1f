// SPDX-License-Identifier: Apache-2.0
// See text_writer.h.
#include "calls/arguments/text_writer.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"

namespace gen::calls {
namespace {

void write_ascii(char c, std::string* json) {
  if (c == '"' || c == '\\') {
    *json += {'\\', c};
  } else if (c == '\n') {
    *json += "\\n";
  } else if (static_cast<unsigned char>(c) < 0x20) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
    *json += escape;
  } else {
    *json += c;
  }
}

}  // namespace

bool TextWriter::put(char byte, std::string* json) {
  if (held_.empty() && static_cast<unsigned char>(byte) < 0x80) {
    write_ascii(byte, json);
    return true;
  }
  held_ += byte;
  if (utf8_valid(held_)) {
    *json += held_;
    held_.clear();
    return true;
  }
  // Bytes that are wrong count as complete, unlike the beginning of a character.
  if (utf8_complete_prefix(held_) == 0) return true;
  held_.pop_back();
  return false;
}

bool TextWriter::put(std::string_view bytes, std::string* json) {
  return std::all_of(bytes.begin(), bytes.end(), [&](char byte) { return put(byte, json); });
}

void TextWriter::put_character(uint32_t code, std::string* json) {
  if (code < 0x80) {
    write_ascii(static_cast<char>(code), json);
  } else {
    utf8_append(code, json);
  }
}

}  // namespace gen::calls

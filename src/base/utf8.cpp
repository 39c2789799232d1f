// SPDX-License-Identifier: Apache-2.0
// UTF-8 by table 3-7 of the Unicode standard: the first byte fixes the length and the range of the
// second byte, later bytes are 80..BF. See utf8.h.
#include "base/utf8.h"

#include <algorithm>

namespace gen {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

struct Lead {
  uint32_t length;        // 0: cannot start a character
  uint32_t second_first;  // range of the second byte
  uint32_t second_last;
};

constexpr Lead lead_of(uint32_t byte) noexcept {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

uint32_t byte_at(std::string_view text, size_t index) noexcept {
  return static_cast<unsigned char>(text[index]);
}

// Bytes from `offset` that agree with a well-formed character, and that character's length.
struct Match {
  size_t agreeing;
  size_t length;  // 0 if the first byte cannot start one
};

Match match_at(std::string_view text, size_t offset) noexcept {
  const Lead lead = lead_of(byte_at(text, offset));
  if (lead.length == 0) return {0, 0};
  const size_t available = std::min<size_t>(lead.length, text.size() - offset);
  size_t agreeing = 1;
  while (agreeing < available) {
    const uint32_t byte = byte_at(text, offset + agreeing);
    const uint32_t first = agreeing == 1 ? lead.second_first : 0x80;
    const uint32_t last = agreeing == 1 ? lead.second_last : 0xBF;
    if (byte < first || byte > last) break;
    ++agreeing;
  }
  return {agreeing, lead.length};
}

}  // namespace

size_t utf8_valid_prefix(std::string_view text) noexcept {
  size_t offset = 0;
  while (offset < text.size()) {
    const Match match = match_at(text, offset);
    if (match.length == 0 || match.agreeing != match.length) return offset;
    offset += match.length;
  }
  return offset;
}

size_t utf8_complete_prefix(std::string_view text) noexcept {
  // An unfinished character is at most three bytes, so only three starts are possible.
  const size_t earliest = text.size() - std::min<size_t>(text.size(), 3);
  for (size_t start = text.size(); start-- > earliest;) {
    if ((byte_at(text, start) & 0xC0) == 0x80) continue;
    const Match match = match_at(text, start);
    const bool unfinished = match.length > match.agreeing && start + match.agreeing == text.size();
    return unfinished ? start : text.size();
  }
  return text.size();
}

uint32_t utf8_next(std::string_view text, size_t* offset) noexcept {
  const Match match = match_at(text, *offset);
  if (match.length == 0 || match.agreeing != match.length) {
    *offset += 1;
    return kReplacement;
  }
  const uint32_t lead = byte_at(text, *offset);
  uint32_t code_point = match.length == 1 ? lead : lead & (0x7FU >> match.length);
  for (size_t i = 1; i < match.length; ++i) {
    code_point = (code_point << 6) | (byte_at(text, *offset + i) & 0x3F);
  }
  *offset += match.length;
  return code_point;
}

void utf8_append(uint32_t code_point, std::string* out) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    code_point = kReplacement;
  }
  char bytes[4];
  size_t length = 0;
  const auto put = [&](uint32_t byte) { bytes[length++] = static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
  out->append(bytes, length);
}

}  // namespace gen

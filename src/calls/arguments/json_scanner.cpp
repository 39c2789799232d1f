// SPDX-License-Identifier: Apache-2.0
// See json_scanner.h.
#include "calls/arguments/json_scanner.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/utf8.h"
#include "calls/text.h"

namespace gen::calls {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// States of a number; those that may end it are kZero, kWhole, kFraction and kExponent.
enum Number : uint8_t { kNoNumber, kMinus, kZero, kWhole, kPoint, kFraction, kE, kSign, kExponent };

uint8_t next_number(uint8_t state, char c) {
  switch (state) {
    case kMinus:
      return c == '0' ? kZero : is_digit(c) ? kWhole : kNoNumber;
    case kZero:
    case kWhole:
      if (is_digit(c)) return state == kWhole ? kWhole : kNoNumber;
      if (c == '.') return kPoint;
      return c == 'e' || c == 'E' ? kE : kNoNumber;
    case kPoint:
      return is_digit(c) ? kFraction : kNoNumber;
    case kFraction:
      if (is_digit(c)) return kFraction;
      return c == 'e' || c == 'E' ? kE : kNoNumber;
    case kE:
      if (c == '+' || c == '-') return kSign;
      return is_digit(c) ? kExponent : kNoNumber;
    default:
      return is_digit(c) ? kExponent : kNoNumber;
  }
}

bool ends_number(uint8_t state) {
  return state == kZero || state == kWhole || state == kFraction || state == kExponent;
}

constexpr std::string_view kWords[] = {"true", "false", "null"};

}  // namespace

JsonScanner::State JsonScanner::take(char byte) {
  name_ended_ = value_began_ = scalar_ended_ = in_string_ = false;
  if (at_ == At::kString) return string_byte(byte);
  if (at_ == At::kScalar) {
    const State state = word_byte(byte);
    if (state != State::kDone) return state;
    scalar_ended_ = true;  // and the byte is what follows it
    at_ = At::kNext;
  }
  if (is_blank(byte)) return State::kMore;
  return structure_byte(byte);
}

JsonScanner::State JsonScanner::structure_byte(char byte) {
  switch (at_) {
    case At::kStart:
      if (byte != '{' && byte != '[') return bad("no JSON object begins here");
      return begin_value(byte);
    case At::kFirst:
      if (byte == '}' || byte == ']') return end_bracket(byte);
      if (!open_.back().object) return begin_value(byte);
      [[fallthrough]];
    case At::kName:
      if (byte != '"') return bad("a member's name has no quote");
      at_ = At::kString;
      is_name_ = true;
      in_string_ = true;
      text_.clear();
      return State::kMore;
    case At::kColon:
      if (byte != ':') return bad("no colon behind a member's name");
      at_ = At::kValue;
      return State::kMore;
    case At::kValue:
      return begin_value(byte);
    default:
      if (byte == ',') {
        at_ = open_.back().object ? At::kName : At::kValue;
        return State::kMore;
      }
      if (byte == '}' || byte == ']') return end_bracket(byte);
      return bad("neither a comma nor an end behind a value");
  }
}

JsonScanner::State JsonScanner::begin_value(char byte) {
  value_began_ = true;
  if (byte == '{' || byte == '[') {
    if (open_.size() >= kMaxArgumentDepth) return bad("JSON is nested too deeply");
    open_.push_back({byte == '{'});
    at_ = At::kFirst;
    return State::kMore;
  }
  if (byte == '"') {
    at_ = At::kString;
    is_name_ = false;
    in_string_ = true;
    return State::kMore;
  }
  at_ = At::kScalar;
  text_ = byte;
  number_ = byte == '-' ? kMinus : byte == '0' ? kZero : is_digit(byte) ? kWhole : kNoNumber;
  const bool word = std::any_of(std::begin(kWords), std::end(kWords),
                                [&](std::string_view one) { return one.front() == byte; });
  return number_ != kNoNumber || word ? State::kMore : bad("no JSON value begins here");
}

// kDone: the value ended before the byte.
JsonScanner::State JsonScanner::word_byte(char byte) {
  if (number_ != kNoNumber) {
    const uint8_t next = next_number(number_, byte);
    if (next != kNoNumber) {
      number_ = next;
      return State::kMore;
    }
    return ends_number(number_) ? State::kDone : bad("a number is incomplete");
  }
  for (const std::string_view word : kWords) {
    if (word == text_) return State::kDone;
    if (word.substr(0, text_.size()) == text_ && word[text_.size()] == byte) {
      text_ += byte;
      return State::kMore;
    }
  }
  return bad("a word other than true, false and null");
}

JsonScanner::State JsonScanner::string_byte(char byte) {
  in_string_ = true;
  if (escape_ > 1) {
    if (hex_value(byte) < 0) return bad("\\u without four digits");
    escape_ = escape_ == 5 ? 0 : escape_ + 1;
  } else if (escape_ == 1) {
    if (std::string_view("\"\\/bfnrtu").find(byte) == std::string_view::npos) {
      return bad("an unknown escape in a string");
    }
    escape_ = byte == 'u' ? 2 : 0;
  } else if (byte == '\\') {
    escape_ = 1;
  } else if (byte == '"') {
    if (!is_name_) {
      scalar_ended_ = true;
      at_ = At::kNext;
      return State::kMore;
    }
    Level& level = open_.back();
    level.name = decode_json_string(text_);
    if (!level.names.insert(level.name).second) return bad("a member's name comes twice");
    name_ended_ = true;
    at_ = At::kColon;
    return State::kMore;
  }
  if (is_name_) text_ += byte;
  return State::kMore;
}

JsonScanner::State JsonScanner::end_bracket(char byte) {
  if (open_.back().object != (byte == '}')) return bad("an end that does not fit its bracket");
  open_.pop_back();
  at_ = At::kNext;
  return open_.empty() ? State::kDone : State::kMore;
}

std::string decode_json_string(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  const auto unit = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4; ++i) {
      value = value * 16 + static_cast<uint32_t>(std::max(0, hex_value(raw[i])));
    }
    return value;
  };
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char kind = raw[++i];
    if (kind != 'u') {
      constexpr std::string_view kFrom = "bfnrt", kTo = "\b\f\n\r\t";
      const size_t which = kFrom.find(kind);
      out += which == std::string_view::npos ? kind : kTo[which];
      continue;
    }
    if (i + 4 >= raw.size()) break;
    uint32_t code = unit(i + 1);
    i += 4;
    const bool pair = code >= 0xD800 && code < 0xDC00 && i + 6 < raw.size() && raw[i + 1] == '\\' &&
                      raw[i + 2] == 'u';
    if (pair) {
      const uint32_t low = unit(i + 3);
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
        i += 6;
      }
    }
    utf8_append(code, &out);
  }
  return out;
}

void append_string_byte(char byte, std::string* json) {
  const auto value = static_cast<unsigned char>(byte);
  if (value >= 0x20) {
    *json += byte;
    return;
  }
  char escape[8];
  std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(value));
  *json += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : byte == '\r' ? "\\r" : escape;
}

}  // namespace gen::calls

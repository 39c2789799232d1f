// SPDX-License-Identifier: Apache-2.0
// See literal_reader.h.
#include "calls/arguments/literal_reader.h"

#include <utility>

#include "calls/arguments/argument_reader.h"
#include "calls/arguments/mark_reader.h"

namespace gen::calls {
namespace {

constexpr const char* kNotUtf8 = "not UTF-8";

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_literal_byte(char c) {
  return is_decimal(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.' || c == '+' || c == '-';
}

int value_of_hex(char c) {
  if (is_decimal(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// As RFC 8259.
bool is_json_number(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && is_decimal(text[at])) ++at;
    return at - begin;
  };
  const bool zero = at < text.size() && text[at] == '0';
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

std::string_view json_word(std::string_view word) {
  if (word == "True" || word == "true") return "true";
  if (word == "False" || word == "false") return "false";
  if (word == "None" || word == "null") return "null";
  return is_json_number(word) ? word : std::string_view();
}

}  // namespace

LiteralReader::State LiteralReader::take(char byte, std::string* json) {
  State state = State::kMore;
  do {
    again_ = false;
    state = step(byte, json);
  } while (again_ && state == State::kMore);
  return state;
}

LiteralReader::State LiteralReader::step(char c, std::string* json) {
  switch (mode_) {
    case Mode::kValue:
      return value(c, json);
    case Mode::kKey:
    case Mode::kBareKey:
      return key(c, json);
    case Mode::kColon:
      return colon(c, json);
    case Mode::kAfter:
      return after(c, json);
    case Mode::kWord:
      return word(c, json);
    case Mode::kQuotes:
      return quotes(c, json);
    case Mode::kString:
      return in_string(c, json);
    case Mode::kBehind:
      return behind(c, json);
    case Mode::kEscape:
      return escape(c, json);
    case Mode::kHex:
    case Mode::kOctal:
      return digit(c, json);
    case Mode::kOpening:
    case Mode::kMarked:
      return marked(c, json);
  }
  return bad("no value");
}

LiteralReader::State LiteralReader::value(char c, std::string* json) {
  if (is_blank(c)) return State::kMore;
  if (may_close_ && c == frames_.back().close) return close(json);
  may_close_ = false;
  if (!frames_.empty() && frames_.back().close != '}') {
    if (!std::exchange(frames_.back().first, false)) *json += ", ";
  }
  if (c == '{') return open('}', json);
  if (c == '[') return open(']', json);
  if (c == '(') return open(')', json);
  if (c == '"' || c == '\'' || (!mark_.empty() && c == mark_.front())) {
    *json += '"';
    quote_ = c;
    begin_string(false, c == '"' || c == '\'' ? Mode::kQuotes : Mode::kOpening);
    return State::kMore;
  }
  if (!is_literal_byte(c)) return bad("a value is expected");
  held_ = c;
  mode_ = Mode::kWord;
  return State::kMore;
}

LiteralReader::State LiteralReader::key(char c, std::string* json) {
  if (mode_ == Mode::kKey) {
    if (is_blank(c)) return State::kMore;
    if (c == '}') return close(json);
    quote_ = c;
    if (c == '"' || c == '\'') {
      begin_string(true, Mode::kQuotes);
      return State::kMore;
    }
    if (!mark_.empty() && c == mark_.front()) {
      begin_string(true, Mode::kOpening);
      return State::kMore;
    }
    begin_string(true, Mode::kBareKey);
  }
  if (c == ':' || is_blank(c)) {
    if (name_.empty()) return bad("a name is expected");
    mode_ = Mode::kColon;
    if (!writer_.whole()) return bad(kNotUtf8);
    return is_blank(c) ? State::kMore : repeat(Mode::kColon);
  }
  if (std::string_view("{}[](),\"'").find(c) != std::string_view::npos) {
    return bad("a name is expected");
  }
  return text(c, json);
}

LiteralReader::State LiteralReader::colon(char c, std::string* json) {
  if (is_blank(c)) return State::kMore;
  if (c != ':') return bad("':' is expected");
  Frame& frame = frames_.back();
  if (!frame.names.insert(name_).second) return bad("a name comes twice");
  if (!std::exchange(frame.first, false)) *json += ", ";
  *json += '"' + name_ + "\": ";
  may_close_ = false;
  mode_ = Mode::kValue;
  return State::kMore;
}

LiteralReader::State LiteralReader::after(char c, std::string* json) {
  if (is_blank(c)) return State::kMore;
  if (c == frames_.back().close) return close(json);
  if (c != ',') return bad("',' or the end is expected");
  may_close_ = true;
  mode_ = frames_.back().close == '}' ? Mode::kKey : Mode::kValue;
  return State::kMore;
}

LiteralReader::State LiteralReader::open(char close, std::string* json) {
  if (frames_.size() == kMaxArgumentDepth) return bad("nested too deep");
  frames_.push_back({close});
  *json += close == '}' ? '{' : '[';
  may_close_ = true;
  mode_ = close == '}' ? Mode::kKey : Mode::kValue;
  return State::kMore;
}

LiteralReader::State LiteralReader::close(std::string* json) {
  *json += frames_.back().close == '}' ? '}' : ']';
  frames_.pop_back();
  may_close_ = false;
  mode_ = Mode::kAfter;
  return frames_.empty() ? State::kDone : State::kMore;
}

LiteralReader::State LiteralReader::word(char c, std::string* json) {
  if (is_literal_byte(c)) {
    held_ += c;
    return State::kMore;
  }
  const std::string_view known = json_word(held_);
  if (known.empty()) return bad("neither a number, a string, true, false nor null");
  *json += known;
  return frames_.empty() ? State::kBefore : repeat(Mode::kAfter);
}

void LiteralReader::begin_string(bool is_key, Mode mode) {
  is_key_ = is_key;
  mode_ = mode;
  run_ = 1;
  triple_ = false;
  high_ = 0;
  held_.assign(mode == Mode::kOpening ? 1 : 0, quote_);
  if (is_key) name_.clear();
  writer_ = {};
  if (mode == Mode::kOpening && held_ == mark_) {
    held_.clear();
    mode_ = Mode::kMarked;
  }
}

LiteralReader::State LiteralReader::end_string(std::string* json) {
  if (!writer_.whole()) return bad(kNotUtf8);
  if (is_key_) {
    mode_ = Mode::kColon;
    return State::kMore;
  }
  *json += '"';
  mode_ = Mode::kAfter;
  return frames_.empty() ? State::kDone : State::kMore;
}

LiteralReader::State LiteralReader::quotes(char c, std::string* json) {
  if (c == quote_) {
    if (++run_ < 3) return State::kMore;
    run_ = 0;
    triple_ = true;
    mode_ = Mode::kString;
    return State::kMore;
  }
  if (run_ == 1) {
    run_ = 0;
    return repeat(Mode::kString);
  }
  // Two quotes were an empty string.
  const State state = end_string(json);
  if (state == State::kDone) return State::kBefore;
  return state == State::kBad ? state : repeat(mode_);
}

LiteralReader::State LiteralReader::in_string(char c, std::string* json) {
  if (high_ != 0 && c != '\\') return bad("half a surrogate pair");
  if (c == quote_) {
    if (triple_) return ++run_ < 3 ? State::kMore : end_string(json);
    if (!writer_.whole()) return bad(kNotUtf8);
    behind_.clear();
    mode_ = Mode::kBehind;
    return State::kMore;
  }
  while (run_ > 0) {
    --run_;
    if (text(quote_, json) == State::kBad) return State::kBad;
  }
  if (c != '\\') return text(c, json);
  if (!writer_.whole()) return bad(kNotUtf8);
  mode_ = Mode::kEscape;
  return State::kMore;
}

// Quotes end a string only before what can follow it. Else they are an apostrophe that should have
// been escaped.
LiteralReader::State LiteralReader::behind(char c, std::string* json) {
  if (is_blank(c)) {
    behind_ += c;
    return State::kMore;
  }
  if (std::string_view(",:)]}").find(c) != std::string_view::npos) {
    const State state = end_string(json);
    if (state == State::kDone) return State::kBefore;
    return state == State::kBad ? state : repeat(mode_);
  }
  if (text(quote_, json) == State::kBad || text(behind_, json) == State::kBad) return State::kBad;
  return repeat(Mode::kString);
}

LiteralReader::State LiteralReader::escape(char c, std::string* json) {
  if (high_ != 0 && c != 'u') return bad("half a surrogate pair");
  mode_ = Mode::kString;
  code_ = 0;
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeant = "\a\b\f\n\r\t\v\\'\"";
  if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
    return text(kMeant[at], json);
  }
  if (c == '\n') return State::kMore;
  if (c == 'x' || c == 'u' || c == 'U') {
    digits_ = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    mode_ = Mode::kHex;
    return State::kMore;
  }
  if (c >= '0' && c <= '7') {
    digits_ = 3;
    return repeat(Mode::kOctal);
  }
  if (c == '/') return text(c, json);
  // As in Python: what is no escape stays as it is.
  return text(std::string{'\\', c}, json);
}

LiteralReader::State LiteralReader::digit(char c, std::string* json) {
  if (mode_ == Mode::kOctal) {
    const bool octal = c >= '0' && c <= '7';
    if (octal) code_ = code_ * 8 + static_cast<uint32_t>(c - '0');
    if (octal && --digits_ > 0) return State::kMore;
    if (character(code_, json) == State::kBad) return State::kBad;
    return octal ? State::kMore : repeat(Mode::kString);
  }
  const int value = value_of_hex(c);
  if (value < 0) return bad("an escape is incomplete");
  if (code_ > 0x0FFFFFFF) return bad("no character");
  code_ = code_ * 16 + static_cast<uint32_t>(value);
  return --digits_ > 0 ? State::kMore : character(code_, json);
}

LiteralReader::State LiteralReader::character(uint32_t code, std::string* json) {
  mode_ = Mode::kString;
  if (code > 0x10FFFF) return bad("no character");
  const bool low = code >= 0xDC00 && code < 0xE000;
  if (low != (high_ != 0)) return bad("half a surrogate pair");
  if (code >= 0xD800 && code < 0xDC00) {
    high_ = code;
    return State::kMore;
  }
  if (low) code = 0x10000 + ((std::exchange(high_, 0) - 0xD800) << 10) + (code - 0xDC00);
  writer_.put_character(code, is_key_ ? &name_ : json);
  return State::kMore;
}

LiteralReader::State LiteralReader::marked(char c, std::string* json) {
  held_ += c;
  if (mode_ == Mode::kOpening) {
    if (!mark_.starts_with(held_)) return bad("a value is expected");
    if (held_ != mark_) return State::kMore;
    held_.clear();
    mode_ = Mode::kMarked;
    return State::kMore;
  }
  if (held_ == mark_) return end_string(json);
  while (!mark_.starts_with(held_)) {
    if (text(held_.front(), json) == State::kBad) return State::kBad;
    held_.erase(0, 1);
  }
  return State::kMore;
}

LiteralReader::State LiteralReader::text(std::string_view bytes, std::string* json) {
  return writer_.put(bytes, is_key_ ? &name_ : json) ? State::kMore : bad(kNotUtf8);
}

}  // namespace gen::calls

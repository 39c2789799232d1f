// SPDX-License-Identifier: Apache-2.0
// Escapes and classes of patterns, see regex_class.h.
#include "grammar/regex/regex_class.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {
namespace {

CharSet of_ranges(std::initializer_list<CharRange> ranges) {
  CharSet set;
  for (const CharRange& range : ranges) set.add(range.low, range.high);
  return set;
}

CharSet digits() { return of_ranges({{'0', '9'}}); }
CharSet word() { return of_ranges({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); }
CharSet line_ends() { return of_ranges({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }
// WhiteSpace and LineTerminator of ECMA-262.
CharSet space() {
  return of_ranges({{0x09, 0x0D},
                    {0x20, 0x20},
                    {0xA0, 0xA0},
                    {0x1680, 0x1680},
                    {0x2000, 0x200A},
                    {0x2028, 0x2029},
                    {0x202F, 0x202F},
                    {0x205F, 0x205F},
                    {0x3000, 0x3000},
                    {0xFEFF, 0xFEFF}});
}

// The set of \d, \D, ...; none for other letters.
std::optional<CharSet> named_set(char letter) {
  switch (letter) {
    case 'd':
      return digits();
    case 'D':
      return digits().inverted();
    case 'w':
      return word();
    case 'W':
      return word().inverted();
    case 's':
      return space();
    case 'S':
      return space().inverted();
    default:
      return std::nullopt;
  }
}

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

CharSet RegexClassReader::any_but_line_ends() const {
  if (flags_.dot_is_all) return CharSet().inverted();
  return (rust() ? of_ranges({{'\n', '\n'}}) : line_ends()).inverted();
}

void RegexClassReader::skip(bool in_class) {
  while (flags_.spaces_ignored && !done()) {
    if (is_blank(peek())) {
      ++at_;
    } else if (peek() == '#' && !in_class) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

// Rust has nested classes, which are not supported.
Status RegexClassReader::refuse_in_class() const {
  if (!rust()) return {};
  const char c = peek();
  if (c == '[') return fail("classes in a class are not supported; the character is \\[");
  if ((c == '&' || c == '-' || c == '~') && peek(1) == c) {
    return fail(std::string(2, c) + " in a class is not supported; the character is \\" + c);
  }
  return {};
}

Result<CharSet> RegexClassReader::char_class() {
  const size_t begin = at_++;
  const bool negated = take("^");
  CharSet set;
  std::vector<CharRange> ranges;
  if (rust() && take("]")) ranges.push_back({']', ']'});
  for (;;) {
    skip(true);
    if (take("]")) break;
    if (done()) return error_at(text_, begin, "[ without ]");
    GEN_TRY(refuse_in_class());
    const size_t first = at_;
    GEN_ASSIGN(const std::optional<uint32_t> low, atom(&set, true));
    skip(true);
    if (peek() != '-' || peek(1) == ']' || at_ + 1 >= text_.size()) {
      if (low) ranges.push_back({*low, *low});
      continue;
    }
    GEN_TRY(refuse_in_class());
    ++at_;
    skip(true);
    GEN_TRY(refuse_in_class());
    if (done()) return error_at(text_, begin, "[ without ]");
    CharSet ignored;
    GEN_ASSIGN(const std::optional<uint32_t> high, atom(&ignored, true));
    if (!low || !high) {  // a set cannot be the end of a range: all three are ordinary characters
      if (rust()) return error_at(text_, first, kNoRange);
      if (!set_in_range_) set_in_range_ = first;
      ranges.push_back({'-', '-'});
      set.add(ignored);
      if (low) ranges.push_back({*low, *low});
      if (high) ranges.push_back({*high, *high});
      continue;
    }
    if (*high < *low) return error_at(text_, first, "range ends before it begins");
    ranges.push_back({*low, *high});
  }
  set.add(std::move(ranges));
  if (flags_.any_case) set = sets_.in_any_case(set);
  return negated ? set.inverted() : set;
}

bool RegexClassReader::add_named_set(char letter, CharSet* set) {
  if (!rust()) {
    const auto named = named_set(letter);
    if (named) set->add(*named);
    return named.has_value();
  }
  const char lower = static_cast<char>(letter | 0x20);
  const char* const name = lower == 'd'   ? "Nd"
                           : lower == 's' ? "White_Space"
                           : lower == 'w' ? "\\w"
                                          : nullptr;
  if (name == nullptr) return false;
  set->add(*sets_.named({name, letter < 'a', true, false}));
  return true;
}

Result<std::optional<uint32_t>> RegexClassReader::atom(CharSet* set, bool in_class) {
  if (peek() != '\\') return std::optional<uint32_t>(utf8_next(text_, &at_));
  const size_t begin = at_++;
  if (done()) return error_at(text_, begin, "nothing behind the \\");
  const char c = peek();
  if (add_named_set(c, set)) {
    ++at_;
    return std::optional<uint32_t>();
  }
  if ((c == 'p' || c == 'P') && (peek(1) == '{' || rust())) {
    GEN_TRY(property(begin, set));
    return std::optional<uint32_t>();
  }
  if (rust()) {
    GEN_ASSIGN(const uint32_t value, rust_escape(c, begin));
    return std::optional<uint32_t>(value);
  }
  if (c == 'k' && peek(1) == '<') {
    return error_at(text_, begin, "backreferences are not supported");
  }
  if (is_digit(c)) {
    GEN_ASSIGN(const uint32_t value, digits_escape(begin, in_class));
    return std::optional<uint32_t>(value);
  }
  if (!is_letter(c)) return std::optional<uint32_t>(utf8_next(text_, &at_));
  ++at_;
  GEN_ASSIGN(const uint32_t value, letter_escape(c, begin, in_class));
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value > kLastCharacter || (surrogate && !in_class)) {
    return error_at(text_, begin, "no Unicode character");
  }
  return std::optional<uint32_t>(value);
}

// {name}; in Rust's syntax also {^name} and a single letter.
Status RegexClassReader::property(size_t begin, CharSet* set) {
  RegexSets::Name name;
  name.negated = peek() == 'P';
  name.of_rust = rust();
  name.any_case = flags_.any_case;
  needs_flag_u_ = true;
  ++at_;
  if (take("{")) {
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) return error_at(text_, begin, "\\p without its }");
    if (rust() && take("^")) name.negated = !name.negated;
    name.text = text_.substr(at_, end - at_);
    at_ = end + 1;
  } else if (is_letter(peek())) {
    name.text = text_[at_++];
  }
  const CharSet* const known = name.text == "\\w" ? nullptr : sets_.named(name);
  if (known == nullptr) return error_at(text_, begin, "no Unicode property " + quoted(name.text));
  set->add(*known);
  return {};
}

// \1 and so on: a backreference, an octal escape, or the digit itself.
Result<uint32_t> RegexClassReader::digits_escape(size_t begin, bool in_class) {
  uint64_t group = 0;
  for (size_t i = 0; is_digit(peek(i)) && group <= n_captures_; ++i) {
    group = group * 10 + static_cast<uint64_t>(peek(i) - '0');
  }
  if (!in_class && group > 0 && group <= n_captures_) {
    return error_at(text_, begin, "backreferences are not supported");
  }
  if (peek() >= '8') return static_cast<uint32_t>(text_[at_++]);
  uint32_t value = 0;
  for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7' && value < 32; ++i) {
    value = value * 8 + static_cast<uint32_t>(text_[at_++] - '0');
  }
  return value;
}

bool RegexClassReader::hexadecimal_at(size_t ahead) const {
  const char lower = static_cast<char>(peek(ahead) | 0x20);
  return is_digit(peek(ahead)) || (lower >= 'a' && lower <= 'f');
}
// Whether that many hexadecimal digits come next.
bool RegexClassReader::hexadecimal_ahead(size_t digits) const {
  for (size_t i = 0; i < digits; ++i) {
    if (!hexadecimal_at(i)) return false;
  }
  return true;
}

Result<uint32_t> RegexClassReader::letter_escape(char c, size_t begin, bool in_class) {
  switch (c) {
    case 't':
      return uint32_t{'\t'};
    case 'n':
      return uint32_t{'\n'};
    case 'v':
      return uint32_t{'\v'};
    case 'f':
      return uint32_t{'\f'};
    case 'r':
      return uint32_t{'\r'};
    case 'b':
      return uint32_t{'\b'};
    case 'c':
      if (is_letter(peek()) || (in_class && (is_digit(peek()) || peek() == '_'))) {
        return static_cast<uint32_t>(text_[at_++]) % 32;
      }
      at_ = begin + 1;  // the \ and the c are ordinary characters
      return uint32_t{'\\'};
    case 'x':
      if (hexadecimal_ahead(2)) return hexadecimal(2);
      return uint32_t{'x'};
    case 'u':
      return unicode();
    default:
      return static_cast<uint32_t>(c);
  }
}

Result<uint32_t> RegexClassReader::unicode() {
  if (peek() == '{') {
    size_t digits = 1;
    while (hexadecimal_at(digits)) ++digits;
    if (digits > 1 && peek(digits) == '}') {
      needs_flag_u_ = true;
      return in_braces(at_);
    }
  }
  if (!hexadecimal_ahead(4)) return uint32_t{'u'};
  GEN_ASSIGN(const uint32_t high, hexadecimal(4));
  if (high < 0xD800 || high > 0xDBFF || peek() != '\\' || peek(1) != 'u') return high;
  const size_t begin = at_;
  at_ += 2;
  if (hexadecimal_ahead(4)) {
    GEN_ASSIGN(const uint32_t low, hexadecimal(4));
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }
  at_ = begin;
  return high;
}

// After the {.
Result<uint32_t> RegexClassReader::in_braces(size_t begin) {
  uint32_t value = 0;
  for (++at_; !take("}");) {
    GEN_ASSIGN(const uint32_t digit, hexadecimal(1));
    value = value * 16 + digit;
    if (value > kLastCharacter) return error_at(text_, begin, "no Unicode character");
  }
  return value;
}

// Unknown letter escapes are refused.
Result<uint32_t> RegexClassReader::rust_escape(char c, size_t begin) {
  if (is_digit(c)) {
    return error_at(text_, begin, "backreferences and octal codes are not supported");
  }
  if (std::string_view("bBAzZG<>").find(c) != std::string_view::npos) {
    return error_at(
        text_, begin,
        "\\" + std::string(1, c) + " is not supported: a terminal is matched as a whole");
  }
  if (static_cast<unsigned char>(c) >= 0x80) return unknown_escape(text_, begin, c);
  ++at_;
  if (!is_letter(c)) return static_cast<uint32_t>(c);
  constexpr std::string_view kLetters = "nrtfva";
  constexpr std::string_view kMeaning = "\n\r\t\f\v\a";
  if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
    return static_cast<uint32_t>(kMeaning[which]);
  }
  const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) return unknown_escape(text_, begin, c);
  GEN_ASSIGN(const uint32_t value, peek() == '{' ? in_braces(begin) : hexadecimal(digits));
  if (value > kLastCharacter || (value >= 0xD800 && value <= 0xDFFF)) {
    return error_at(text_, begin, "no Unicode character");
  }
  return value;
}

}  // namespace gen::grammar

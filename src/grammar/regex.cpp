// SPDX-License-Identifier: Apache-2.0
// The reader of regular expressions, see regex.h. Open groups are kept on a stack of its own.
#include "grammar/regex.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/characters.h"
#include "grammar/text_error.h"
#include "grammar/text_reader.h"

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

struct Alternative {
  std::vector<ExprId> parts;
  bool from_start = false;  // ^
  bool until_end = false;   // $
  size_t end_mark = 0;      // where the $ stands
};

struct Group {
  size_t begin = 0;
  std::vector<ExprId> choices;
  Alternative now;
};

class Reader : TextReader {
 public:
  Reader(std::string_view text, RegexMatch match, Expressions& to)
      : TextReader(text), match_(match), to_(to) {
    CharSet any;
    any.add(0, kLastCharacter);
    any_text_ = to_.repeat(characters(to_, any), 0, kUnbounded);
  }

  Result<ExprId> read() {
    if (const size_t bad = utf8_valid_prefix(text_); bad < text_.size()) {
      return error_at(text_, bad, "not UTF-8");
    }
    open_.resize(1);
    while (!done()) GEN_TRY(step());
    if (open_.size() > 1) return error_at(text_, open_.back().begin, "( without )");
    close_alternative();
    return to_.choice(open_[0].choices);
  }

 private:
  Status step() {
    const char c = peek();
    Alternative& now = open_.back().now;
    if (c == '|') {
      ++at_;
      close_alternative();
      return {};
    }
    if (c == ')') {
      if (open_.size() == 1) return fail(") without (");
      ++at_;
      close_alternative();
      const ExprId group = to_.choice(open_.back().choices);
      open_.pop_back();
      return push(group);
    }
    if (c == '(') return open_group();
    if (c == '^' || c == '$') {
      const bool fits = open_.size() == 1 && (c == '$' || now.parts.empty());
      if (!fits) return fail(std::string(1, c) + " is supported only at the ends of a pattern");
      (c == '^' ? now.from_start : now.until_end) = true;
      if (c == '$') now.end_mark = at_;
      ++at_;
      return {};
    }
    if (c == '*' || c == '+' || c == '?') return fail("nothing to repeat");
    if (c == '{') {
      uint32_t min = 0;
      uint32_t max = 0;
      const size_t begin = at_;
      GEN_ASSIGN(const bool braces, quantifier(&min, &max));
      if (braces) return error_at(text_, begin, "nothing to repeat");
    }
    if (c == '[') {
      GEN_ASSIGN(const CharSet set, char_class());
      return push(characters(to_, set));
    }
    if (c == '.') {
      ++at_;
      return push(characters(to_, line_ends().inverted()));
    }
    CharSet set;
    GEN_ASSIGN(const std::optional<uint32_t> character, atom(&set, false));
    if (character) set.add(*character, *character);
    return push(characters(to_, set));
  }

  Status open_group() {
    const size_t begin = at_++;
    if (take("?")) {
      if (peek() == '=' || peek() == '!' || (peek() == '<' && (peek(1) == '=' || peek(1) == '!'))) {
        return error_at(text_, begin, "lookaround is not supported");
      }
      if (take("<")) {
        const size_t name = at_;
        while (is_letter(peek()) || is_digit(peek()) || peek() == '_' || peek() == '$') ++at_;
        if (at_ == name || !take(">")) return fail("expected the name of a group and >");
      } else if (!take(":")) {
        return error_at(text_, begin, "flags of a group are not supported");
      }
    }
    open_.emplace_back();
    open_.back().begin = begin;
    return {};
  }

  // With the quantifier behind it.
  Status push(ExprId expr) {
    Alternative& now = open_.back().now;
    if (now.until_end) {
      return error_at(text_, now.end_mark, "$ is supported only at the ends of a pattern");
    }
    uint32_t min = 1;
    uint32_t max = 1;
    const size_t begin = at_;
    GEN_ASSIGN(const bool repeated, quantifier(&min, &max));
    if (max < min) return error_at(text_, begin, "most repetitions below the fewest");
    if (repeated) take("?");  // lazy
    now.parts.push_back(to_.repeat(expr, min, max));
    return {};
  }

  // False, with nothing read, if there is none.
  Result<bool> quantifier(uint32_t* min, uint32_t* max) {
    *min = 0;
    *max = kUnbounded;
    if (take("*")) return true;
    *min = 1;
    if (take("+")) return true;
    *min = 0;
    *max = 1;
    if (take("?")) return true;
    *min = 1;
    if (peek() != '{' || !is_digit(peek(1))) return false;
    const size_t begin = at_++;
    size_t end = at_;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end < text_.size() && text_[end] == ',') ++end;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end >= text_.size() || text_[end] != '}') {
      at_ = begin;  // stands for itself
      return false;
    }
    GEN_ASSIGN(*min, number(kMostRepetitions));
    *max = *min;
    if (take(",")) {
      *max = kUnbounded;
      if (peek() != '}') {
        GEN_ASSIGN(*max, number(kMostRepetitions));
      }
    }
    ++at_;
    return true;
  }

  void close_alternative() {
    Group& group = open_.back();
    Alternative done = std::exchange(group.now, {});
    if (match_ == RegexMatch::kSearch && open_.size() == 1) {
      if (!done.from_start) done.parts.insert(done.parts.begin(), any_text_);
      if (!done.until_end) done.parts.push_back(any_text_);
    }
    group.choices.push_back(to_.sequence(done.parts));
  }

  Result<CharSet> char_class() {
    const size_t begin = at_++;
    const bool negated = take("^");
    CharSet set;
    while (!take("]")) {
      if (done()) return error_at(text_, begin, "[ without ]");
      const size_t first = at_;
      GEN_ASSIGN(const std::optional<uint32_t> low, atom(&set, true));
      if (peek() != '-' || peek(1) == ']' || at_ + 1 >= text_.size()) {
        if (low) set.add(*low, *low);
        continue;
      }
      ++at_;
      CharSet ignored;
      GEN_ASSIGN(const std::optional<uint32_t> high, atom(&ignored, true));
      if (!low || !high) return error_at(text_, first, "a range needs two characters");
      if (*high < *low) return error_at(text_, first, "range ends before it begins");
      set.add(*low, *high);
    }
    return negated ? set.inverted() : set;
  }

  // A character, or none where a set such as \d was added to `set`.
  Result<std::optional<uint32_t>> atom(CharSet* set, bool in_class) {
    if (peek() != '\\') return std::optional<uint32_t>(utf8_next(text_, &at_));
    const size_t begin = at_++;
    if (done()) return error_at(text_, begin, "nothing behind the \\");
    const char c = peek();
    if (const auto named = named_set(c)) {
      ++at_;
      set->add(*named);
      return std::optional<uint32_t>();
    }
    if ((c == 'b' || c == 'B') && !in_class) {
      return error_at(text_, begin, std::string("\\") + c + " is not supported");
    }
    if (c == 'p' || c == 'P') return error_at(text_, begin, "\\p is not supported");
    if (c == 'k' || (c >= '1' && c <= '9')) {
      return error_at(text_, begin, "backreferences are not supported");
    }
    if (!is_letter(c) && c != '0') return std::optional<uint32_t>(utf8_next(text_, &at_));
    ++at_;
    GEN_ASSIGN(const uint32_t value, letter_escape(c, begin));
    if (value > kLastCharacter || (value >= 0xD800 && value <= 0xDFFF)) {
      return error_at(text_, begin, "no Unicode character");
    }
    return std::optional<uint32_t>(value);
  }

  Result<uint32_t> letter_escape(char c, size_t begin) {
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
      case '0':
        if (is_digit(peek())) return error_at(text_, begin, "octal escapes are not supported");
        return uint32_t{0};
      case 'c':
        if (!is_letter(peek())) return error_at(text_, begin, "expected a letter behind \\c");
        return static_cast<uint32_t>(text_[at_++]) % 32;
      case 'x':
        return hexadecimal(2);
      case 'u':
        return unicode();
      default:
        return error_at(text_, begin, "unknown escape");
    }
  }

  Result<uint32_t> unicode() {
    if (take("{")) {
      uint32_t value = 0;
      const size_t begin = at_;
      while (!take("}")) {
        GEN_ASSIGN(const uint32_t digit, hexadecimal(1));
        value = value * 16 + digit;
        if (value > kLastCharacter) return error_at(text_, begin, "no Unicode character");
      }
      if (at_ == begin + 1) return fail("expected hexadecimal digits");
      return value;
    }
    GEN_ASSIGN(const uint32_t high, hexadecimal(4));
    if (high < 0xD800 || high > 0xDBFF || !take("\\u")) return high;
    GEN_ASSIGN(const uint32_t low, hexadecimal(4));
    if (low < 0xDC00 || low > 0xDFFF) return fail("no Unicode character");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  const RegexMatch match_;
  Expressions& to_;
  ExprId any_text_ = Expressions::kEmpty;
  std::vector<Group> open_;
};

}  // namespace

Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to) {
  return Reader(pattern, match, to).read();
}

}  // namespace gen::grammar

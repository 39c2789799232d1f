// SPDX-License-Identifier: Apache-2.0
// The reader of regular expressions, see regex.h. Open groups are kept on a stack of its own.
#include "grammar/regex.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/characters.h"
#include "grammar/dfa_builder.h"
#include "grammar/text_error.h"
#include "grammar/text_reader.h"
#include "grammar/unicode_sets.h"

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
};

struct Group {
  size_t begin = 0;
  std::optional<Assertion> asks;
  std::vector<ExprId> choices;
  Alternative now;
};

class Reader : TextReader {
 public:
  Reader(std::string_view text, RegexMatch match, Expressions& to, const DfaFuel& fuel)
      : TextReader(text), match_(match), to_(to), fuel_(fuel) {
    CharSet any;
    any.add(0, kLastCharacter);
    any_text_ = to_.repeat(characters(to_, any), 0, kUnbounded);
  }

  Result<ExprId> read() {
    if (const size_t bad = utf8_valid_prefix(text_); bad < text_.size()) {
      return error_at(text_, bad, "not UTF-8");
    }
    count_captures();
    open_.resize(1);
    while (!done()) GEN_TRY(step());
    if (open_.size() > 1) return error_at(text_, open_.back().begin, "( without )");
    close_alternative();
    const ExprId whole = to_.choice(open_[0].choices);
    if (!first_assertion_) return whole;
    const auto automaton = build_dfa(to_, whole, fuel_);
    if (!automaton.ok()) {
      return error_at(text_, *first_assertion_,
                      std::string("with this the pattern takes ") + automaton.status().message());
    }
    return expression_of(to_, automaton.value());
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
      const Group group = std::move(open_.back());
      const ExprId body = to_.choice(group.choices);
      open_.pop_back();
      if (!group.asks) return push(body);
      return push_assertion({group.asks->ask, group.asks->negated, body}, group.begin);
    }
    if (c == '(') return open_group();
    if (c == '^' || c == '$') {
      const size_t begin = at_++;
      // At the ends of the whole they need no automaton.
      const bool outside = open_.size() == 1;
      if (c == '^' && outside && now.parts.empty()) {
        now.from_start = true;
        return {};
      }
      if (c == '$' && outside && (done() || peek() == '|')) {
        now.until_end = true;
        return {};
      }
      return push_assertion({c == '^' ? Ask::kStart : Ask::kEnd, false, Expressions::kEmpty},
                            begin);
    }
    if (c == '\\' && (peek(1) == 'b' || peek(1) == 'B')) {
      const size_t begin = at_;
      at_ += 2;
      return push_assertion({Ask::kWord, text_[begin + 1] == 'B', Expressions::kEmpty}, begin);
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
      return push(one_of(set));
    }
    if (c == '.') {
      ++at_;
      return push(one_of(line_ends().inverted()));
    }
    CharSet set;
    GEN_ASSIGN(const std::optional<uint32_t> character, atom(&set, false));
    if (character) set.add(*character, *character);
    return push(one_of(set));
  }

  Status open_group() {
    const size_t begin = at_++;
    std::optional<Assertion> asks;
    if (take("?=")) {
      asks = Assertion{Ask::kAhead, false, 0};
    } else if (take("?!")) {
      asks = Assertion{Ask::kAhead, true, 0};
    } else if (take("?<=")) {
      asks = Assertion{Ask::kBehind, false, 0};
    } else if (take("?<!")) {
      asks = Assertion{Ask::kBehind, true, 0};
    } else if (take("?<")) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos || end == at_) {
        return fail("expected the name of a group and >");
      }
      at_ = end + 1;
    } else if (peek() == '?' && !take("?:")) {
      return error_at(text_, begin, "flags of a group are not supported");
    }
    open_.emplace_back();
    open_.back().begin = begin;
    open_.back().asks = asks;
    return {};
  }

  // What is read without its surroundings: backreferences are told from octal escapes by it.
  void count_captures() {
    bool in_class = false;
    for (size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '\\') {
        ++i;
      } else if (in_class || c == '[') {
        in_class = c != ']';
      } else if (c == '(') {
        const std::string_view rest = text_.substr(i + 1, 3);
        const bool named = rest.starts_with("?<") && rest != "?<=" && rest != "?<!";
        if (!rest.starts_with("?") || named) ++n_captures_;
      }
    }
  }

  // A lookahead may be repeated; then it asks the same again, or nothing.
  Status push_assertion(const Assertion& assertion, size_t begin) {
    if (!first_assertion_) first_assertion_ = begin;
    uint32_t min = 1;
    uint32_t max = 1;
    const size_t behind = at_;
    GEN_ASSIGN(const bool repeated, quantifier(&min, &max));
    if (repeated && assertion.ask != Ask::kAhead) {
      return error_at(text_, behind, "nothing to repeat");
    }
    if (max < min) return error_at(text_, behind, "most repetitions below the fewest");
    if (repeated) take("?");
    if (min > 0) open_.back().now.parts.push_back(to_.assertion(assertion));
    return {};
  }

  // With the quantifier behind it.
  Status push(ExprId expr) {
    Alternative& now = open_.back().now;
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

  // The same set is written out once: properties of characters are large.
  ExprId one_of(const CharSet& set) {
    std::vector<uint32_t> key;
    for (const CharRange range : set.ranges()) key.insert(key.end(), {range.low, range.high});
    const auto [known, added] = sets_.try_emplace(std::move(key), Expressions::kNever);
    if (added) known->second = characters(to_, set);
    return known->second;
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
      if (!low || !high) {  // a set is no end of a range: all three stand for themselves
        set.add('-', '-');
        set.add(ignored);
        if (low) set.add(*low, *low);
        if (high) set.add(*high, *high);
        continue;
      }
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
    if ((c == 'p' || c == 'P') && peek(1) == '{') {
      GEN_TRY(property(begin, set));
      return std::optional<uint32_t>();
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

  Status property(size_t begin, CharSet* set) {
    const bool negated = peek() == 'P';
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) return error_at(text_, begin, "\\p without its }");
    const std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    const std::string_view key = text_.substr(at_, end - at_);
    auto known = properties_.find(key);
    if (known == properties_.end()) {
      const auto found = unicode_set(name);
      if (!found) return error_at(text_, begin, "no Unicode property " + quoted(name));
      known = properties_.emplace(key, negated ? found->inverted() : *found).first;
    }
    if (set->ranges().empty()) {
      *set = known->second;
    } else {
      set->add(known->second);
    }
    at_ = end + 1;
    return {};
  }

  // \1 and so on: of a group, or octal, or the digit itself.
  Result<uint32_t> digits_escape(size_t begin, bool in_class) {
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

  [[nodiscard]] bool hexadecimal_at(size_t ahead) const {
    const char lower = static_cast<char>(peek(ahead) | 0x20);
    return is_digit(peek(ahead)) || (lower >= 'a' && lower <= 'f');
  }
  // Whether so many hexadecimal digits come next.
  [[nodiscard]] bool hexadecimal_ahead(size_t digits) const {
    for (size_t i = 0; i < digits; ++i) {
      if (!hexadecimal_at(i)) return false;
    }
    return true;
  }

  Result<uint32_t> letter_escape(char c, size_t begin, bool in_class) {
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
        at_ = begin + 1;  // the \ stands for itself, and so does the c
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

  Result<uint32_t> unicode() {
    if (peek() == '{') {
      const size_t begin = at_;
      size_t digits = 1;
      while (hexadecimal_at(digits)) ++digits;
      if (digits > 1 && peek(digits) == '}') {
        uint32_t value = 0;
        for (++at_; !take("}");) {
          GEN_ASSIGN(const uint32_t digit, hexadecimal(1));
          value = value * 16 + digit;
          if (value > kLastCharacter) return error_at(text_, begin, "no Unicode character");
        }
        return value;
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

  const RegexMatch match_;
  Expressions& to_;
  ExprId any_text_ = Expressions::kEmpty;
  std::map<std::vector<uint32_t>, ExprId> sets_;
  std::map<std::string_view, CharSet> properties_;  // by "P{name" and "p{name"
  const DfaFuel fuel_;
  std::vector<Group> open_;
  size_t n_captures_ = 0;
  std::optional<size_t> first_assertion_;  // where it stands
};

}  // namespace

Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to,
                           const DfaFuel& fuel) {
  return Reader(pattern, match, to, fuel).read();
}

}  // namespace gen::grammar

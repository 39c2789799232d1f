// SPDX-License-Identifier: Apache-2.0
// The parser of regular expressions, see regex.h. Open groups are on an explicit stack.
#include "grammar/regex/regex.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/expression/characters.h"
#include "grammar/expression/dfa_builder.h"
#include "grammar/regex/regex_class.h"
#include "grammar/regex/regex_sets.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {
namespace {

struct Alternative {
  std::vector<ExprId> parts;
  bool from_start = false;  // ^
  bool until_end = false;   // $
};

struct Group {
  size_t begin = 0;
  RegexFlags outside;  // the flags that apply again after the group
  std::optional<Assertion> asks;
  std::vector<ExprId> choices;
  Alternative now;
};

class RegexReader : RegexClassReader {
 public:
  RegexReader(std::string_view text, size_t begin, RegexMatch match, const RegexFlags& flags,
              RegexSets& sets, const DfaFuel& fuel)
      : RegexClassReader(text, flags, sets), match_(match), to_(sets.expressions()), fuel_(fuel) {
    at_ = begin;
  }

  Result<ExprId> read() {
    if (match_ == RegexMatch::kSearch) {
      any_text_ = to_.repeat(sets_.written(CharSet().inverted()), 0, kUnbounded);
    }
    count_captures();
    open_.resize(1);
    for (skip(); !done(); skip()) {
      GEN_TRY(step());
      if (to_.building() != nullptr) GEN_TRY(to_.building()->status());
    }
    if (open_.size() > 1) return error_at(text_, open_.back().begin, "( without )");
    if (needs_flag_u_ && set_in_range_) return error_at(text_, *set_in_range_, kNoRange);
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
      flags_ = group.outside;
      if (!group.asks) return push(body);
      return push_assertion({group.asks->ask, group.asks->negated, body}, group.begin);
    }
    if (c == '(') return open_group();
    if (c == '^' || c == '$') {
      if (rust())
        return fail(std::string(1, c) + " is not supported: a terminal is matched as a whole");
      const size_t begin = at_++;
      // At the ends of the whole pattern they need no automaton.
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
    if (c == '\\' && (peek(1) == 'b' || peek(1) == 'B') && !rust()) {
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
      if (rust()) return fail("no repetition; the character is \\{");
    }
    if (c == '[') {
      GEN_ASSIGN(const CharSet set, char_class());
      return push(sets_.written(set));
    }
    if (c == '.') {
      ++at_;
      return push(sets_.written(any_but_line_ends()));
    }
    CharSet set;
    GEN_ASSIGN(const std::optional<uint32_t> character, atom(&set, false));
    if (character) set.add(*character, *character);
    return push(sets_.written(flags_.any_case ? sets_.in_any_case(set) : set));
  }

  Status open_group() {
    const size_t begin = at_++;
    const RegexFlags outside = flags_;
    std::optional<Assertion> asks;
    if (take("?=")) {
      asks = Assertion{Ask::kAhead, false, 0};
    } else if (take("?!")) {
      asks = Assertion{Ask::kAhead, true, 0};
    } else if (take("?<=")) {
      asks = Assertion{Ask::kBehind, false, 0};
    } else if (take("?<!")) {
      asks = Assertion{Ask::kBehind, true, 0};
    } else if (take("?<") || (rust() && take("?P<"))) {
      const size_t end = text_.find('>', at_);
      if (end == std::string_view::npos || end == at_) {
        return fail("expected the name of a group and >");
      }
      at_ = end + 1;
    } else if (peek() == '?' && !take("?:")) {
      if (!rust()) return error_at(text_, begin, "flags of a group are not supported");
      ++at_;
      GEN_TRY(group_flags());
      if (take(")")) return {};  // until the end of the surrounding group
      ++at_;
    }
    if (asks && rust()) return error_at(text_, begin, "lookaround is not supported");
    open_.emplace_back();
    open_.back().begin = begin;
    open_.back().outside = outside;
    open_.back().asks = asks;
    return {};
  }

  // Flags in Rust's syntax: up to a ) or :.
  Status group_flags() {
    bool on = true;
    for (; peek() != ':' && peek() != ')'; ++at_) {
      const char c = peek();
      if (c == '-' && on) {
        on = false;
      } else if (c == 'i') {
        flags_.any_case = on;
      } else if (c == 's') {
        flags_.dot_is_all = on;
      } else if (c == 'x') {
        flags_.spaces_ignored = on;
      } else if (c == 'u' && !on) {
        return fail("bytes, (?-u), are not supported");
      } else if (c == 'U') {
        return fail("lazy quantifiers, (?U), are not supported");
      } else if (c != 'm' && c != 'u') {  // m: for ^ and $, which are refused
        return fail("unknown flag of a group");
      }
    }
    return {};
  }

  // A first pass over the pattern, to distinguish backreferences from octal escapes.
  void count_captures() {
    bool in_class = false;
    for (size_t i = at_; i < text_.size(); ++i) {
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

  // A lookahead may be repeated; it then asks the same again, or nothing.
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

  // Adds an atom with its quantifier.
  Status push(ExprId expr) {
    Alternative& now = open_.back().now;
    uint32_t min = 1;
    uint32_t max = 1;
    const size_t begin = at_;
    skip();
    GEN_ASSIGN(const bool repeated, quantifier(&min, &max));
    if (max < min) return error_at(text_, begin, "most repetitions below the fewest");
    skip();
    if (repeated && rust() && peek() == '?') {
      return fail("lazy quantifiers are not supported; a rule can be [lazy] as a whole");
    }
    if (repeated) take("?");  // lazy
    now.parts.push_back(to_.repeat(expr, min, max));
    return {};
  }

  // False, without reading anything, if there is none.
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
    const bool open = rust() && peek(1) == ',' && is_digit(peek(2));  // {,n}
    if (peek() != '{' || (!is_digit(peek(1)) && !open)) return false;
    const size_t begin = at_++;
    size_t end = at_;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end < text_.size() && text_[end] == ',') ++end;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    if (end >= text_.size() || text_[end] != '}') {
      at_ = begin;  // an ordinary character
      return false;
    }
    *min = 0;
    if (!open) {
      GEN_ASSIGN(*min, number(kMaxRepetitions));
    }
    *max = *min;
    if (take(",")) {
      *max = kUnbounded;
      if (peek() != '}') {
        GEN_ASSIGN(*max, number(kMaxRepetitions));
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

  const RegexMatch match_;
  Expressions& to_;
  ExprId any_text_ = Expressions::kEmpty;
  const DfaFuel fuel_;
  std::vector<Group> open_;
  std::optional<size_t> first_assertion_;  // its position
};

}  // namespace

Result<ExprId> parse_regex(std::string_view pattern, RegexMatch match, Expressions& to,
                           const DfaFuel& fuel) {
  if (const size_t bad = utf8_valid_prefix(pattern); bad < pattern.size()) {
    return error_at(pattern, bad, "not UTF-8");
  }
  RegexSets sets(to);
  return RegexReader(pattern, 0, match, {}, sets, fuel).read();
}

Result<ExprId> parse_rust_regex(std::string_view text, size_t begin, RegexFlags flags,
                                RegexSets& sets) {
  flags.syntax = RegexSyntax::kRust;
  return RegexReader(text, begin, RegexMatch::kWhole, flags, sets, {}).read();
}

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// The parser of GBNF, see gbnf.h. Open groups are on an explicit stack.
#include "grammar/notation/gbnf.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/expression/characters.h"
#include "grammar/base/text_error.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; }

struct GbnfGroup {
  size_t begin = 0;
  std::vector<ExprId> choices;
  std::vector<ExprId> sequence;
};

class GbnfReader : TextReader {
 public:
  GbnfReader(std::string_view text, Expressions& to) : TextReader(text), to_(to) {}

  Result<ExprId> read() {
    if (const size_t bad = utf8_valid_prefix(text_); bad < text_.size()) {
      return error_at(text_, bad, "not UTF-8");
    }
    skip(true);
    while (!done()) {
      GEN_TRY(rule());
      if (to_.building() != nullptr) GEN_TRY(to_.building()->status());
    }
    for (const Reference& reference : references_) {
      if (!defined_[reference.rule]) {
        return error_at(text_, reference.offset, "no rule " + quoted(name_at(reference.offset)));
      }
    }
    const auto root = names_.find("root");
    if (root == names_.end() || !defined_[root->second]) {
      return error_at(text_, text_.size(), "no rule \"root\"");
    }
    return to_.rule(rules_[root->second]);
  }

 private:
  struct Reference {
    size_t rule;
    size_t offset;
  };

  void skip(bool lines) {
    while (!done()) {
      const char c = peek();
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  [[nodiscard]] std::string_view name_at(size_t offset) const {
    size_t end = offset;
    while (end < text_.size() && is_name(text_[end])) ++end;
    return text_.substr(offset, end - offset);
  }

  size_t rule_named(std::string_view name) {
    const auto [place, added] = names_.try_emplace(std::string(name), rules_.size());
    if (added) {
      rules_.push_back(to_.add_rule());
      defined_.push_back(false);
    }
    return place->second;
  }

  Status rule() {
    const std::string_view name = name_at(at_);
    if (name.empty()) return fail("expected the name of a rule");
    at_ += name.size();
    skip(false);
    if (!take("::=")) return fail("expected ::= behind " + quoted(name));
    skip(true);
    const size_t index = rule_named(name);
    GEN_ASSIGN(const ExprId body, alternatives());
    to_.define(rules_[index], body);
    defined_[index] = true;
    return {};
  }

  // Up to the end of the rule.
  Result<ExprId> alternatives() {
    std::vector<GbnfGroup> open(1);
    ExprId last = Expressions::kEmpty;  // the operand of a following operator
    bool repeatable = false;
    const auto push = [&](ExprId expr) {
      open.back().sequence.push_back(expr);
      last = expr;
      repeatable = true;
    };
    const auto next_choice = [&] {
      open.back().choices.push_back(to_.sequence(open.back().sequence));
      open.back().sequence.clear();
      repeatable = false;
    };
    for (;;) {
      skip(open.size() > 1);
      const char c = peek();
      if (done() || c == '\n' || c == '\r') {
        if (open.size() > 1) return error_at(text_, open.back().begin, "( without )");
        skip(true);
        if (peek() == '|') continue;
        next_choice();
        return to_.choice(open.back().choices);
      }
      if (c == '|') {
        ++at_;
        skip(true);
        next_choice();
      } else if (c == '(') {
        open.push_back({at_, {}, {}});
        ++at_;
        repeatable = false;
      } else if (c == ')') {
        if (open.size() == 1) return fail(") without (");
        ++at_;
        next_choice();
        const ExprId group = to_.choice(open.back().choices);
        open.pop_back();
        push(group);
      } else if (c == '"') {
        GEN_ASSIGN(const ExprId text, literal());
        push(text);
      } else if (c == '[') {
        GEN_ASSIGN(const ExprId set, char_class());
        push(set);
      } else if (c == '.') {
        ++at_;
        CharSet any;
        any.add(0, kLastCharacter);
        push(characters(to_, any));
      } else if (c == '<' || (c == '!' && peek(1) == '<')) {
        GEN_ASSIGN(const ExprId token, token_term());
        push(token);
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (!repeatable) return fail("nothing to repeat");
        GEN_ASSIGN(last, repetition(last));
        open.back().sequence.back() = last;
      } else if (is_name(c)) {
        const std::string_view name = name_at(at_);
        references_.push_back({rule_named(name), at_});
        push(to_.rule(rules_[references_.back().rule]));
        at_ += name.size();
      } else {
        return fail("unexpected " + quoted(text_.substr(at_, 1 + continuation_bytes())));
      }
    }
  }

  [[nodiscard]] size_t continuation_bytes() const {
    size_t count = 0;
    while ((static_cast<unsigned char>(peek(1 + count)) & 0xC0) == 0x80) ++count;
    return count;
  }

  // An escape or a plain character.
  Result<uint32_t> character() {
    if (peek() != '\\') return utf8_next(text_, &at_);
    const size_t begin = at_++;
    const char kind = peek();
    ++at_;
    int digits = 0;
    switch (kind) {
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 't':
        return uint32_t{'\t'};
      case '\\':
      case '"':
      case '[':
      case ']':
        return static_cast<uint32_t>(kind);
      case 'x':
        digits = 2;
        break;
      case 'u':
        digits = 4;
        break;
      case 'U':
        digits = 8;
        break;
      default:
        return unknown_escape(text_, begin, kind);
    }
    GEN_ASSIGN(const uint32_t value, hexadecimal(digits));
    if (value > kLastCharacter || (value >= 0xD800 && value <= 0xDFFF)) {
      return error_at(text_, begin, "no Unicode character");
    }
    return value;
  }

  Result<ExprId> literal() {
    const size_t begin = at_++;
    std::string bytes;
    while (peek() != '"') {
      if (done()) return error_at(text_, begin, "text without its end quote");
      GEN_ASSIGN(const uint32_t c, character());
      utf8_append(c, &bytes);
    }
    ++at_;
    return to_.literal(bytes);
  }

  Result<ExprId> char_class() {
    const size_t begin = at_++;
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    while (peek() != ']') {
      if (done()) return error_at(text_, begin, "[ without ]");
      const size_t first = at_;
      GEN_ASSIGN(const uint32_t low, character());
      uint32_t high = low;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (done()) return error_at(text_, begin, "[ without ]");
        GEN_ASSIGN(high, character());
        if (high < low) return error_at(text_, first, "range ends before it begins");
      }
      ranges.push_back({low, high});
    }
    ++at_;
    CharSet set;
    set.add(std::move(ranges));
    return characters(to_, negated ? set.inverted() : set);
  }

  Result<ExprId> token_term() {
    TokenTerm term;
    const size_t begin = at_;
    term.negated = take("!");
    ++at_;
    if (take("[")) {
      GEN_ASSIGN(const uint32_t id, number(INT32_MAX));
      term.id = static_cast<int32_t>(id);
      if (!take("]>")) return fail("expected ]>");
      return to_.token(std::move(term));
    }
    const size_t end = text_.find_first_of(">\n", at_);
    if (end == std::string_view::npos || text_[end] != '>' || end == at_) {
      return error_at(text_, begin, "token without its >");
    }
    term.name = "<" + std::string(text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    return to_.token(std::move(term));
  }

  Result<ExprId> repetition(ExprId what) {
    if (take("*")) return to_.repeat(what, 0, kUnbounded);
    if (take("+")) return to_.repeat(what, 1, kUnbounded);
    if (take("?")) return to_.repeat(what, 0, 1);
    const size_t begin = at_++;
    skip(true);
    GEN_ASSIGN(const uint32_t min, number(kMaxRepetitions));
    uint32_t max = min;
    skip(true);
    if (take(",")) {
      skip(true);
      max = kUnbounded;
      if (peek() != '}') {
        GEN_ASSIGN(max, number(kMaxRepetitions));
        skip(true);
      }
    }
    if (!take("}")) return fail("expected }");
    if (max < min) return error_at(text_, begin, "most repetitions below the fewest");
    return to_.repeat(what, min, max);
  }

  Expressions& to_;
  std::unordered_map<std::string, size_t> names_;
  std::vector<RuleId> rules_;
  std::vector<bool> defined_;
  std::vector<Reference> references_;
};

}  // namespace

Result<ExprId> parse_gbnf(std::string_view text, Expressions& to) {
  return GbnfReader(text, to).read();
}

}  // namespace gen::grammar

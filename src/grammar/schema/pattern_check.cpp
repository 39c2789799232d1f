// SPDX-License-Identifier: Apache-2.0
// Validates patterns without compiling them, see pattern_check.h. Section 21.2.1 of ECMA-262, with
// the early errors. regex.h reads another language: without the flag u, and without back
// references.
#include "grammar/schema/pattern_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "grammar/regex/unicode_sets.h"

namespace gen::grammar {
namespace {

constexpr uint32_t kNoCode = UINT32_MAX;  // for an escape that denotes a set

bool is_decimal(uint32_t c) { return c >= '0' && c <= '9'; }
bool is_syntax(uint32_t c) {
  return c < 0x80 &&
         std::string_view("^$\\.*+?()[]{}|/").find(static_cast<char>(c)) != std::string_view::npos;
}

bool in_property(std::string_view name, uint32_t c) {
  const auto set = unicode_set(name);
  return std::any_of(set->ranges().begin(), set->ranges().end(),
                     [&](const CharRange& one) { return one.low <= c && c <= one.high; });
}

class PatternReader {
 public:
  explicit PatternReader(std::string_view text) {
    for (size_t i = 0; i < text.size();) text_.push_back(utf8_next(text, &i));
  }

  bool run() {
    while (at_ < text_.size()) {
      if (!term()) return false;
    }
    if (!open_.empty() || max_reference_ > n_groups_) return false;
    return std::all_of(references_.begin(), references_.end(),
                       [&](const auto& name) { return names_.contains(name); });
  }

 private:
  [[nodiscard]] uint32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : kNoCode;
  }
  bool take(std::string_view what) {
    for (size_t i = 0; i < what.size(); ++i) {
      if (peek(i) != static_cast<unsigned char>(what[i])) return false;
    }
    at_ += what.size();
    return true;
  }

  bool term() {
    if (take("|") || take("^") || take("$") || take("\\b") || take("\\B")) return true;
    for (const char* look : {"(?=", "(?!", "(?<=", "(?<!"}) {
      if (!take(look)) continue;
      open_.push_back(true);
      return true;
    }
    if (take("(?:")) return open();
    if (take("(?<")) {
      const auto name = group_name();
      ++n_groups_;
      return name && names_.insert(*name).second && open();
    }
    if (peek() == '(' && peek(1) == '?') return false;
    if (take("(")) {
      ++n_groups_;
      return open();
    }
    if (take(")")) {
      if (open_.empty()) return false;
      const bool look = open_.back();
      open_.pop_back();
      return look || quantifier();
    }
    if (take(".")) return quantifier();
    if (take("[")) return char_class() && quantifier();
    if (take("\\")) return outside_escape() && quantifier();
    if (is_syntax(peek()) && peek() != '/') return false;
    ++at_;
    return quantifier();
  }

  bool open() {
    open_.push_back(false);
    return true;
  }

  // Also true if there is none.
  bool quantifier() {
    if (take("{")) {
      const std::string least = digits();
      if (least.empty()) return false;
      if (take(",")) {
        const std::string most = digits();
        if (!most.empty() && std::pair(most.size(), most) < std::pair(least.size(), least)) {
          return false;
        }
      }
      if (!take("}")) return false;
    } else if (!take("*") && !take("+") && !take("?")) {
      return true;
    }
    take("?");
    return true;
  }

  // Digits without leading zeros.
  std::string digits() {
    std::string all;
    for (; is_decimal(peek()); ++at_) {
      if (all == "0") all.clear();
      all.push_back(static_cast<char>(peek()));
    }
    return all;
  }

  bool outside_escape() {
    if (take("k<")) {
      const auto name = group_name();
      if (name) references_.insert(*name);
      return name.has_value();
    }
    if (is_decimal(peek()) && peek() != '0') {
      const std::string number = digits();
      if (number.size() > 9) return false;  // more than there are characters
      max_reference_ = std::max<uint64_t>(max_reference_, std::stoul(number));
      return true;
    }
    return escape().has_value();
  }

  // After the backslash, inside or outside a class.
  std::optional<uint32_t> escape() {
    if (at_ >= text_.size()) return std::nullopt;
    const uint32_t c = text_[at_++];
    if (is_syntax(c)) return c;
    switch (c) {
      case 'd':
      case 'D':
      case 's':
      case 'S':
      case 'w':
      case 'W':
        return kNoCode;
      case 'p':
      case 'P':
        return property() ? std::optional(kNoCode) : std::nullopt;
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'v':
        return '\v';
      case '0':
        return is_decimal(peek()) ? std::nullopt : std::optional(uint32_t{0});
      case 'c': {
        const uint32_t letter = peek();
        ++at_;
        const uint32_t upper = letter & ~0x20U;
        if (letter > 'z' || upper < 'A' || upper > 'Z') return std::nullopt;
        return letter & 31U;
      }
      case 'x':
        return hex(2);
      case 'u':
        return unit();
      default:
        return std::nullopt;
    }
  }

  std::optional<uint32_t> hex(int count) {
    uint32_t code = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const uint32_t digit = hex_digit(peek());
      if (digit > 15) return std::nullopt;
      code = code * 16 + digit;
    }
    return code;
  }

  static uint32_t hex_digit(uint32_t c) {
    if (is_decimal(c)) return c - '0';
    const uint32_t lower = c | 0x20U;
    return c < 0x80 && lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : kNoCode;
  }

  // After \u.
  std::optional<uint32_t> unit() {
    if (take("{")) {
      uint32_t code = 0;
      const size_t begin = at_;
      for (; hex_digit(peek()) < 16; ++at_) {
        code = code * 16 + hex_digit(peek());
        if (code > kLastCharacter) return std::nullopt;
      }
      if (at_ == begin || !take("}")) return std::nullopt;
      return code;
    }
    const auto first = hex(4);
    if (!first || *first < 0xD800 || *first > 0xDBFF || peek() != '\\' || peek(1) != 'u') {
      return first;
    }
    const size_t behind = at_;
    at_ += 2;
    const auto second = hex(4);
    if (second && *second >= 0xDC00 && *second <= 0xDFFF) {
      return 0x10000 + ((*first - 0xD800) << 10U) + (*second - 0xDC00);
    }
    at_ = behind;
    return first;
  }

  bool property() {
    if (!take("{")) return false;
    std::string name;
    for (; peek() < 0x80 && peek() != '}'; ++at_) name.push_back(static_cast<char>(peek()));
    return take("}") && unicode_set(name).has_value();
  }

  // Up to and including the >.
  std::optional<std::string> group_name() {
    std::string name;
    while (!take(">")) {
      if (at_ >= text_.size()) return std::nullopt;
      uint32_t c = text_[at_++];
      if (c == '\\') {
        const auto code = take("u") ? unit() : std::nullopt;
        if (!code) return std::nullopt;
        c = *code;
      }
      const bool first = name.empty();
      const bool fits = c == '$' || in_property(first ? "ID_Start" : "ID_Continue", c) ||
                        (first ? c == '_' : c == 0x200C || c == 0x200D);
      if (!fits) return std::nullopt;
      utf8_append(c, &name);
    }
    if (name.empty()) return std::nullopt;
    return name;
  }

  bool char_class() {
    take("^");
    while (!take("]")) {
      const auto low = class_atom();
      if (!low) return false;
      if (peek() != '-' || peek(1) == ']') continue;
      ++at_;
      const auto high = class_atom();
      if (!high || *low == kNoCode || *high == kNoCode || *low > *high) return false;
    }
    return true;
  }

  std::optional<uint32_t> class_atom() {
    if (take("\\")) {
      if (take("b")) return 8;
      if (take("-")) return '-';
      return escape();
    }
    if (at_ >= text_.size()) return std::nullopt;
    return text_[at_++];
  }

  std::vector<uint32_t> text_;
  size_t at_ = 0;
  std::vector<bool> open_;  // whether the group is a lookahead or lookbehind
  uint64_t n_groups_ = 0;
  uint64_t max_reference_ = 0;
  std::set<std::string> names_;
  std::set<std::string> references_;
};

}  // namespace

bool is_pattern(std::string_view text) { return PatternReader(text).run(); }

}  // namespace gen::grammar

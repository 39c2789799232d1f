// SPDX-License-Identifier: Apache-2.0
// The tokens of a template, see lexer.h.
#include "template/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/c_locale.h"
#include "base/utf8.h"

namespace gen::templates {

bool is_space(uint32_t c) noexcept {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

size_t stripped_end(std::string_view text) noexcept {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && (text[begin] & 0xC0) == 0x80) --begin;
    size_t at = begin;
    if (!is_space(utf8_next(text, &at)) || at != end) break;
    end = begin;
  }
  return end;
}

size_t stripped_begin(std::string_view text) noexcept {
  size_t begin = 0;
  for (size_t at = 0; at < text.size(); begin = at) {
    if (!is_space(utf8_next(text, &at))) break;
  }
  return begin;
}

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_name(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) {
    text_.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i] != '\r') {
        text_ += source[i];
        continue;
      }
      text_ += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    if (!text_.empty() && text_.back() == '\n') text_.pop_back();
  }

  Result<std::vector<Token>> run() {
    while (at_ < text_.size()) {
      const size_t open = find_open();
      if (open == std::string::npos) {
        add_data(std::string_view(text_).substr(at_));
        at_ = text_.size();
        break;
      }
      GEN_TRY(construct(open));
    }
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] char peek(size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool at(std::string_view what) const noexcept {
    return std::string_view(text_).substr(at_, what.size()) == what;
  }
  [[nodiscard]] Status fail(const char* message) const {
    return error(Code::kFormat, "template line %u: %s", line_, message);
  }
  void push(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }
  void move_to(size_t to) {
    line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                              text_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  void add_data(std::string_view data) {
    if (!data.empty()) push(TokenKind::kData, std::string(data));
  }

  [[nodiscard]] size_t find_open() const noexcept {
    for (size_t i = at_; i + 1 < text_.size(); ++i) {
      if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) {
        return i;
      }
    }
    return std::string::npos;
  }

  // The text before a construct, trimmed according to the construct's mark. `print`: lstrip_blocks
  // does not apply to print statements.
  std::string_view before(std::string_view data, char mark, bool print) const noexcept {
    if (mark == '-') return data.substr(0, stripped_end(data));
    if (mark == '+' || print) return data;
    const size_t line = data.rfind('\n') + 1;
    if (line == 0 && !line_starting_) return data;
    const std::string_view last = data.substr(line);
    return stripped_end(last) == 0 ? data.substr(0, line) : data;
  }

  // After `-` all white space is skipped; after the end of a block or comment, one line break.
  void after(char mark, bool trim) {
    const size_t begin = at_;
    if (mark == '-') {
      move_to(at_ + stripped_begin(std::string_view(text_).substr(at_)));
    } else if (mark != '+' && trim && peek() == '\n') {
      move_to(at_ + 1);
    }
    line_starting_ = at_ > begin && text_[at_ - 1] == '\n';
  }

  Status construct(size_t open) {
    const std::string_view data = std::string_view(text_).substr(at_, open - at_);
    const char kind = text_[open + 1];
    char mark = open + 2 < text_.size() ? text_[open + 2] : '\0';
    if (mark != '-' && mark != '+') mark = '\0';
    const bool print = kind == '{';
    const std::string_view kept = before(data, mark, print);
    add_data(kept);
    move_to(open);
    move_to(open + (mark == '\0' ? 2 : 3));
    if (kind == '#') return comment();
    if (kind == '%') {
      if (const size_t raw = raw_begin(); raw != 0) return raw_block(raw);
    }
    push(print ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, "");
    return code(print);
  }

  Status comment() {
    const size_t end = text_.find("#}", at_);
    if (end == std::string::npos) return fail("a comment has no end");
    const char mark =
        end > at_ && (text_[end - 1] == '-' || text_[end - 1] == '+') ? text_[end - 1] : '\0';
    move_to(end + 2);
    after(mark, true);
    return {};
  }

  // Offset after `raw %}` if the block is one, else 0.
  [[nodiscard]] size_t raw_begin() const noexcept {
    const std::string_view all = text_;
    size_t to = at_ + stripped_begin(all.substr(at_));
    if (all.substr(to, 3) != "raw") return 0;
    to += 3;
    to += stripped_begin(all.substr(to));
    if (all.substr(to, 3) == "-%}") return to + 3;
    return all.substr(to, 2) == "%}" ? to + 2 : 0;
  }

  Status raw_block(size_t begin) {
    const bool strip = text_[begin - 3] == '-';
    move_to(begin);
    after(strip ? '-' : '+', false);
    line_starting_ = text_[at_ - 1] == '\n';
    const std::string_view all = text_;
    for (size_t open = all.find("{%", at_); open != std::string::npos;
         open = all.find("{%", open + 1)) {
      size_t to = open + 2;
      char mark = to < all.size() ? all[to] : '\0';
      if (mark == '-' || mark == '+') {
        ++to;
      } else {
        mark = '\0';
      }
      to += stripped_begin(all.substr(to));
      if (all.substr(to, 6) != "endraw") continue;
      to += 6;
      to += stripped_begin(all.substr(to));
      char end = to < all.size() ? all[to] : '\0';
      if (end == '-' || end == '+') {
        ++to;
      } else {
        end = '\0';
      }
      if (all.substr(to, 2) != "%}") continue;
      add_data(before(all.substr(at_, open - at_), mark, false));
      move_to(to + 2);
      after(end, true);
      return {};
    }
    return fail("{% raw %} has no {% endraw %}");
  }

  // Tokens up to the end of a block or a print.
  Status code(bool print) {
    std::string brackets;
    for (;;) {
      move_to(at_ + stripped_begin(std::string_view(text_).substr(at_)));
      if (at_ >= text_.size()) return fail("a block has no end");
      if (brackets.empty() && end_of_code(print)) return {};
      const char c = peek();
      if (is_digit(c)) {
        GEN_TRY(number());
      } else if (is_name(c)) {
        const size_t begin = at_;
        while (is_name(peek())) ++at_;
        push(TokenKind::kName, text_.substr(begin, at_ - begin));
      } else if (c == '"' || c == '\'') {
        GEN_TRY(string());
      } else {
        GEN_TRY(symbol(&brackets));
      }
    }
  }

  bool end_of_code(bool print) {
    const std::string_view close = print ? "}}" : "%}";
    char mark = peek();
    if (mark != '-' && (mark != '+' || print)) mark = '\0';
    if (std::string_view(text_).substr(at_ + (mark != '\0'), 2) != close) return false;
    at_ += mark == '\0' ? 2 : 3;
    push(print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, "");
    after(mark, !print);
    return true;
  }

  Status symbol(std::string* brackets) {
    for (const char* two : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!at(two)) continue;
      push(TokenKind::kSymbol, two);
      at_ += 2;
      return {};
    }
    const char c = peek();
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      return error(Code::kFormat, "template line %u: unexpected character 0x%02x", line_,
                   static_cast<unsigned char>(c));
    }
    if (c == '(' || c == '[' || c == '{') {
      brackets->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets->empty() || brackets->back() != c) return fail("brackets do not match");
      brackets->pop_back();
    }
    push(TokenKind::kSymbol, std::string(1, c));
    ++at_;
    return {};
  }

  Status number() {
    const bool member = text_[at_ - 1] == '.';  // x.0.1 is x[0][1]
    std::string digits;
    int base = 10;
    if (peek() == '0') {
      const char form = static_cast<char>(peek(1) | 0x20);
      base = form == 'x' ? 16 : form == 'o' ? 8 : form == 'b' ? 2 : 10;
    }
    if (base != 10) at_ += 2;
    const auto take = [&] {
      while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1))) ||
             (base == 16 && ((peek() | 0x20) >= 'a' && (peek() | 0x20) <= 'f'))) {
        if (peek() != '_') digits += peek();
        ++at_;
      }
    };
    take();
    bool whole = true;
    if (base == 10) {
      if (!member && peek() == '.' && is_digit(peek(1))) {
        whole = false;
        digits += '.';
        ++at_;
        take();
      }
      const size_t sign = peek(1) == '+' || peek(1) == '-' ? 2 : 1;
      if (!member && (peek() | 0x20) == 'e' && is_digit(peek(sign))) {
        whole = false;
        digits += text_.substr(at_, sign);
        at_ += sign;
        take();
      }
    }
    push(whole ? TokenKind::kInteger : TokenKind::kFloat, digits);
    Token& token = tokens_.back();
    if (!whole) {
      const CLocale numbers;
      token.number = std::strtod(digits.c_str(), nullptr);
      return {};
    }
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    if (problem != std::errc() || end != digits.data() + digits.size()) {
      return fail("an integer is out of range");
    }
    return {};
  }

  // Escapes of Python strings, except \N.
  Status string() {
    const char quote = peek();
    std::string text;
    size_t i = at_ + 1;
    for (;; ++i) {
      if (i >= text_.size()) return fail("a string has no end");
      const char c = text_[i];
      if (c == quote) break;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (++i >= text_.size()) return fail("a string has no end");
      GEN_TRY(escape(&i, &text));
    }
    push(TokenKind::kString, std::move(text));
    move_to(i + 1);
    return {};
  }

  Status escape(size_t* i, std::string* text) const {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    const char c = text_[*i];
    if (c == '\n') return {};
    if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
      *text += kTo[known];
      return {};
    }
    if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      size_t digits = 0;
      for (; digits < 3 && text_[*i + digits] >= '0' && text_[*i + digits] <= '7'; ++digits) {
        code = code * 8 + static_cast<uint32_t>(text_[*i + digits] - '0');
      }
      *i += digits - 1;
      utf8_append(code, text);
      return {};
    }
    const size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (wanted == 0) {  // an unknown escape stays as it is
      if (c == 'N') return fail("\\N is not supported");
      *text += '\\';
      *text += c;
      return {};
    }
    uint32_t code = 0;
    const char* const begin = text_.data() + *i + 1;
    const size_t there = std::min(wanted, text_.size() - *i - 1);
    const auto [end, problem] = std::from_chars(begin, begin + there, code, 16);
    if (problem != std::errc() || end != begin + wanted || code > 0x10FFFF) {
      return fail("a string has a damaged escape");
    }
    *i += wanted;
    utf8_append(code, text);
    return {};
  }

  std::string text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (!utf8_valid(source)) return error(Code::kFormat, "the template is not UTF-8");
  return Lexer(source).run();
}

}  // namespace gen::templates

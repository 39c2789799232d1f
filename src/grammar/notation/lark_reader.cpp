// SPDX-License-Identifier: Apache-2.0
// The lexer of Lark files, see lark_reader.h.
#include "grammar/notation/lark_reader.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "grammar/expression/characters.h"
#include "grammar/base/text_error.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

bool is_in_name(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

class WordReader : TextReader {
 public:
  explicit WordReader(std::string_view text) : TextReader(text) {}

  Result<std::vector<LarkPlace>> read() {
    if (const size_t bad = utf8_valid_prefix(text_); bad < text_.size()) {
      return error_at(text_, bad, "not UTF-8");
    }
    if (text_.size() > UINT32_MAX) return error(Code::kGrammar, "a grammar of 4 GiB or more");
    for (;;) {
      skip();
      place_ = {};
      begin_ = at_;
      if (done()) break;
      GEN_TRY(word());
      place_.begin = static_cast<uint32_t>(begin_);
      if (place_.end == 0) place_.end = static_cast<uint32_t>(at_);
      if (place_.next == 0) place_.next = place_.end;
      words_.push_back(place_);
    }
    place_.begin = place_.end = place_.next = static_cast<uint32_t>(text_.size());
    words_.push_back(place_);
    return std::move(words_);
  }

 private:
  void skip() {
    while (!done()) {
      const char c = peek();
      if (c == '#' || (c == '/' && peek(1) == '/')) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }

  Status word() {
    const char c = peek();
    if (c == '\n') {
      while (peek() == '\n') {
        ++at_;
        skip();
      }
      place_.word = LarkWord::kNewline;
      place_.end = static_cast<uint32_t>(begin_ + 1);
      return {};
    }
    if (c == '"') return string();
    if (c == '/') return regex();
    if (c == '<') return token();
    if (c == '%') return keyword();
    if (c == '@' || is_letter(c) || (c == '_' && is_in_name(peek(1)))) return name();
    if (is_digit(c) || (c == '-' && is_digit(peek(1)))) {
      place_.word = LarkWord::kNumber;
      ++at_;
      while (is_digit(peek())) ++at_;
      if (peek() == '.' && is_digit(peek(1))) {
        ++at_;
        while (is_digit(peek())) ++at_;
      }
      return {};
    }
    place_.word = LarkWord::kSign;
    if (take("..") || take("->") || take("::")) return {};
    if (std::string_view(":=,.()[]{}|~&*+?!_").find(c) == std::string_view::npos) {
      size_t end = at_;
      static_cast<void>(utf8_next(text_, &end));
      return fail("unexpected " + quoted(text_.substr(at_, end - at_)));
    }
    ++at_;
    return {};
  }

  Status string() {
    place_.word = LarkWord::kString;
    for (++at_; peek() != '"'; ++at_) {
      if (peek() == '\\') ++at_;
      if (done() || peek() == '\n') return error_at(text_, begin_, "text without its end quote");
    }
    ++at_;
    if (peek() == 'i' && !is_in_name(peek(1))) ++at_;
    return {};
  }

  Status regex() {
    place_.word = LarkWord::kRegex;
    for (++at_; peek() != '/'; ++at_) {
      if (peek() == '\\') ++at_;
      if (done()) return error_at(text_, begin_, "a regular expression without its end /");
    }
    for (++at_; is_letter(peek()); ++at_) {
    }
    return {};
  }

  Status token() {
    place_.word = LarkWord::kToken;
    const size_t end = text_.find_first_of("> \t\r\n", at_);
    if (end == std::string_view::npos || text_[end] != '>' || end == at_ + 1) {
      return error_at(text_, begin_, "token without its >");
    }
    at_ = end + 1;
    return {};
  }

  Status keyword() {
    place_.word = LarkWord::kKeyword;
    for (++at_; is_letter(peek()); ++at_) {
    }
    const std::string_view name = text_.substr(begin_, at_ - begin_);
    if (name != "%json" && name != "%regex" && name != "%llguidance") return {};
    place_.end = static_cast<uint32_t>(at_);
    GEN_TRY(pass_value());
    place_.next = static_cast<uint32_t>(at_);
    return {};
  }

  // Skips a JSON object or array, only to find its end.
  Status pass_value() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n') ++at_;
    const size_t begin = at_;
    size_t depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        const size_t quote = at_;
        for (++at_; peek() != '"'; ++at_) {
          if (peek() == '\\') ++at_;
          if (done()) return error_at(text_, quote, "text without its end quote");
        }
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth > 0) --depth;
      } else if (depth == 0) {
        return fail("expected a JSON object");
      }
      ++at_;
      if (done() && depth > 0) return error_at(text_, begin, "JSON without its end");
    } while (depth > 0);
    return {};
  }

  // Letters of one case; a - that does not begin an arrow.
  Status name() {
    if (peek() == '@') {
      place_.word = LarkWord::kGrammar;
      ++at_;
    }
    bool lower = false;
    bool upper = false;
    for (; is_in_name(peek()) || (peek() == '-' && peek(1) != '>'); ++at_) {
      if (is_upper(peek())) {
        upper = true;
      } else if (is_letter(peek())) {
        lower = true;
      }
    }
    if (place_.word == LarkWord::kGrammar) return {};
    if (lower && upper) {
      return error_at(text_, begin_,
                      quoted(text_.substr(begin_, at_ - begin_)) +
                          " is neither a rule, in lower case, nor a terminal, in upper case");
    }
    if (!lower && !upper) return error_at(text_, begin_, "a name without a letter");
    place_.word = upper ? LarkWord::kTerminal : LarkWord::kRule;
    return {};
  }

  LarkPlace place_;
  size_t begin_ = 0;
  std::vector<LarkPlace> words_;
};

class StringReader : TextReader {
 public:
  StringReader(std::string_view text, const LarkPlace& place)
      : TextReader(text.substr(0, place.end)), begin_(place.begin) {
    at_ = begin_ + 1;
  }

  Result<LarkString> read() {
    LarkString made;
    while (!take("\"")) {
      if (peek() != '\\') {
        made.text += text_[at_++];
        continue;
      }
      GEN_ASSIGN(const uint32_t value, escape());
      utf8_append(value, &made.text);
    }
    made.any_case = take("i");
    return made;
  }

 private:
  Result<uint32_t> escape() {
    const size_t begin = at_++;
    const char c = peek();
    ++at_;
    constexpr std::string_view kLetters = "\"\\/'bfnrtva";
    constexpr std::string_view kMeaning = "\"\\/'\b\f\n\r\t\v\a";
    if (const size_t which = kLetters.find(c); which != std::string_view::npos) {
      return static_cast<uint32_t>(kMeaning[which]);
    }
    const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) return unknown_escape(text_, begin, c);
    GEN_ASSIGN(uint32_t value, hexadecimal(digits));
    if (value >= 0xD800 && value <= 0xDBFF && digits == 4 && take("\\u")) {
      GEN_ASSIGN(const uint32_t low, hexadecimal(4));
      if (low >= 0xDC00 && low <= 0xDFFF) {
        return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (value > kLastCharacter || (value >= 0xD800 && value <= 0xDFFF)) {
      return error_at(text_, begin, "no Unicode character");
    }
    return value;
  }

  const size_t begin_;
};

}  // namespace

Result<std::vector<LarkPlace>> read_lark(std::string_view text) { return WordReader(text).read(); }

Result<LarkString> lark_string(std::string_view text, const LarkPlace& place) {
  return StringReader(text, place).read();
}

Result<LarkPattern> lark_pattern(std::string_view text, const LarkPlace& place) {
  LarkPattern made;
  made.begin = place.begin + size_t{1};
  made.end = text.substr(0, place.end).rfind('/');
  for (size_t i = made.end + 1; i < place.end; ++i) {
    switch (text[i]) {
      case 'i':
        made.flags.any_case = true;
        break;
      case 's':
        made.flags.dot_is_all = true;
        break;
      case 'x':
        made.flags.spaces_ignored = true;
        break;
      case 'm':  // for ^ and $, which are refused
      case 'u':  // always on
        break;
      default:
        return error_at(text, i, "the flag " + quoted(text.substr(i, 1)) + " is not supported");
    }
  }
  return made;
}

}  // namespace gen::grammar

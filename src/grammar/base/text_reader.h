// SPDX-License-Identifier: Apache-2.0
// A cursor in a text: shared by the parsers of grammar notations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/base/text_error.h"

namespace gen::grammar {

inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

inline bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

 protected:
  [[nodiscard]] bool done() const noexcept { return at_ >= text_.size(); }
  /// NUL beyond the end.
  [[nodiscard]] char peek(size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view word) noexcept {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  [[nodiscard]] Status fail(const std::string& message) const {
    return error_at(text_, at_, message);
  }

  /// Reads exactly `digits` digits.
  Result<uint32_t> hexadecimal(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const char lower = static_cast<char>(c | 0x20);
      if (is_digit(c)) {
        value = value * 16 + static_cast<uint32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
      } else {
        return fail("expected " + std::to_string(digits) + " hexadecimal digits");
      }
    }
    return value;
  }

  Result<uint32_t> number(uint32_t most) {
    if (!is_digit(peek())) return fail("expected a number");
    const size_t begin = at_;
    uint64_t value = 0;
    for (; is_digit(peek()); ++at_) {
      value = value * 10 + static_cast<uint64_t>(peek() - '0');
      if (value > most) return error_at(text_, begin, "number above " + std::to_string(most));
    }
    return static_cast<uint32_t>(value);
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// Maximum number of repetitions in a notation.
inline constexpr uint32_t kMaxRepetitions = 1U << 30;

}  // namespace gen::grammar

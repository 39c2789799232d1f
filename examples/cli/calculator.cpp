// SPDX-License-Identifier: Apache-2.0
// See calculator.h.
#include "calculator.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace cli {
namespace {

constexpr int kMaxDepth = 100;

class Calculation {
 public:
  explicit Calculation(const std::string& text) : text_(text) {}

  double run() {
    const double value = sum(0);
    if (peek() != '\0') fail("'" + std::string(1, peek()) + "' was not expected");
    if (!std::isfinite(value)) fail("the result is no number");
    return value;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw std::invalid_argument(what); }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(char byte) {
    if (peek() != byte) return false;
    ++at_;
    return true;
  }

  double sum(int depth) {
    double value = product(depth);
    for (;;) {
      if (takes('+')) {
        value += product(depth);
      } else if (takes('-')) {
        value -= product(depth);
      } else {
        return value;
      }
    }
  }

  double product(int depth) {
    double value = factor(depth);
    for (;;) {
      if (takes('*')) {
        value *= factor(depth);
      } else if (takes('/')) {
        const double by = factor(depth);
        if (by == 0) fail("division by zero");
        value /= by;
      } else {
        return value;
      }
    }
  }

  double factor(int depth) {
    if (depth > kMaxDepth) fail("the expression is nested too deeply");
    if (takes('-')) return -factor(depth + 1);
    if (takes('(')) {
      const double value = sum(depth + 1);
      if (!takes(')')) fail("a parenthesis is not closed");
      return value;
    }
    const char first = peek();
    if ((first < '0' || first > '9') && first != '.') {
      fail(first == '\0' ? "the expression is incomplete"
                         : "'" + std::string(1, first) + "' was not expected");
    }
    char* end = nullptr;
    const double value = std::strtod(text_.c_str() + at_, &end);
    at_ = static_cast<size_t>(end - text_.c_str());
    return value;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

std::string calculate(const std::string& expression) {
  const double value = Calculation(expression).run();
  char text[40];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

}  // namespace cli

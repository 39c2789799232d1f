// SPDX-License-Identifier: Apache-2.0
// The format "regex": patterns of ECMA-262 as the flag u reads them, themselves as a pattern. That
// syntax is not regular, so only a part of it is described; all of that part is valid. Left out:
// groups more than kMostNested deep, looks ahead or behind in a group or a look, back references,
// names of groups, "\0", {n,m} whose n has three digits or more, properties other than categories,
// and ranges of characters that start at an escape other than \uXXXX or beyond ASCII.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/schema/format.h"

namespace gen::grammar {
namespace {

constexpr int kMostNested = 3;

std::string hex(int count) { return "[0-9A-Fa-f]{" + std::to_string(count) + "}"; }

// What may follow a backslash, in a class and outside.
std::string escape() {
  return "(?:[dDsSwWfnrtv^$\\\\.*+?()\\[\\]{}|/]|c[A-Za-z]|x" + hex(2) + "|u" + hex(4) +
         "|u\\{0*(?:" + hex(1) + "{1,5}|10" + hex(4) +
         ")\\}|[pP]\\{(?:L[ulmto]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfson]?)\\})";
}

std::string code(char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto value = static_cast<unsigned>(c);
  return {'\\', 'x', kDigits[value >> 4U], kDigits[value & 15U]};
}

// From one character of ASCII to one that is not before it.
std::string ranges() {
  std::string all;
  for (char c = ' '; c < '~'; ++c) {
    if (c == '-' || c == '\\' || c == ']') continue;
    all += code(c) + "-[";
    // Those from there on that stand for themselves.
    for (const auto& [from, to] : {std::pair(' ', ','), std::pair('.', '['), std::pair('^', '~')}) {
      if (c <= to) all += code(std::max(c, from)) + "-" + code(to);
    }
    all += "\\u0080-\\u{10FFFF}]|";
  }
  // By their first digit alone; behind what begins with D may stand one half of a pair.
  for (int digit = 0; digit < 15; ++digit) {
    if (digit == 13) continue;
    const auto set = [](int from, int to) {
      std::string made = "[";
      for (int d = from; d <= to; ++d) {
        made += "0123456789ABCDEF"[d];
        if (d > 9) made += "0123456789abcdef"[d];
      }
      return made + "]";
    };
    all += "\\\\u" + set(digit, digit) + hex(3) + "-\\\\u" + set(digit + 1, 15) + hex(3) + "|";
  }
  all.pop_back();
  return all;
}

std::string character_class() {
  return "\\[\\^?-?(?:[^\\]\\\\-]|\\\\(?:[b-]|" + escape() + ")|" + ranges() + ")*-?\\]";
}

std::string quantifier() {
  std::string counts = "[0-9]+(?:,)?";
  for (int n = 0; n < 10; ++n) {
    const std::string digit = std::to_string(n);
    counts += "|" + digit + ",(?:[" + digit + "-9]|[1-9][0-9]+)";
    if (n == 0) continue;
    if (n < 9) {
      counts += "|" + digit + "[0-9],[" + std::to_string(n + 1) + "-9][0-9]";
    }
    counts += "|" + digit + "[0-9],[1-9][0-9]{2,}";
    for (int unit = 0; unit < 10; ++unit) {
      const std::string tens = digit + std::to_string(unit);
      counts += "|" + tens + "," + digit + "[" + std::to_string(unit) + "-9]";
    }
  }
  return "(?:(?:[*+?]|\\{(?:" + counts +
         ")\\})\\?"
         "?)?";
}

// A pattern of groups so many deep; `more`: what else may be in it.
std::string pattern_text(int depth, const std::string& atom, const std::string& more) {
  const std::string quantified = quantifier();
  std::string all = "(?:(?:" + atom;
  if (depth > 0) all += "|\\((?:\\?:)?" + pattern_text(depth - 1, atom, "") + "\\)";
  return all + ")" + quantified + "|[|^$]|\\\\[bB]" + more + ")*";
}

}  // namespace

std::string regex_syntax() {
  const std::string atom =
      "[^\\^$\\\\.*+?()\\[\\]{}|]|\\.|\\\\" + escape() + "|" + character_class();
  const std::string look = "|\\(\\?<?[=!]" + pattern_text(kMostNested - 1, atom, "") + "\\)";
  return pattern_text(kMostNested, atom, look);
}

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// Tokens of the vocabulary, see lark_tokens.h.
#include "grammar/notation/lark_tokens.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/base/text_error.h"
#include "grammar/base/text_reader.h"

namespace gen::grammar {
namespace {

// Sorted and merged.
std::vector<TokenRange> joined(std::vector<TokenRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const TokenRange& a, const TokenRange& b) { return a.low < b.low; });
  std::vector<TokenRange> made;
  for (const TokenRange& range : ranges) {
    if (!made.empty() && range.low - 1 <= made.back().high) {
      made.back().high = std::max(made.back().high, range.high);
    } else {
      made.push_back(range);
    }
  }
  return made;
}

class IdReader : TextReader {
 public:
  IdReader(std::string_view text, const LarkPlace& place) : TextReader(text.substr(0, place.end)) {
    at_ = place.begin + 2;
  }

  Result<TokenTerm> read() {
    TokenTerm term;
    term.negated = take("^");
    if (!term.negated && take("*")) {
      if (!take("]>")) return fail("expected ]>");
      term.negated = true;  // any token: the negation of none
      return term;
    }
    do {
      const size_t begin = at_;
      GEN_ASSIGN(const uint32_t low, number(INT32_MAX));
      uint32_t high = low;
      if (take("-")) {
        GEN_ASSIGN(high, number(INT32_MAX));
      }
      if (high < low) return error_at(text_, begin, "range ends before it begins");
      term.ranges.push_back({static_cast<int32_t>(low), static_cast<int32_t>(high)});
    } while (take(","));
    if (!take("]>")) return fail("expected ]>");
    term.ranges = joined(std::move(term.ranges));
    return term;
  }
};

}  // namespace

Result<TokenTerm> lark_token(std::string_view text, const LarkPlace& place) {
  if (text[place.begin + 1] == '[') return IdReader(text, place).read();
  TokenTerm term;
  term.name = text.substr(place.begin, place.end - place.begin);
  return term;
}

}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// Texts as grammars in GBNF, as Lark files, as regular expressions, as structural tags. Nothing may
// crash or trip a sanitizer; failures are of one line; and what compiles keeps the promises of a
// matcher: a token is accepted exactly if its bit is set, the end exactly if the text is complete,
// and steps taken back lead to the masks that were there; budgets, draft trees and forced tokens
// agree with single steps. The first byte chooses the notation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/grammar_walk.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/notation/tags.h"
#include "grammar/vocabularies.h"

namespace {

using namespace gen::grammar;
using namespace gen::grammar::fuzz;

// Tags: lines of begin, body and end, again and again.
gen::Result<std::shared_ptr<const Grammar>> tags(std::string_view text, unsigned char options) {
  const auto line = [&] {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
  };
  TagOptions chosen;
  chosen.at_least_one = (options & 1) != 0;
  chosen.stop_after_first = (options & 2) != 0;
  chosen.free_text = (options & 4) == 0;
  const auto make = [&](Expressions& to) -> gen::Result<std::vector<Tag>> {
    std::vector<Tag> made;
    while (!text.empty() && made.size() < 8) {
      Tag tag;
      tag.begin = line();
      if (tag.begin == "T") {
        tag.begin.clear();
        tag.begin_token = TokenTerm{false, 28, ""};
      }
      const auto body = parse_regex(line(), RegexMatch::kWhole, to, small().automata);
      if (!body.ok()) return body.status();
      tag.body = body.value();
      tag.end = line();
      made.push_back(std::move(tag));
    }
    return made;
  };
  return Grammar::from_tags(make, chosen, small());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto grammar = data[0] == 4       ? Grammar::from_lark(text, small())
                       : data[0] % 4 == 0 ? Grammar::from_gbnf(text, small())
                       : data[0] % 4 == 1 ? Grammar::from_regex(text, RegexMatch::kWhole, small())
                       : data[0] % 4 == 2 ? Grammar::from_regex(text, RegexMatch::kSearch, small())
                       : data[0] >= 128   ? Grammar::from_tags(text, small())
                                          : tags(text, static_cast<unsigned char>(data[0] >> 2));
  if (!grammar.ok()) {
    require(grammar.status().code() == gen::Code::kGrammar);
    require(std::strlen(grammar.status().message()) > 0);
    require(std::strchr(grammar.status().message(), '\n') == nullptr);
    return 0;
  }
  static const auto vocabulary = test::vocabulary({"a",
                                                   "b",
                                                   "c",
                                                   "ab",
                                                   "abc",
                                                   "0",
                                                   "1",
                                                   "10",
                                                   "\"",
                                                   "\",",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   " ",
                                                   "  ",
                                                   "\n",
                                                   "\xC3",
                                                   "\xA9",
                                                   "\xC3\xA9",
                                                   "\xC3\xA9"
                                                   "a",
                                                   "(",
                                                   ")",
                                                   "+",
                                                   "x",
                                                   "aa",
                                                   "aaa",
                                                   ""},
                                                  2);
  const auto over = grammar.value()->over(vocabulary);
  if (!over.ok()) return 0;
  auto matcher = Matcher::create(over.value());
  if (matcher.ok()) walk(*matcher, text);
  return 0;
}

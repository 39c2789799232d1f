// SPDX-License-Identifier: Apache-2.0
// Texts as grammars in GBNF and as regular expressions. Nothing may crash or trip a sanitizer;
// failures are of one line; and what compiles keeps the promises of a matcher: a token is accepted
// exactly if its bit is set, the end exactly if the text is complete, and steps taken back lead to
// the masks that were there. The first byte chooses the notation.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/vocabularies.h"

namespace {

using namespace gen::grammar;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

// Of this size a hostile grammar is still walked in a fraction of a second.
GrammarLimits small() {
  GrammarLimits limits;
  limits.edges = 50'000;
  limits.masks.items = 500;
  limits.masks.work = 20'000;
  return limits;
}

bool mask_of(const Matcher& matcher, std::vector<uint64_t>* mask) {
  mask->assign(matcher.grammar().vocabulary().words(), 0);
  const gen::Status status = matcher.mask(*mask);
  require(status.ok() || status.code() == gen::Code::kGrammar);
  return status.ok();
}

void walk(Matcher& matcher, std::string_view choices) {
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  std::vector<std::vector<uint64_t>> masks(1);
  if (!mask_of(matcher, &masks[0])) return;
  for (const char choice : choices.substr(0, 12)) {
    std::vector<int32_t> open;
    for (int32_t token = 0; token < vocabulary.size(); ++token) {
      const bool allowed = test::has(masks.back(), token);
      Matcher other = matcher.fork();
      const auto taken = other.accept_token(token);
      require(!taken.ok() || taken.value() == allowed);
      if (allowed && !vocabulary.is_end(token)) open.push_back(token);
      if (vocabulary.is_end(token)) require(allowed == matcher.is_complete());
    }
    require(!matcher.is_finished() || open.empty());
    if (open.empty()) break;
    const auto taken = matcher.accept_token(open[static_cast<unsigned char>(choice) % open.size()]);
    if (!taken.ok()) break;
    require(taken.value());
    require(matcher.is_complete() || matcher.min_bytes() > 0 ||
            !matcher.grammar().machines().terms.empty());
    masks.emplace_back();
    if (!mask_of(matcher, &masks.back())) return;
  }
  std::vector<uint64_t> mask;
  while (matcher.accepted() > 0) {
    require(matcher.rollback(1).ok());
    if (!mask_of(matcher, &mask)) return;
    require(mask == masks[matcher.accepted()]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto grammar = data[0] % 3 == 0   ? Grammar::from_gbnf(text, small())
                       : data[0] % 3 == 1 ? Grammar::from_regex(text, RegexMatch::kWhole, small())
                                          : Grammar::from_regex(text, RegexMatch::kSearch, small());
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

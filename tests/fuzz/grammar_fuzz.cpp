// SPDX-License-Identifier: Apache-2.0
// Texts as grammars in GBNF, as regular expressions, as structural tags. Nothing may crash or trip
// a sanitizer; failures are of one line; and what compiles keeps the promises of a matcher: a token
// is accepted exactly if its bit is set, the end exactly if the text is complete, and steps taken
// back lead to the masks that were there; budgets, draft trees and forced tokens agree with single
// steps. The first byte chooses the notation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/tags.h"
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
  limits.automata.states = 500;
  limits.automata.work = 500'000;
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

// Looking ahead says what going there says.
void look_ahead(Matcher& matcher, const std::vector<uint64_t>& mask, unsigned char choice) {
  const Vocabulary& vocabulary = matcher.grammar().vocabulary();
  const FewestTokens fewest = matcher.min_tokens(5'000);
  require((fewest.tokens == 0) == matcher.is_complete());
  std::vector<uint64_t> within(vocabulary.words());
  const auto fits = matcher.mask_within(choice % 8, within);
  if (!fits.ok()) return;
  for (size_t word = 0; word < mask.size(); ++word) require((within[word] & ~mask[word]) == 0);
  if (fewest.exact && fewest.tokens <= choice % 8) require(fits.value());
  const int32_t first = choice % vocabulary.size();
  const int32_t second = choice / 7 % vocabulary.size();
  const std::vector<int32_t> parents = {-1, 0, -1};
  const std::vector<int32_t> tokens = {first, second, second};
  std::vector<uint64_t> rows(3 * vocabulary.words());
  if (matcher.masks_of_tree(parents, tokens, rows).ok()) {
    Matcher other = matcher.fork();
    std::vector<uint64_t> expected(vocabulary.words(), 0);
    const auto taken = other.accept_token(first);
    require(taken.ok());
    if (taken.value() && !mask_of(other, &expected)) return;
    for (size_t word = 0; word < expected.size(); ++word) require(rows[word] == expected[word]);
  }
  const auto forced = matcher.forced_tokens(3);
  if (forced.ok()) {
    Matcher other = matcher.fork();
    for (const int32_t token : forced.value()) require(other.accept_token(token).value());
  }
}

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
    look_ahead(matcher, masks.back(), static_cast<unsigned char>(choice));
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
  const auto grammar = data[0] % 4 == 0   ? Grammar::from_gbnf(text, small())
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

// SPDX-License-Identifier: Apache-2.0
// What a matcher says of several tokens ahead is what trying all of them says: fewest tokens to the
// end, masks within a budget, masks of draft trees; and forced tokens are the tokenizer's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/slow_grammar.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"
#include "tokenizer/vocabularies.h"

namespace gen::grammar {
namespace {

using test::SlowGrammar;
using test::Symbols;

// Few tokens, so that all ways of a few of them can be tried.
std::vector<std::string> few_texts(std::mt19937& random) {
  std::vector<std::string> texts = {"a", "!", ",", "\xC3", "\xA9"};
  static const char* const kMore[] = {"a!", "aa", "!,", ",a!", "\xC3\xA9", "!!", ",a"};
  for (const char* text : kMore) {
    if (random() % 2 == 0) texts.emplace_back(text);
  }
  return texts;
}

Symbols with(const Vocabulary& vocabulary, Symbols text, int32_t token) {
  for (const char c : vocabulary.bytes(token)) text.push_back(static_cast<unsigned char>(c));
  if (vocabulary.bytes(token).empty()) text.push_back(test::kTokenSymbol + token);
  return text;
}

// Fewest tokens (or, with `single`, bytes and named tokens) behind `text`, by trying them all.
uint64_t fewest(const SlowGrammar& slow, const Vocabulary& vocabulary, const Symbols& text,
                uint64_t most, bool single) {
  std::vector<Symbols> open = {text};
  for (uint64_t count = 0; count <= most; ++count) {
    std::vector<Symbols> next;
    for (const Symbols& one : open) {
      if (slow.ask(one).member) return count;
      if (count == most) continue;
      for (int32_t token = 0; token < vocabulary.size(); ++token) {
        if (vocabulary.is_end(token)) continue;
        if (single && vocabulary.bytes(token).size() > 1) continue;
        Symbols longer = with(vocabulary, one, token);
        if (slow.ask(longer).prefix) next.push_back(std::move(longer));
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    open = std::move(next);
    if (open.size() > 100) break;
  }
  return kNoWay;
}

std::vector<uint64_t> mask_of(const Matcher& matcher) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words());
  EXPECT_TRUE(matcher.mask(mask).ok());
  return mask;
}

int32_t pick(const std::vector<uint64_t>& mask, std::mt19937& random, int32_t end) {
  std::vector<int32_t> open;
  for (int32_t token = 0; token < end; ++token) {
    if (test::has(mask, token)) open.push_back(token);
  }
  return open.empty() ? -1 : open[random() % open.size()];
}

TEST(TokensAhead, FewestAndBudgetsAreWhatTryingSays) {
  std::mt19937 random(11);
  int compared = 0;
  int steered = 0;
  for (int round = 0; round < (gen::test::kSanitized ? 5 : 60); ++round) {
    const auto texts = few_texts(random);
    const auto vocabulary = test::vocabulary(texts, 1);
    const SlowGrammar slow = test::RandomGrammar(random, static_cast<int>(texts.size()), 1).make();
    SCOPED_TRACE(slow.gbnf());
    const auto grammar = Grammar::from_gbnf(slow.gbnf());
    if (!grammar.ok()) continue;
    auto made = Matcher::create(grammar.value()->over(vocabulary).value());
    ASSERT_TRUE(made.ok());
    Matcher& matcher = *made;
    Symbols text;
    for (int step = 0; step < 4; ++step) {
      const uint64_t tokens = fewest(slow, *vocabulary, text, 4, false);
      const FewestTokens ours = matcher.min_tokens();
      if (tokens != kNoWay) {
        ASSERT_TRUE(ours.exact);
        ASSERT_EQ(ours.tokens, tokens);
        ++compared;
      } else {
        EXPECT_GT(ours.tokens, 1U);
      }
      EXPECT_GE(matcher.min_tokens(0).tokens, ours.tokens);
      // By bytes: exactly the tokens that leave enough.
      const uint64_t bytes = fewest(slow, *vocabulary, text, 4, true);
      if (bytes != kNoWay) {
        EXPECT_EQ(matcher.min_bytes(), bytes);
      }
      const auto all = mask_of(matcher);
      for (uint64_t budget = 0; budget < 4; ++budget) {
        std::vector<uint64_t> mask(vocabulary->words());
        const auto within = matcher.mask_within(budget, mask);
        ASSERT_TRUE(within.ok());
        if (tokens != kNoWay) {
          EXPECT_EQ(within.value(), tokens <= budget);
        }
        if (!within.value()) {
          EXPECT_EQ(mask, all);
          continue;
        }
        bool any = false;
        for (int32_t token = 0; token < vocabulary->size(); ++token) {
          if (vocabulary->is_end(token)) {
            EXPECT_EQ(test::has(mask, token), matcher.is_complete());
            continue;
          }
          const Symbols longer = with(*vocabulary, text, token);
          const bool fits = budget > 0 && slow.ask(longer).prefix &&
                            fewest(slow, *vocabulary, longer, budget - 1, true) != kNoWay;
          if (fits) {
            EXPECT_TRUE(test::has(mask, token)) << token << " budget " << budget;
          }
          any |= fits;
        }
        for (int32_t token = 0; any && token < vocabulary->ends()[0]; ++token) {
          if (!test::has(mask, token)) continue;
          EXPECT_NE(fewest(slow, *vocabulary, with(*vocabulary, text, token), budget - 1, true),
                    kNoWay)
              << token << " budget " << budget;
        }
      }
      if (testing::Test::HasFailure()) return;
      const int32_t token = pick(all, random, vocabulary->ends()[0]);
      if (token < 0) break;
      text = with(*vocabulary, text, token);
      ASSERT_TRUE(matcher.accept_token(token).value());
    }
    // Whatever is chosen within a budget, the text ends within it.
    matcher.reset();
    const FewestTokens least = matcher.min_tokens();
    if (!least.exact || least.tokens > 40) continue;
    uint64_t budget = least.tokens + random() % 4;
    std::vector<uint64_t> mask(vocabulary->words());
    for (;;) {
      ASSERT_TRUE(matcher.mask_within(budget, mask).value());
      const int32_t token = pick(mask, random, vocabulary->ends()[0]);
      if (token < 0) break;
      ASSERT_GT(budget, 0U);
      --budget;
      ASSERT_TRUE(matcher.accept_token(token).value());
      ++steered;
    }
    ASSERT_TRUE(matcher.is_complete());
  }
  EXPECT_GT(compared, gen::test::kSanitized ? 3 : 60);
  EXPECT_GT(steered, gen::test::kSanitized ? 3 : 60);
}

TEST(TokensAhead, TheWayOfFewestBytesNeedNotBeThatOfFewestTokens) {
  const auto vocabulary = test::vocabulary({"a", "bbbb", "b", "cc"});
  const auto grammar = Grammar::from_gbnf("root ::= \"aaa\" | \"bbbbbbbb\" | \"cc\"{4}").value();
  Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
  EXPECT_EQ(matcher.min_bytes(), 3U);
  EXPECT_EQ(matcher.min_tokens(0).tokens, 3U);
  EXPECT_FALSE(matcher.min_tokens(0).exact);
  EXPECT_EQ(matcher.min_tokens().tokens, 2U);
  EXPECT_TRUE(matcher.min_tokens().exact);
  std::vector<uint64_t> mask(1);
  EXPECT_TRUE(matcher.mask_within(2, mask).value());
  EXPECT_EQ(mask[0], 2U);  // bbbb
  EXPECT_FALSE(matcher.mask_within(1, mask).value());
  EXPECT_EQ(mask[0], 15U);
}

// The rest has more bytes than tokens are left, but its own tokens are few: what comes before it is
// still free, and the text ends in time whatever is drawn.
TEST(TokensAhead, TextsOfLongTokensLeaveRoomForOthers) {
  std::vector<std::string> texts = test::all_bytes();
  texts.emplace_back("\", \"description_of_the_problem\": \"");
  texts.emplace_back("ab");
  const auto vocabulary = test::vocabulary(texts);
  const auto grammar =
      Grammar::from_gbnf(
          "root ::= s n s n s n s e\ns ::= [a-z]*\n"
          "n ::= \"\\\", \\\"description_of_the_problem\\\": \\\"\"\ne ::= \"\\\"\"")
          .value();
  Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
  std::vector<uint64_t> mask(vocabulary->words());
  const std::array<uint64_t, 4> budgets = {4, 5, 12, 30};  // the shortest text: 4 tokens, 97 bytes
  for (const uint64_t budget : budgets) {
    matcher.reset();
    ASSERT_EQ(matcher.min_tokens(0).tokens, 4U);
    ASSERT_TRUE(matcher.mask_within(budget, mask).value());
    EXPECT_EQ(test::has(mask, 'x'), budget > 4) << budget;
    EXPECT_EQ(test::has(mask, 257), budget > 4) << budget;
    std::mt19937 random(static_cast<uint32_t>(budget));
    for (int round = 0; round < 10; ++round) {
      matcher.reset();
      uint64_t left = budget;
      while (!matcher.is_finished()) {
        ASSERT_TRUE(matcher.mask_within(left, mask).value()) << budget << " " << left;
        const int32_t token = pick(mask, random, 258);
        ASSERT_GE(token, 0);
        ASSERT_GT(left--, 0U);
        ASSERT_TRUE(matcher.accept_token(token).value());
      }
    }
  }
}

// A token that ends the body of a counted loop and begins it anew leaves all the rest of it to
// come.
TEST(TokensAhead, BudgetsHeedWhatBodiesOfLoopsBegin) {
  const auto vocabulary = test::vocabulary({"y", "yx", "ya", "yxya", "yxyx", "!"});
  const auto grammar = Grammar::from_gbnf("root ::= (\"xy\" | \"abcdefgh\"){0,50} \"!\"").value();
  Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
  ASSERT_TRUE(matcher.accept_bytes("x").value());
  std::vector<uint64_t> mask(1);
  EXPECT_TRUE(matcher.mask_within(3, mask).value());
  EXPECT_EQ(mask[0], 0b010011U);  // y, yx and yxyx, behind which y! is enough
  EXPECT_TRUE(matcher.mask_within(20, mask).value());
  EXPECT_EQ(mask[0], 0b011111U);
}

TEST(TokensAhead, ShortestTextsKeepToTheLimitOfWork) {
  const auto vocabulary = test::vocabulary(test::all_bytes());
  for (const uint64_t work : {uint64_t{2000}, uint64_t{1} << 24U}) {
    GrammarLimits limits;
    limits.masks.work = work;
    const auto grammar = Grammar::from_gbnf("root ::= \"a\" root \"b\" | \"c\"", limits).value();
    Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
    ASSERT_TRUE(matcher.accept_bytes(std::string(5000, 'a')).value());
    const uint64_t tokens = matcher.min_tokens(0).tokens;
    if (work < 5000) {
      EXPECT_EQ(tokens, kNoWay);
    } else {
      EXPECT_EQ(tokens, 5001U);
    }
    EXPECT_TRUE(matcher.accept_bytes("cb").value());  // as it was before
  }
}

TEST(TokensAhead, LongBudgets) {
  const auto vocabulary = test::vocabulary(test::all_bytes());
  const auto grammar = Grammar::any_json().value();
  Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    matcher.reset();
    std::vector<uint64_t> mask(vocabulary->words());
    uint64_t budget = 60;
    while (!matcher.is_finished()) {
      ASSERT_TRUE(matcher.mask_within(budget, mask).value());
      const int32_t token = pick(mask, random, 256);
      if (token < 0) break;
      ASSERT_GT(budget--, 0U);
      ASSERT_TRUE(matcher.accept_token(token).value());
    }
    EXPECT_TRUE(matcher.is_complete());
  }
  matcher.reset();
  ASSERT_TRUE(matcher.accept_bytes(std::string(50'000, '[')).value());
  EXPECT_EQ(matcher.min_tokens(0).tokens, 50'000U);
}

TEST(TokensAhead, TreesAreWhatSingleWaysAre) {
  std::mt19937 random(5);
  for (int round = 0; round < (gen::test::kSanitized ? 30 : 300); ++round) {
    const auto texts = few_texts(random);
    const auto vocabulary = test::vocabulary(texts, 1);
    const SlowGrammar slow = test::RandomGrammar(random, static_cast<int>(texts.size()), 1).make();
    const auto grammar = Grammar::from_gbnf(slow.gbnf());
    if (!grammar.ok()) continue;
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    const int32_t first = pick(mask_of(matcher), random, vocabulary->ends()[0]);
    if (first >= 0) {
      ASSERT_TRUE(matcher.accept_token(first).value());
    }
    const Matcher shared = matcher.fork();
    const size_t count = random() % 12;
    std::vector<int32_t> parents;
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < count; ++i) {
      parents.push_back(static_cast<int32_t>(random() % (i + 1)) - 1);
      tokens.push_back(static_cast<int32_t>(random() % static_cast<size_t>(vocabulary->size())));
    }
    const size_t words = vocabulary->words();
    std::vector<uint64_t> bits(count * words, ~uint64_t{0});
    const auto before = mask_of(matcher);
    ASSERT_TRUE(matcher.masks_of_tree(parents, tokens, bits).ok());
    EXPECT_EQ(mask_of(matcher), before);
    for (size_t i = 0; i < count; ++i) {
      std::vector<int32_t> way;
      for (auto at = static_cast<int32_t>(i); at >= 0; at = parents[static_cast<size_t>(at)]) {
        way.insert(way.begin(), tokens[static_cast<size_t>(at)]);
      }
      Matcher other = shared.fork();
      bool alive = true;
      for (const int32_t token : way) alive = alive && other.accept_token(token).value();
      const std::vector<uint64_t> expected =
          alive ? mask_of(other) : std::vector<uint64_t>(words, 0);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                             bits.begin() + static_cast<ptrdiff_t>(i * words)));
    }
  }
  const auto vocabulary = test::vocabulary({"a"});
  Matcher matcher =
      Matcher::create(Grammar::from_gbnf("root ::= \"a\"").value()->over(vocabulary).value())
          .value();
  std::vector<uint64_t> bits(2);
  const std::vector<int32_t> tokens = {0, 0};
  EXPECT_EQ(matcher.masks_of_tree(std::vector<int32_t>{-1, 1}, tokens, bits).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(matcher.masks_of_tree(std::vector<int32_t>{-1}, tokens, bits).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      matcher.masks_of_tree(std::vector<int32_t>{-1, 0}, std::vector<int32_t>{0, 2}, bits).code(),
      Code::kOutOfRange);
  EXPECT_EQ(matcher.accepted(), 0U);
}

TEST(TokensAhead, TokensThatAreTheOnlyOnes) {
  const auto vocabulary = test::vocabulary({"a", "b", "bc", "d"}, 1);
  const auto grammar = Grammar::from_gbnf("root ::= \"a\" <[4]> \"d\" [bd] \"a\"").value();
  Matcher matcher = Matcher::create(grammar->over(vocabulary).value()).value();
  EXPECT_EQ(matcher.forced_tokens(9).value(), (std::vector<int32_t>{0, 4, 3}));
  EXPECT_EQ(matcher.forced_tokens(2).value(), (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(matcher.accepted(), 0U);
  ASSERT_TRUE(matcher.accept_token(0).value());
  EXPECT_EQ(matcher.forced_tokens(9).value(), (std::vector<int32_t>{4, 3}));
}

// 256 "na", 257 "me", 258 "name", 259 "\":", 260 " \"".
TEST(TokensAhead, ForcedTokensAreTheTokenizers) {
  const auto tokenizer = tokenizer::test::must_create(
      tokenizer::test::bpe_vocab({"n a", "m e", "na me", "\" :", "\xC4\xA0 \""}));
  ASSERT_NE(tokenizer, nullptr);
  const auto vocabulary = Vocabulary::create(*tokenizer).value();
  const auto forced = [&](const char* source, std::string_view before = "") {
    const auto grammar = Grammar::from_gbnf(source);
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    EXPECT_TRUE(matcher.accept_bytes(before).value());
    return matcher.forced_tokens(*tokenizer, tokenizer::kInText, 1000).value();
  };
  using Ids = std::vector<int32_t>;
  // At the end of all nothing can join the last.
  EXPECT_EQ(forced("root ::= \"{\\\"name\\\": \\\"\""), (Ids{'{', '"', 258, 259, 260}));
  EXPECT_EQ(forced("root ::= \"name\""), (Ids{258}));
  // "na" may become "name", and of " " may become " \"".
  EXPECT_EQ(forced("root ::= \"name: \" [a-z]"), (Ids{258, ':'}));
  EXPECT_EQ(forced("root ::= \"xna\" [a-z]"), (Ids{'x'}));
  EXPECT_EQ(forced("root ::= \"xname\" [a-z]"), (Ids{'x', 258}));
  EXPECT_EQ(forced("root ::= \"xname\" [a-z]", "xna"), (Ids{257}));
  EXPECT_EQ(forced("root ::= [ab]"), (Ids{}));
}

}  // namespace
}  // namespace gen::grammar

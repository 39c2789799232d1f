// SPDX-License-Identifier: Apache-2.0
// What a matcher promises beside exact masks: nothing changes on failure, ways back, forks, forced
// and valid bytes, the shortest way to the end; and bounded time and memory for hostile grammars.
#include "grammar/matcher/matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

constexpr int32_t kEndToken = 256;

std::shared_ptr<const Grammar> grammar(const std::string& source,
                                       const GrammarLimits& limits = {}) {
  const auto made = Grammar::from_gbnf(source, limits);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.value();
}

Matcher matcher(const std::shared_ptr<const Grammar>& grammar) {
  return Matcher::create(grammar->over(test::vocabulary(test::all_bytes())).value()).value();
}

Matcher matcher(const std::string& source) { return matcher(grammar(source)); }

std::vector<uint64_t> mask_of(const Matcher& matcher) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words());
  EXPECT_TRUE(matcher.mask(mask).ok());
  return mask;
}

TEST(Matcher, RejectionChangesNothing) {
  Matcher one = matcher("root ::= \"abc\" [0-9]+");
  EXPECT_TRUE(one.accept_bytes("ab").value());
  const auto before = mask_of(one);
  EXPECT_FALSE(one.accept_bytes("cx").value());
  EXPECT_FALSE(one.accept_token('x').value());
  EXPECT_FALSE(one.accept_token(kEndToken).value());
  EXPECT_EQ(one.accept_token(257).status().code(), Code::kOutOfRange);
  EXPECT_EQ(one.accept_token(-1).status().code(), Code::kOutOfRange);
  EXPECT_EQ(one.accepted(), 1U);
  EXPECT_EQ(mask_of(one), before);
  std::vector<uint64_t> small(4);
  EXPECT_EQ(one.mask(small).code(), Code::kInvalidArgument);
  EXPECT_TRUE(one.accept_bytes("c7").value());
}

TEST(Matcher, EndTokens) {
  Matcher one = matcher("root ::= [0-9]+");
  EXPECT_FALSE(one.accept_token(kEndToken).value());
  EXPECT_TRUE(one.accept_token('1').value());
  EXPECT_TRUE(one.is_complete());
  EXPECT_FALSE(one.is_finished());
  EXPECT_TRUE(one.accept_token(kEndToken).value());
  EXPECT_TRUE(one.is_finished());
  EXPECT_FALSE(one.accept_token('1').value());
  EXPECT_FALSE(one.accept_bytes("1").value());
  const auto mask = mask_of(one);  // an end, not nothing
  for (int32_t token = 0; token <= kEndToken; ++token) {
    EXPECT_EQ(test::has(mask, token), token == kEndToken);
  }
  EXPECT_TRUE(one.rollback(1).ok());
  EXPECT_TRUE(one.accept_token('2').value());
  one.reset();
  EXPECT_EQ(one.accepted(), 0U);
  EXPECT_FALSE(one.is_complete());
}

// Where the grammar asks for one, it goes on.
TEST(Matcher, EndTokensAsParts) {
  const std::string end = "<[" + std::to_string(kEndToken) + "]>";
  Matcher one = matcher("root ::= \"a\" (" + end + " \"bcd\")? !<[1]>*");
  EXPECT_FALSE(one.asks_for(kEndToken));
  EXPECT_TRUE(one.accept_token('a').value());
  EXPECT_TRUE(one.is_complete());
  EXPECT_TRUE(one.asks_for(kEndToken));
  EXPECT_FALSE(one.asks_for('z'));  // any but some is none by name
  EXPECT_TRUE(test::has(mask_of(one), kEndToken));
  // Behind it a text is longer than a budget that an end would not touch.
  std::vector<uint64_t> within(mask_of(one).size());
  EXPECT_TRUE(one.mask_within(3, within).value());
  EXPECT_FALSE(test::has(within, kEndToken));
  EXPECT_TRUE(test::has(within, 'z'));
  EXPECT_TRUE(one.mask_within(4, within).value());
  EXPECT_TRUE(test::has(within, kEndToken));
  EXPECT_TRUE(one.accept_token(kEndToken).value());
  EXPECT_FALSE(one.is_complete());
  EXPECT_TRUE(one.accept_bytes("bcd").value());
  EXPECT_FALSE(one.asks_for(kEndToken));
  EXPECT_TRUE(test::has(mask_of(one), kEndToken));
  EXPECT_TRUE(one.accept_token(kEndToken).value());
  EXPECT_TRUE(one.is_finished());
}

TEST(Matcher, ForksGoTheirOwnWays) {
  Matcher one = matcher("root ::= \"(\" root \")\" | \"x\"");
  EXPECT_TRUE(one.accept_bytes("((").value());
  Matcher other = one.fork();
  Matcher third = other.fork();
  EXPECT_TRUE(one.accept_bytes("x))").value());
  EXPECT_TRUE(other.accept_bytes("(x))").value());
  EXPECT_TRUE(one.is_finished());
  EXPECT_FALSE(other.is_complete());
  EXPECT_TRUE(other.accept_bytes(")").value());
  EXPECT_TRUE(other.is_finished());
  EXPECT_TRUE(third.rollback(1).ok());
  EXPECT_TRUE(third.accept_bytes("x").value());
  EXPECT_TRUE(third.is_finished());
  one = std::move(third);
  EXPECT_EQ(one.accepted(), 1U);
}

TEST(Matcher, ForcedBytes) {
  Matcher one = matcher("root ::= \"name: \" [a-z] \" end\" \"!\"?");
  EXPECT_EQ(one.forced_bytes(100).value(), "name: ");
  EXPECT_EQ(one.forced_bytes(3).value(), "nam");
  EXPECT_TRUE(one.accept_bytes("name: ").value());
  EXPECT_EQ(one.forced_bytes(100).value(), "");
  EXPECT_TRUE(one.accept_bytes("q").value());
  EXPECT_EQ(one.forced_bytes(100).value(), " end");
  EXPECT_TRUE(one.accept_bytes(" end").value());
  EXPECT_EQ(one.forced_bytes(100).value(), "");
}

TEST(Matcher, FewestBytes) {
  Matcher one =
      matcher("root ::= \"[\" item (\",\" item)* \"]\" | \"x\"{100}\nitem ::= root | \"1\"");
  EXPECT_EQ(one.min_bytes(), 3U);
  EXPECT_TRUE(one.accept_bytes("[[").value());
  EXPECT_EQ(one.min_bytes(), 3U);
  EXPECT_TRUE(one.accept_bytes("1,").value());
  EXPECT_EQ(one.min_bytes(), 3U);
  EXPECT_TRUE(one.accept_bytes("x").value());
  EXPECT_EQ(one.min_bytes(), 101U);
  EXPECT_TRUE(one.accept_bytes(std::string(99, 'x')).value());
  EXPECT_EQ(one.min_bytes(), 2U);
  EXPECT_TRUE(one.accept_bytes("]]").value());
  EXPECT_EQ(one.min_bytes(), 0U);
}

TEST(Matcher, AMillionRepetitions) {
  const auto counted = grammar("root ::= \"a\"{1000000}");
  EXPECT_LT(counted->machines().states.size(), 10U);
  EXPECT_LT(counted->machines().memory(), size_t{1} << 20U);
  Matcher one = matcher(counted);
  EXPECT_EQ(one.min_bytes(), 1'000'000U);
  EXPECT_TRUE(one.accept_bytes(std::string(999'999, 'a')).value());
  EXPECT_FALSE(one.is_complete());
  EXPECT_FALSE(one.accept_bytes("aa").value());
  EXPECT_TRUE(one.accept_bytes("a").value());
  EXPECT_TRUE(one.is_finished());
}

// Counts that may be many at once stay intervals.
TEST(Matcher, AmbiguousCounts) {
  Matcher one = matcher("root ::= (\"a\" | \"aa\" | \"aaa\"){900,1000} \"b\"");
  EXPECT_TRUE(one.accept_bytes(std::string(899, 'a')).value());
  EXPECT_FALSE(one.valid_bytes().has('b'));
  EXPECT_TRUE(one.accept_bytes("a").value());
  EXPECT_TRUE(one.valid_bytes().has('b'));
  EXPECT_TRUE(one.accept_bytes(std::string(2100, 'a')).value());
  EXPECT_EQ(one.valid_bytes().count(), 1);
  EXPECT_TRUE(one.accept_bytes("b").value());
}

// One call's bytes share a limit on work, whatever each of them may take.
TEST(Matcher, BytesShareALimit) {
  GrammarLimits limits;
  limits.masks.work = 10'000;
  const auto ambiguous = grammar("root ::= ((\"a\"{1,100}){1,100}){1,100}", limits);
  Matcher one = matcher(ambiguous);
  const auto refused = one.accept_bytes(std::string(200, 'a'));
  EXPECT_EQ(refused.status().code(), Code::kGrammar);
  EXPECT_NE(std::string(refused.status().message()).find("10000"), std::string::npos);
  EXPECT_EQ(one.accepted(), 0U);
  EXPECT_TRUE(one.accept_bytes("aa").value());
}

TEST(Matcher, AMillionBrackets) {
  Matcher one = matcher("root ::= \"[\" (root (\",\" root)*)? \"]\"");
  const std::string open(1'000'000, '[');
  const std::string close(1'000'000, ']');
  EXPECT_TRUE(one.accept_bytes(open).value());
  EXPECT_LT(one.memory(), open.size() * 100);
  EXPECT_LT(one.work(), open.size() * 10);
  EXPECT_EQ(one.min_bytes(), 1'000'000U);
  (void)mask_of(one);
  EXPECT_TRUE(one.accept_bytes(close).value());
  EXPECT_TRUE(one.is_finished());
  EXPECT_LT(one.work(), open.size() * 20);
}

// Texts as recursion to the right or to the left, of pieces that may be empty, need no depth.
TEST(Matcher, LongTextsOfRecursiveRules) {
  for (const char* source :
       {"root ::= \"a\" root | \"b\" root | \"\"", "root ::= root \"a\" | root \"b\" | \"\"",
        "root ::= (x y)*\nx ::= \"a\"* z\ny ::= \"b\"? x?\nz ::= \"\" | x",
        "root ::= (\"a\" | \"b\" | \"\" | \"ab\")*", "root ::= root root | \"a\" | \"b\"",
        "root ::= root \"a\"? root | \"a\" | \"b\""}) {
    SCOPED_TRACE(source);
    Matcher one = matcher(source);
    std::string text;
    for (int i = 0; i < 1000; ++i) text += i % 3 == 0 ? "aab" : "aa";
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(one.accept_bytes(text).value());
    EXPECT_TRUE(one.is_complete());
    (void)mask_of(one);
  }
}

TEST(Matcher, HostileGrammarsAreBounded) {
  // An automaton with one way for each byte would have 2^30 states.
  Matcher one = matcher("root ::= [ab]* \"a\" [ab]{30}");
  std::string text;
  for (int i = 0; i < 500; ++i) text += i * i % 7 < 3 ? "a" : "b";
  EXPECT_TRUE(one.accept_bytes(text).value());
  (void)mask_of(one);
  // Rules that double at each step.
  std::string source = "root ::= r40\nr0 ::= \"a\"\n";
  for (int i = 1; i <= 40; ++i) {
    const std::string below = "r" + std::to_string(i - 1);
    source += "r" + std::to_string(i) + " ::= " + below + " " + below + "\n";
  }
  Matcher doubling = matcher(source);
  EXPECT_TRUE(doubling.accept_bytes(std::string(10'000, 'a')).value());
  // Groups in groups.
  const std::string nested =
      "root ::= " + std::string(100'000, '(') + "\"a\"" + std::string(100'000, ')') + "\n";
  EXPECT_TRUE(matcher(nested).accept_bytes("a").value());
  std::string operators = "root ::= ";
  for (int i = 0; i < 20'000; ++i) operators += "(\"a\" ";
  for (int i = 0; i < 20'000; ++i) operators += ")*";
  Matcher starred = matcher(operators);
  EXPECT_TRUE(starred.accept_bytes(std::string(1000, 'a')).value());
  // Rings of rules that begin with each other are quadratic by nature: refused above the limit.
  std::string ring = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) {
    ring +=
        "r" + std::to_string(i) + " ::= r" + std::to_string((i + 1) % 3000) + " \"a\" | \"b\"\n";
  }
  GrammarLimits limits;
  limits.edges = 100'000;
  EXPECT_EQ(Grammar::from_gbnf(ring, limits).status().code(), Code::kGrammar);
}

TEST(Matcher, TooAmbiguousIsAFailureThatChangesNothing) {
  GrammarLimits limits;
  limits.masks.items = 100;
  // What follows each opening is optional, so every depth stays possible.
  Matcher one = matcher(grammar("root ::= \"a\" root \"b\"? | \"\"", limits));
  EXPECT_TRUE(one.accept_bytes("aaaa").value());
  const auto failed = one.accept_bytes(std::string(1000, 'a'));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kGrammar);
  EXPECT_TRUE(one.accept_bytes("b").value());
}

TEST(Matcher, MasksAreForgottenAboveTheirBudget) {
  GrammarLimits limits;
  limits.masks.cache_bytes = 1;
  const auto small =
      grammar("root ::= \"(\" root \")\" | [a-z]+ | \"\\\"\" [^\"]* \"\\\"\"", limits);
  const auto large = grammar("root ::= \"(\" root \")\" | [a-z]+ | \"\\\"\" [^\"]* \"\\\"\"");
  Matcher one = matcher(small);
  Matcher other = matcher(large);
  for (const char c : std::string("((\"abc\xC3\xA9\"))")) {
    EXPECT_EQ(mask_of(one), mask_of(other));
    EXPECT_TRUE(one.accept_bytes({&c, 1}).value());
    EXPECT_TRUE(other.accept_bytes({&c, 1}).value());
  }
  EXPECT_GT(one.grammar().statistics().made, other.grammar().statistics().made);
}

TEST(Matcher, OneGrammarOverOneVocabularyIsOneObject) {
  const auto one = grammar("root ::= \"a\"");
  const auto vocabulary = test::vocabulary({"a", "b"});
  EXPECT_EQ(one->over(vocabulary).value(), one->over(vocabulary).value());
  EXPECT_NE(one->over(vocabulary).value(), one->over(test::vocabulary({"a", "b"})).value());
}

}  // namespace
}  // namespace gen::grammar

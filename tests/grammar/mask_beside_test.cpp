// SPDX-License-Identifier: Apache-2.0
// Masks that are found beside those of similar places, by looking only where the two differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

std::vector<uint64_t> mask_of(const Matcher& matcher) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words(), ~uint64_t{0});
  const Status status = matcher.mask(mask);
  EXPECT_TRUE(status.ok()) << status.message();
  return mask;
}

// Masks of places that are nearly alike are found from each other: here they differ in where a rule
// may end, in what is left of a count, in what was read before. Against single steps.
TEST(Mask, PlacesThatAreNearlyAlikeAreToldApart) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < 3906; ++i) {
    for (const char c : {'a', 'b', 'c', 'd', '!'}) texts.push_back(texts[i] + c);
  }
  texts.erase(texts.begin());
  const auto vocabulary = test::vocabulary(texts);
  std::vector<std::shared_ptr<const Grammar>> grammars;
  for (const char* source :
       {"root ::= x x \"!\"\nx ::= \"a\" y | \"b\" z | \"c\" x \"!\"\ny ::= [abc] [abc]?\n"
        "z ::= [abc] [abc]",
        "root ::= x x? \"!!\"\nx ::= \"!\" x \"!\" | [ab]{1,3} \"c\"? | [bc] [ab]{2,5}",
        "root ::= (\"a\" [abc]{0,30} \"!\" | \"b\" [ab]{20,40} \"!\")+",
        "root ::= e\ne ::= e \"!\" e | \"a\" [abc]{0,20} | \"b\" e \"c\"",
        "root ::= (\"a\" [abcd]{0,30} \"!\" | \"b\" [abcd]{20,40} \"!\")+",
        "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"c\" root \"c\" | \"!\""}) {
    for (const size_t sets : std::initializer_list<size_t>{4096, 120, 60, 35}) {
      GrammarLimits limits;
      limits.masks.sets = sets;
      grammars.push_back(Grammar::from_gbnf(source, limits).value());
    }
  }
  for (const char* source : {"(?=.*a)(?!.*cab)[abc]{2,12}!", "(?:a[abc]{0,4}|b(?!aa)[abc]+)!?"}) {
    grammars.push_back(Grammar::from_regex(source).value());
  }
  std::mt19937 random(4);
  for (const auto& grammar : grammars) {
    const auto over = grammar->over(vocabulary).value();
    for (int round = 0; round < (gen::test::kSanitized ? 1 : 3); ++round) {
      Matcher matcher = Matcher::create(over).value();
      while (matcher.accepted() < 20) {
        const std::vector<uint64_t> mask = mask_of(matcher);
        std::vector<int32_t> open;
        for (int32_t token = 0; token < vocabulary->size(); ++token) {
          if (round == 0 && (matcher.accepted() < 6 || token % 5 == 0)) {
            Matcher other = matcher.fork();
            ASSERT_EQ(other.accept_token(token).value(), test::has(mask, token))
                << vocabulary->bytes(token) << " at " << matcher.accepted();
          }
          if (test::has(mask, token) && token < 155) open.push_back(token);
        }
        if (open.empty()) break;
        const int32_t token = open[random() % open.size()];
        ASSERT_TRUE(matcher.accept_token(token).value());
        if (vocabulary->is_end(token)) break;
      }
    }
  }
}

// What such places have more or less than each other adds up, in whatever order they are found:
// texts that begin with certain words are not to come. Against how the tokens begin.
TEST(Mask, DifferencesFromDifferencesAddUp) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < 1093; ++i) {
    for (const char c : {'c', 'd', '!'}) texts.push_back(texts[i] + c);
  }
  texts.erase(texts.begin());
  texts.insert(texts.end(), {"ddddd", "ccccc!", "cdcdcd"});  // twins of what words begin
  const std::vector<std::vector<std::string>> without = {
      {}, {"ddddd"}, {"ccccc"}, {"ddddd", "ccccc"}, {"cdcdc", "ccccc"}};
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  do {
    const auto vocabulary = test::vocabulary(texts);
    const auto grammar = Grammar::from_regex(
        "0[cd]*!|1(?!d{5})[cd]*!|2(?!c{5})[cd]*!|3(?!d{5}|c{5})[cd]*!|4(?!cdcdc|c{5})[cd]*!");
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    for (const size_t place : order) {
      matcher.reset();
      ASSERT_TRUE(matcher.accept_bytes(std::to_string(place)).value());
      const std::vector<uint64_t> mask = mask_of(matcher);
      for (size_t token = 0; token < texts.size(); ++token) {
        const std::string& text = texts[token];
        bool allowed = text.find('!') >= text.size() - 1;
        for (const std::string& word : without[place]) allowed = allowed && !text.starts_with(word);
        ASSERT_EQ(test::has(mask, static_cast<int32_t>(token)), allowed) << place << " " << text;
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// Behind each of `places`, in any order, the mask against what single steps say of each token.
void compare_in_any_order(const std::string& gbnf, std::vector<std::string> places,
                          const std::vector<std::string>& texts) {
  std::sort(places.begin(), places.end());
  do {
    const auto grammar = Grammar::from_gbnf(gbnf);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    Matcher matcher =
        Matcher::create(grammar.value()->over(test::vocabulary(texts)).value()).value();
    for (const std::string& place : places) {
      matcher.reset();
      ASSERT_TRUE(matcher.accept_bytes(place).value());
      const std::vector<uint64_t> mask = mask_of(matcher);
      for (size_t token = 0; token < texts.size(); ++token) {
        Matcher other = matcher.fork();
        EXPECT_EQ(test::has(mask, static_cast<int32_t>(token)),
                  other.accept_bytes(texts[token]).value())
            << texts[token] << " behind " << place << ", first " << places[0];
      }
    }
  } while (std::next_permutation(places.begin(), places.end()));
}

// A comparison that was given up has found out nothing: the words of 24 letters take more pairs of
// places than one mask may compare, and only behind them is what differs.
TEST(Mask, PlacesThatAreDearToCompareAreNotTakenToBeAlike) {
  std::string words;
  for (char c = 'a'; c < 'y'; ++c) {
    words += std::string(" | \"") + c + std::string(14, 'c') + c + "\"";
  }
  compare_in_any_order("root ::= \"0w\" (\"zc\"" + words + ") \"X\" | \"1w\" (\"zd\"" + words +
                           ") \"Y\" | \"2w\" (\"ze\"" + words + ") \"Z\"",
                       {"0", "1", "2"}, {"w", "wa", "wzc", "wzd", "wze", "wac", "waa", "wb", "x"});
}

// Two rules that read the same for a while, and of which one may end on the way.
TEST(Mask, WhereARuleMayEndIsLookedAt) {
  compare_in_any_order(
      "root ::= x \"!\"\nx ::= \"[\" x \"]\" | \"0wab\" \"c\"? | \"1wabc\" | \"2wa\" (\"bc\")?",
      {"0", "1", "2", "[0", "[1"},
      {"w", "wa", "wab", "wabc", "wab!", "wab]", "wabc!", "wabc]", "wa!", "wa]", "wa]!", "wab]!"});
}

// What one way to read a text does not allow, and is left out of a mask that it shares, another way
// may have allowed.
TEST(Mask, WhatIsLeftOutOfASharedMaskStaysWhereAnotherWayAllowsIt) {
  const std::string rules =
      "\nx ::= \"[\" x \"]\" | \"0\" n n n n n* | \"1\" (\"a\" n n n n* | \"ba\" n n n* | \"bba\" "
      "n n*)"
      "\ny ::= \"[\" y \")\" | \"0\" n n n n n* | \"1\" (\"a\" n n n n* | \"ba\" n n n* | \"bbb\" "
      "n n*)"
      "\nn ::= [ab]";
  std::vector<std::string> texts = {"a",    "b",     "ab",    "bb",    "bba",   "bbb",
                                    "bbaa", "bbba",  "bbab!", "bbbb?", "bbab?", "bbbb!",
                                    "aaa!", "aaaa]", "aaaa)", "bbab]"};
  // With few tokens, masks that differ in some are not found beside each other.
  for (int i = 0; i < 600; ++i) texts.push_back("z" + std::to_string(i));
  for (const char* root : {"root ::= x \"!\" | y \"?\"", "root ::= y \"?\" | x \"!\""}) {
    compare_in_any_order(root + rules, {"0", "1", "[1"}, texts);
  }
}

// Names that many alternatives share are read by one machine, which all of them call: what another
// alternative adds does not depend on how long they are, and a text within a name is in one place,
// not in one of each.
TEST(Mask, AlternativesShareTheMachinesOfNames) {
  const auto states = [](int alternatives, const std::string& name) {
    std::string schema = R"({"type":"object","anyOf":[)";
    for (int i = 0; i < alternatives; ++i) {
      const std::string value = R"({"const":)" + std::to_string(100 + i) + "}";
      schema += std::string(i == 0 ? "" : ",") + R"({"properties":{")" + name + "\":" + value +
                R"(},"additionalProperties":)" + value + "}";
    }
    return Grammar::from_json_schema(schema + "]}", {}).value()->machines().states.size();
  };
  const auto grown = [&](const std::string& name) { return states(24, name) - states(12, name); };
  const size_t most = grown("n") + 50;
  EXPECT_LT(grown("nameOfManyLetters"), most);
}

}  // namespace
}  // namespace gen::grammar

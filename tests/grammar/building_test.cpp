// SPDX-License-Identifier: Apache-2.0
// What the making of a grammar may cost: a text that comes to more than the limits is refused after
// as much as the limits allow, however long it goes on, and a flag that is raised under way stops
// it. This program counts through its own operator new, and lets it raise the flag.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grammar/expression/characters.h"
#include "grammar/expression/dfa_builder.h"
#include "grammar/grammar.h"
#include "grammar/schema/string_dfa.h"
#include "grammar/schema/string_texts.h"
#include "grammar/vocabularies.h"
#include "support/counting_new.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

using Made = Result<std::shared_ptr<const Grammar>>;
using Make = std::function<Made(const std::string&, const GrammarLimits&)>;

std::string repeated(size_t count, const std::function<std::string(const std::string&)>& part,
                     const char* between = ",") {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += (i > 0 ? between : "") + part(std::to_string(i));
  return all;
}

// Those of a server that takes grammars of strangers.
GrammarLimits strict() {
  GrammarLimits limits;
  limits.edges = 262'144;
  limits.automata.states = 10'000;
  return limits;
}

Made schema(const std::string& text, const GrammarLimits& limits, const JsonStyle& style) {
  SchemaOptions options;
  options.automata.states = limits.automata.states;
  options.style = style;
  return Grammar::from_json_schema(text, options, limits);
}
Made any_spelling(const std::string& text, const GrammarLimits& limits) {
  return schema(text, limits, JsonStyle());
}
Made plain(const std::string& text, const GrammarLimits& limits) {
  return schema(text, limits, JsonStyle::of_models());
}
Made gbnf(const std::string& text, const GrammarLimits& limits) {
  return Grammar::from_gbnf(text, limits);
}
Made lark(const std::string& text, const GrammarLimits& limits) {
  return Grammar::from_lark(text, limits);
}
Made regex(const std::string& text, const GrammarLimits& limits) {
  return Grammar::from_regex(text, RegexMatch::kWhole, limits);
}
Made tags(const std::string& text, const GrammarLimits& limits) {
  return Grammar::from_tags(text, limits);
}

struct Hostile {
  const char* name;
  Make make;
  std::function<std::string(size_t)> text;
  size_t count;  // from which on it is refused
};

const std::vector<Hostile>& hostile() {
  static const std::vector<Hostile> all = {
      {"objects that are listed", any_spelling,
       [](size_t n) {
         return R"({"enum":[)" +
                repeated(n, [](const auto& i) { return R"({"a":{"b":)" + i + "}}"; }) + "]}";
       },
       1500},
      {"alternatives", any_spelling,
       [](size_t n) {
         return R"({"anyOf":[)" +
                repeated(
                    n,
                    [](const auto& i) { return R"({"enum":[{"k)" + i + R"(":[)" + i + "]}]}"; }) +
                "]}";
       },
       1500},
      {"members of objects", any_spelling,
       [](size_t n) {
         return R"({"anyOf":[)" +
                repeated(n,
                         [](const auto& i) {
                           return R"({"properties":{"a)" + i + R"(":{"enum":[)" + i + R"(,{"x":)" +
                                  i + "}]}}}";
                         }) +
                "]}";
       },
       800},
      {"bounds of numbers", plain,
       [](size_t n) {
         return R"({"anyOf":[)" +
                repeated(n,
                         [](const auto& i) {
                           return R"({"items":{"minimum":)" + i + ".125,\"maximum\":1" + i +
                                  "77.75}}";
                         }) +
                "]}";
       },
       900},
      {"members that are counted", plain,
       [](size_t n) {
         return R"({"type":"array","prefixItems":[)" +
                repeated(n,
                         [](const auto& i) {
                           return R"({"minProperties":100,"properties":{)" +
                                  repeated(200,
                                           [&](const auto& k) {
                                             return "\"p" + i + "_" + k + "\":{}";
                                           }) +
                                  "}}";
                         }) +
                "]}";
       },
       40},
      {"values that say nothing", plain,
       [](size_t n) {
         return R"({"default":[)" + repeated(n, [](const auto&) { return "[]"; }) + "]}";
       },
       160'000},
      {"alternatives of a rule", gbnf,
       [](size_t n) {
         return "root ::= \"z\" | " +
                repeated(
                    n, [](const auto& i) { return "\"" + i + "x\" \"y\" root"; }, " | ");
       },
       60'000},
      {"rings", gbnf,
       [](size_t n) {
         return "root ::= r0\n" + repeated(
                                      n,
                                      [&](const auto& i) {
                                        return "r" + i + " ::= r" +
                                               std::to_string((std::stoul(i) + 1) % n) + " \"a" +
                                               i + "\" | \"b\"";
                                      },
                                      "\n");
       },
       700},
      {"negations", lark,
       [](size_t n) {
         return "start: " +
                repeated(
                    n, [](const auto& i) { return "A" + i; }, "|") +
                "\n" +
                repeated(
                    n,
                    [](const auto& i) {
                      return "A" + i + ": ~/.*a" + i + ".*/ & /[a-z0-9]{1,60}/";
                    },
                    "\n");
       },
       1200},
      {"words of a pattern", regex,
       [](size_t n) {
         return repeated(
             n, [](const auto& i) { return "x" + std::to_string(std::stoul(i) * 7919) + "y"; },
             "|");
       },
       80'000},
      {"tags", tags,
       [](size_t n) {
         return R"({"tags":[)" +
                repeated(n,
                         [](const auto& i) {
                           return R"({"begin":"<)" + i +
                                  R"(>","json_schema":{"properties":{"a":{"items":)"
                                  R"({"maximum":)" +
                                  i + R"(.5}}}},"end":"!"})";
                         }) +
                "]}";
       },
       1000},
  };
  return all;
}

size_t bytes_of(const Hostile& one, size_t count, const GrammarLimits& limits, Status* why) {
  const std::string text = one.text(count);
  const size_t before = gen::test::new_bytes;
  const Made made = one.make(text, limits);
  *why = made.status();
  return gen::test::new_bytes - before;
}

constexpr size_t kNewsBehind = 10'000;
constexpr size_t kBytesPerByte = 400;             // of text, to read it
constexpr size_t kMaxBytes = size_t{512} << 20U;  // all blocks of memory together

// The cost of a refusal does not grow with the text, apart from the cost of reading it.
TEST(Building, RefusedBeforeItIsMade) {
  gen::test::Thinned thinned(4);
  for (const Hostile& one : hostile()) {
    if (thinned.skips()) continue;
    GrammarLimits limits = strict();
    limits.text_bytes = size_t{16} << 20U;
    Status why;
    const size_t once = bytes_of(one, one.count, limits, &why);
    ASSERT_EQ(why.code(), Code::kGrammar) << one.name;
    EXPECT_NE(std::string(why.message()).find("the grammar takes more"), std::string::npos)
        << one.name << ": " << why.message();
    const size_t twice = bytes_of(one, 2 * one.count, limits, &why);
    ASSERT_EQ(why.code(), Code::kGrammar) << one.name;
    const size_t text = one.text(2 * one.count).size() - one.text(one.count).size();
    EXPECT_LT(twice, once + once / 4 + kBytesPerByte * text) << one.name;
    EXPECT_LT(once, kMaxBytes) << one.name;
  }
}

// Of rules that lead to themselves without a text, the automaton of a tag's content would have ever
// more edges between the same nodes.
TEST(Building, RingsOfRulesWithoutATextHaveNoAutomaton) {
  for (const char* rules :
       {R"(root ::= root | \"x\")", R"(root ::= ring | \"x\"\nring ::= root)"}) {
    const std::string text =
        R"({"tags":[{"begin":"<a>","json_schema":{},"end":"</a>"},{"begin":"<b>","gbnf":")" +
        std::string(rules) + R"(","end":"</b>"}]})";
    const size_t before = gen::test::new_bytes;
    const Made made = tags(text, strict());
    EXPECT_TRUE(made.ok()) << rules << ": " << made.status().message();
    EXPECT_LT(gen::test::new_bytes - before, size_t{64} << 20U) << rules;
  }
}

// Each character between whose neighbours there is a gap is looked at, so it counts.
TEST(Building, CharactersOfStringsCountAsWork) {
  constexpr uint32_t kCharacters = 8192;
  Building building;
  Expressions to(&building);
  CharSet set;
  for (uint32_t i = 0; i < kCharacters; ++i) set.add(0x800 + 2 * i, 0x800 + 2 * i);
  const Dfa strings = build_dfa(to, to.repeat(characters(to, set), 0, kUnbounded)).value();
  const uint64_t before = building.work();
  StringTexts texts(to, true);
  ASSERT_TRUE(texts.texts_of(strings, DfaFuel()).ok());
  EXPECT_GE(building.work() - before, kCharacters);
}

// A text is not copied at each of its characters.
TEST(Building, AListedTextIsWrittenOnce) {
  const std::string text(20'000, 'a');
  const Dfa strings = string_set(std::vector<std::string>{text});
  std::vector<std::string> found;
  const size_t before = gen::test::new_bytes;
  ASSERT_TRUE(finite_strings(strings, 1, &found));
  EXPECT_LT(gen::test::new_bytes - before, 100 * text.size());
  EXPECT_EQ(found, std::vector<std::string>{text});
}

CancelFlag* raised_by_new = nullptr;

// Wherever the flag is raised, little is done behind it, and nothing is made.
TEST(Building, StopsWhereTheFlagIsRaised) {
  gen::test::tell_new = [] { raised_by_new->fire(); };
  gen::test::Thinned thinned(3);
  for (const Hostile& one : hostile()) {
    if (thinned.skips()) continue;
    const auto flag = std::make_shared<CancelFlag>();
    raised_by_new = flag.get();
    GrammarLimits limits = strict();
    limits.text_bytes = size_t{16} << 20U;
    limits.edges = size_t{1} << 30U;
    const std::string text = one.text(one.count / 40 + 2);
    size_t begin = gen::test::news;
    ASSERT_TRUE(one.make(text, limits).ok()) << one.name;
    const size_t all = gen::test::news - begin;
    limits.cancel = flag;
    for (size_t part = 1; part < 40; part += 12) {
      flag->reset();
      begin = gen::test::news;
      gen::test::tell_new_at = begin + all * part / 40;
      const Made made = one.make(text, limits);
      gen::test::tell_new_at = SIZE_MAX;
      const size_t behind = gen::test::news - begin - all * part / 40;
      // What is in hand is finished: the automaton of a number, the classes of a pattern.
      ASSERT_EQ(made.status().code(), Code::kCancelled)
          << one.name << ", " << part << " of 40: " << made.status().message();
      EXPECT_LT(behind, kNewsBehind) << one.name << ", " << part << " of 40";
    }
    flag->reset();
    EXPECT_TRUE(one.make(text, limits).ok()) << one.name;
  }
}

// A grammar of a flag that is raised is not prepared, and what others have of it stays.
TEST(Building, PreparesNothingWhileTheFlagIsRaised) {
  const auto flag = std::make_shared<CancelFlag>();
  GrammarLimits limits;
  limits.cancel = flag;
  const auto grammar = Grammar::from_gbnf("root ::= \"a\"", limits).value();
  const auto known = test::vocabulary(test::all_bytes());
  const auto other = test::vocabulary(test::all_bytes());
  const auto first = grammar->over(known).value();
  flag->fire();
  EXPECT_EQ(grammar->over(other).status().code(), Code::kCancelled);
  EXPECT_EQ(grammar->once_over(known).status().code(), Code::kCancelled);
  EXPECT_EQ(grammar->over(known).value(), first);
  flag->reset();
  EXPECT_TRUE(grammar->over(other).ok());
}

}  // namespace
}  // namespace gen::grammar

// SPDX-License-Identifier: Apache-2.0
// Lookaround, borders of words, ^ and $ anywhere: random patterns match the texts that they match
// by the definition, tried at every place; and what may still become a member does.
#include <gtest/gtest.h>

#include <bitset>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/expression/dfa.h"
#include "grammar/expression/dfa_builder.h"
#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/regex/regex.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

// A pattern as a tree, read by trying everything. The alphabet is a, b, - and a character of two
// bytes, written e here.
struct Tree {
  enum Kind { kSet, kSequence, kChoice, kRepeat, kStart, kEnd, kBorder, kNoBorder, kLook };
  Kind kind = kSet;
  std::string set;
  std::vector<Tree> parts;
  size_t min = 0;
  size_t max = 0;
  bool behind = false;
  bool negated = false;
};

using Places = std::bitset<16>;

std::string pattern_of(const Tree& tree) {
  std::string text;
  switch (tree.kind) {
    case Tree::kSet:
      for (const char c : tree.set) text += c == 'e' ? "\xC3\xA9" : std::string(1, c);
      return "[" + text + "]";
    case Tree::kStart:
      return "(?:^)";
    case Tree::kEnd:
      return "(?:$)";
    case Tree::kBorder:
      return "\\b";
    case Tree::kNoBorder:
      return "\\B";
    case Tree::kLook:
      return std::string("(?") + (tree.behind ? "<" : "") + (tree.negated ? "!" : "=") +
             pattern_of(tree.parts[0]) + ")";
    case Tree::kRepeat:
      text = "(?:" + pattern_of(tree.parts[0]) + "){" + std::to_string(tree.min) + ",";
      return text + (tree.max > 9 ? "" : std::to_string(tree.max)) + "}";
    default:
      break;
  }
  for (const Tree& part : tree.parts) {
    if (tree.kind == Tree::kChoice && &part != tree.parts.data()) text += "|";
    text += pattern_of(part);
  }
  return "(?:" + text + ")";
}

// Where the tree may end that begins at `at`.
Places ends(const Tree& tree, std::string_view text, size_t at) {
  Places found;
  const auto word = [&](size_t i) { return i < text.size() && (text[i] == 'a' || text[i] == 'b'); };
  const bool border = (at > 0 && word(at - 1)) != word(at);
  switch (tree.kind) {
    case Tree::kSet:
      if (at < text.size() && tree.set.find(text[at]) != std::string::npos) found.set(at + 1);
      break;
    case Tree::kStart:
      found[at] = at == 0;
      break;
    case Tree::kEnd:
      found[at] = at == text.size();
      break;
    case Tree::kBorder:
      found[at] = border;
      break;
    case Tree::kNoBorder:
      found[at] = !border;
      break;
    case Tree::kLook: {
      bool matches = false;
      if (tree.behind) {
        for (size_t from = 0; from <= at; ++from) matches |= ends(tree.parts[0], text, from)[at];
      } else {
        matches = ends(tree.parts[0], text, at).any();
      }
      found[at] = matches != tree.negated;
      break;
    }
    case Tree::kChoice:
      for (const Tree& part : tree.parts) found |= ends(part, text, at);
      break;
    case Tree::kSequence:
    case Tree::kRepeat: {
      Places here;
      here.set(at);
      const bool repeat = tree.kind == Tree::kRepeat;
      const size_t rounds =
          repeat ? std::min(tree.max, tree.min + text.size() + 1) : tree.parts.size();
      for (size_t i = 0;; ++i) {
        if (!repeat ? i == rounds : i >= tree.min) found |= here;
        if (i == rounds) break;
        Places next;
        for (size_t p = 0; p <= text.size(); ++p) {
          if (here[p]) next |= ends(tree.parts[repeat ? 0 : i], text, p);
        }
        here = next;
      }
      break;
    }
  }
  return found;
}

Tree random_tree(std::mt19937& random, int depth) {
  const auto below = [&](uint32_t count) { return static_cast<uint32_t>(random() % count); };
  Tree tree;
  const uint32_t choice = below(depth > 0 ? 14 : 5);
  if (choice < 4) {
    static const char* const kSets[] = {"a", "b", "ab", "-", "e", "ae", "b-", "abe-"};
    tree.set = kSets[below(8)];
  } else if (choice < 5) {
    tree.kind = static_cast<Tree::Kind>(Tree::kStart + below(4));
  } else if (choice < 9) {
    tree.kind = Tree::kSequence;
    for (uint32_t i = 2 + below(2); i > 0; --i)
      tree.parts.push_back(random_tree(random, depth - 1));
  } else if (choice < 10) {
    tree.kind = Tree::kChoice;
    for (uint32_t i = 2; i > 0; --i) tree.parts.push_back(random_tree(random, depth - 1));
  } else if (choice < 12) {
    tree.kind = Tree::kRepeat;
    tree.parts.push_back(random_tree(random, depth - 1));
    tree.min = below(3);
    tree.max = below(2) == 0 ? 1000 : std::max<size_t>(1, tree.min + below(2));
  } else {
    tree.kind = Tree::kLook;
    tree.behind = below(2) == 0;
    tree.negated = below(2) == 0;
    tree.parts.push_back(random_tree(random, depth - 1));
  }
  return tree;
}

std::string bytes_of(std::string_view text) {
  std::string bytes;
  for (const char c : text) bytes += c == 'e' ? "\xC3\xA9" : std::string(1, c);
  return bytes;
}

bool is_member(const Tree& tree, std::string_view text, bool search) {
  if (!search) return ends(tree, text, 0)[text.size()];
  for (size_t at = 0; at <= text.size(); ++at) {
    if (ends(tree, text, at).any()) return true;
  }
  return false;
}

// A way to the end, byte by byte.
std::string finish(Matcher& matcher) {
  std::string rest;
  while (!matcher.is_complete()) {
    const uint64_t left = matcher.min_bytes();
    const ByteSet valid = matcher.valid_bytes();
    bool nearer = false;
    for (const char c : std::string("ab-\xC3\xA9")) {
      if (nearer || !valid.has(static_cast<uint8_t>(c))) continue;
      EXPECT_TRUE(matcher.accept_bytes({&c, 1}).value());
      nearer = matcher.min_bytes() < left;
      if (nearer) rest.push_back(c);
      if (!nearer) {
        EXPECT_TRUE(matcher.rollback(1).ok());
      }
    }
    if (!nearer) return "?";  // only with other characters
  }
  return rest;
}

TEST(Lookaround, IsWhatTryingEveryPlaceSays) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < (gen::test::kSanitized ? 85U : 341U); ++i) {
    for (const char c : {'a', 'b', '-', 'e'}) texts.push_back(texts[i] + c);
  }
  const auto vocabulary = test::vocabulary(test::all_bytes());
  std::mt19937 random(7);
  size_t members = 0;
  size_t looked = 0;
  int refused = 0;
  for (int round = 0; round < (gen::test::kSanitized ? 30 : 1200); ++round) {
    const Tree tree = random_tree(random, 4);
    const std::string pattern = pattern_of(tree);
    const bool search = round % 2 == 1;
    SCOPED_TRACE(pattern + (search ? " searched" : ""));
    GrammarLimits limits;
    limits.automata.states = 3000;
    limits.automata.work = 3'000'000;
    const auto grammar =
        Grammar::from_regex(pattern, search ? RegexMatch::kSearch : RegexMatch::kWhole, limits);
    if (!grammar.ok()) {
      const std::string message = grammar.status().message();
      if (message.find("more than 3000 states") != std::string_view::npos) {
        ++refused;
        continue;
      }
      ASSERT_EQ(message, "the grammar matches no text");
      for (const std::string& text : texts) ASSERT_FALSE(is_member(tree, text, search)) << text;
      continue;
    }
    looked += pattern.find("(?=") != std::string::npos ||
                      pattern.find("(?<") != std::string::npos ||
                      pattern.find("(?!") != std::string::npos
                  ? 1U
                  : 0U;
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    for (const std::string& text : texts) {
      matcher.reset();
      const bool expected = is_member(tree, text, search);
      const bool viable = matcher.accept_bytes(bytes_of(text)).value();
      ASSERT_EQ(viable && matcher.is_complete(), expected) << text;
      members += expected ? 1 : 0;
      if (!viable || text.size() > 2) continue;
      std::string rest = finish(matcher);
      for (size_t at = 0; (at = rest.find("\xC3\xA9", at)) != std::string::npos;)
        rest.replace(at, 2, "e");
      if (rest != "?" && text.size() + rest.size() < 15) {
        ASSERT_TRUE(is_member(tree, text + rest, search)) << text << " + " << rest;
      }
    }
  }
  EXPECT_GT(members, gen::test::kSanitized ? 100U : 20'000U);
  EXPECT_GT(looked, gen::test::kSanitized ? 3U : 200U);
  EXPECT_LT(refused, 20);
}

TEST(Lookaround, ByHand) {
  struct Case {
    const char* pattern;
    std::vector<std::string> members;
    std::vector<std::string> others;
  };
  const Case cases[] = {
      {"^(?=.*[A-Z])(?=.*\\d)[A-Za-z\\d]{8,64}$",
       {"Passw0rd", "aaaaaaaaaaaaA1"},
       {"password", "Passwor", "PASSWORD", "Passw0rd!"}},
      {"^(?!con$|prn$)[a-z]+$", {"cons", "co", "prnx"}, {"con", "prn"}},
      {"(?<=\\$)\\d+", {"$12", "x$1"}, {"12", "$x1"}},
      {"(?<!\\$)\\b\\d+", {"12", "$1 2"}, {"$12", "x1"}},
      {"\\bcat\\b",
       {"cat", "a cat.",
        "\xC3\xA9"
        "cat"},
       {"cats", "concat", "cat_"}},
      {"\\Bcat", {"concat"}, {"cat", " cat"}},
      {"a(?=b(?!c))", {"ab", "abd"}, {"abc", "a"}},
      {"(?<=a(?=b))b", {"ab"}, {"cb", "a"}},
      {"(?:(?=a)|b)*c", {"c", "bbc"}, {"a"}},
      {"(^a|b$|(c))", {"ax", "xb", "xcx"}, {"xa", "bx", ""}},
      {"a(?=b)?c", {"ac"}, {"ab"}},
      {"(?=a)*c", {"c"}, {"a"}},
      {"x^|$y|z", {"z"}, {"x", "y"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.pattern);
    const auto grammar = Grammar::from_regex(one.pattern, RegexMatch::kSearch);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    Matcher matcher =
        Matcher::create(grammar.value()->over(test::vocabulary(test::all_bytes())).value()).value();
    const auto member = [&](const std::string& text) {
      matcher.reset();
      return matcher.accept_bytes(text).value() && matcher.is_complete();
    };
    for (const std::string& text : one.members) EXPECT_TRUE(member(text)) << text;
    for (const std::string& text : one.others) EXPECT_FALSE(member(text)) << text;
  }
}

TEST(Lookaround, FuelEnds) {
  DfaFuel fuel;
  fuel.states = 1000;
  for (const char* pattern :
       {"(?=a{2000})a*", "(?:a|b)*a(?:a|b){40}\\b", "(?=(a|b)*a(a|b){30}$)[ab]*"}) {
    Expressions to;
    const auto made = parse_regex(pattern, RegexMatch::kWhole, to, fuel);
    ASSERT_FALSE(made.ok()) << pattern;
    EXPECT_EQ(std::string(made.status().message()).find("line 1, column"), 0U)
        << made.status().message();
  }
}

// Each place that looks ahead doubles the ways; they are charged for, and nest within the stack.
TEST(Lookaround, NestedOnesAreBounded) {
  const auto nested = [](size_t n) {
    std::string pattern;
    for (size_t i = 0; i < n; ++i) pattern += "(?=";
    return Grammar::from_regex(pattern + std::string(n, ')')).status();
  };
  EXPECT_TRUE(nested(8).ok());
  const Status thirty = nested(30);
  EXPECT_EQ(thirty.code(), Code::kGrammar);
  EXPECT_NE(std::string(thirty.message()).find("work"), std::string::npos);
  EXPECT_NE(std::string(nested(200).message()).find("32 places"), std::string::npos);
}

// Conjunction, difference and so on are what they are text by text, and negation twice is nothing.
TEST(Lookaround, Combinations) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < 121; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  const auto accepts = [](const Dfa& dfa, const std::string& text) {
    if (dfa.empty()) return false;
    uint32_t state = 0;
    for (const char c : text) {
      bool found = false;
      for (const ByteEdge& edge : dfa.states[state].edges) {
        if (edge.low <= static_cast<uint8_t>(c) && static_cast<uint8_t>(c) <= edge.high && !found) {
          found = true;
          state = edge.target;
        }
      }
      if (!found) return false;
    }
    return dfa.states[state].final;
  };
  const char* const patterns[] = {"a*b", "[ab]*c?",      "(?:abc?|b)*", "a|b",
                                  "",    "[abc]*a[abc]", "(?!)"};
  Expressions to;
  std::vector<Dfa> automata;
  for (const char* pattern : patterns) {
    const auto parsed = parse_regex(pattern, RegexMatch::kWhole, to);
    ASSERT_TRUE(parsed.ok());
    automata.push_back(build_dfa(to, parsed.value()).value());
  }
  const Dfa all = build_dfa(to, parse_regex("[^]*", RegexMatch::kWhole, to).value()).value();
  for (const Dfa& a : automata) {
    for (const Dfa& b : automata) {
      const Dfa both = combine(a, b, Both::kAnd).value();
      const Dfa first = combine(a, b, Both::kNot).value();
      const Dfa any = combine(a, b, Both::kOr).value();
      const Dfa one = combine(a, b, Both::kXor).value();
      for (const std::string& text : texts) {
        const bool of_a = accepts(a, text);
        const bool of_b = accepts(b, text);
        ASSERT_EQ(accepts(both, text), of_a && of_b);
        ASSERT_EQ(accepts(first, text), of_a && !of_b);
        ASSERT_EQ(accepts(any, text), of_a || of_b);
        ASSERT_EQ(accepts(one, text), of_a != of_b);
      }
    }
    const Dfa negated = combine(all, a, Both::kNot).value();
    const Dfa again = combine(all, negated, Both::kNot).value();
    EXPECT_TRUE(combine(a, again, Both::kXor).value().empty());
    EXPECT_EQ(again.states.size(), a.states.size());  // the least automaton of a language is one
  }
}

}  // namespace
}  // namespace gen::grammar

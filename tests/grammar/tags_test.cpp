// SPDX-License-Identifier: Apache-2.0
// Structural tags: random texts are members exactly if a reading of them by the definition says so;
// masks in free text; options; failures.
#include "grammar/notation/tags.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "grammar/notation/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/json/json.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

struct Part {
  std::string begin;
  std::string body;  // a regular expression
  std::string end;
};

// By the definition: free text up to the first trigger; from there on one of its tags.
class Reading {
 public:
  Reading(std::vector<Part> parts, TagOptions options)
      : parts_(std::move(parts)), options_(std::move(options)) {
    if (options_.triggers.empty()) {
      for (const Part& part : parts_) options_.triggers.push_back(part.begin);
    }
  }

  [[nodiscard]] bool is_member(const std::string& text, size_t n_tags = 0) const {
    size_t first = std::string::npos;
    for (const std::string& trigger : options_.triggers)
      first = std::min(first, text.find(trigger));
    if (n_tags > 0 && options_.stop_after_first) return text.empty();
    if (!options_.free_text && !text.empty() && first != 0) return false;
    if (first == std::string::npos) return n_tags > 0 || !options_.at_least_one;
    const std::string rest = text.substr(first);
    for (const Part& part : parts_) {
      const std::regex whole("^" + part.begin + "(?:" + part.body + ")" + part.end + "$");
      for (size_t size = part.begin.size(); size <= rest.size(); ++size) {
        if (std::regex_match(rest.substr(0, size), whole) &&
            is_member(rest.substr(size), n_tags + 1)) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  std::vector<Part> parts_;
  TagOptions options_;
};

Result<std::shared_ptr<const Grammar>> grammar_of(const std::vector<Part>& parts,
                                                  const TagOptions& options) {
  return Grammar::from_tags(
      [&](Expressions& to) -> Result<std::vector<Tag>> {
        std::vector<Tag> tags;
        for (const Part& part : parts) {
          Tag& tag = tags.emplace_back();
          tag.begin = part.begin;
          GEN_ASSIGN(tag.body, parse_regex(part.body, RegexMatch::kWhole, to));
          tag.end = part.end;
        }
        return tags;
      },
      options);
}

std::vector<std::vector<Part>> cases() {
  return {{{"<a", "[xy]*", ">"}},
          {{"<a", "x?", ">"}, {"<x", "y|<a", ""}},
          {{"aa", "x", "a"}, {"xax", "", "y"}},
          {{"<ax", "y", ">"}, {"<ay", "x*", ">"}}};
}

TEST(Tags, AreWhatTheirDefinitionSays) {
  std::mt19937 random(2);
  const auto vocabulary = test::vocabulary(
      {"<", "a", "x", "y", ">", "<a", "ax", "x>", ">y<", "<ax", "yx", "a<a", "xa", "y>>"});
  size_t members = 0;
  size_t others = 0;
  for (size_t which = 0; which < cases().size(); ++which) {
    for (int bits = 0; bits < 8; ++bits) {
      TagOptions options;
      options.at_least_one = (bits & 1) != 0;
      options.stop_after_first = (bits & 2) != 0;
      options.free_text = (bits & 4) == 0;
      if (which == 3) options.triggers = {"<a"};
      const Reading reading(cases()[which], options);
      const auto grammar = grammar_of(cases()[which], options);
      ASSERT_TRUE(grammar.ok()) << grammar.status().message();
      Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
      for (int round = 0; round < (gen::test::kSanitized ? 30 : 300); ++round) {
        std::string text;
        for (size_t i = random() % 9; i > 0; --i) text += "<axy>"[random() % 5];
        matcher.reset();
        const bool viable = matcher.accept_bytes(text).value();
        const bool expected = reading.is_member(text);
        ASSERT_EQ(viable && matcher.is_complete(), expected) << which << " " << bits << " " << text;
        (expected ? members : others) += 1;
        if (!viable) continue;
        std::vector<uint64_t> mask(1);
        ASSERT_TRUE(matcher.mask(mask).ok());
        for (int32_t token = 0; token < vocabulary->size(); ++token) {
          Matcher other = matcher.fork();
          ASSERT_EQ(other.accept_token(token).value(), test::has(mask, token)) << text;
        }
        // Every beginning has an end.
        while (!matcher.is_complete()) {
          const uint64_t left = matcher.min_bytes();
          bool nearer = false;
          for (const char c : std::string("<axy>")) {
            if (nearer || !matcher.accept_bytes({&c, 1}).value()) continue;
            nearer = matcher.min_bytes() < left;
            if (nearer) text.push_back(c);
            if (!nearer) {
              ASSERT_TRUE(matcher.rollback(1).ok());
            }
          }
          ASSERT_TRUE(nearer);
        }
        ASSERT_TRUE(reading.is_member(text)) << text;
      }
    }
  }
  EXPECT_GT(members, gen::test::kSanitized ? 50U : 500U);
  EXPECT_GT(others, gen::test::kSanitized ? 50U : 500U);
}

// A tool call in JSON between tokens by name, behind reasoning in free text.
TEST(Tags, TokensBeginAndEndThem) {
  auto texts = test::all_bytes();
  const auto vocabulary = test::vocabulary(texts, 2);  // <0> is 256, <1> is 257
  const auto make = [](Expressions& to) -> Result<std::vector<Tag>> {
    Tag tag;
    tag.begin_token = TokenTerm{false, -1, "<0>"};
    tag.end_token = TokenTerm{false, 257, ""};
    tag.body = any_json_expression(to);
    Tag other;
    other.begin = "call:";
    GEN_ASSIGN(other.body, parse_gbnf("root ::= [a-z]+ \";\"", to));
    return std::vector<Tag>{tag, other};
  };
  TagOptions options;
  options.at_least_one = true;
  const auto grammar = Grammar::from_tags(make, options);
  ASSERT_TRUE(grammar.ok()) << grammar.status().message();
  Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
  std::vector<uint64_t> mask(vocabulary->words());
  ASSERT_TRUE(matcher.accept_bytes("I think {\xFF cal").value());
  EXPECT_FALSE(matcher.is_complete());
  ASSERT_TRUE(matcher.mask(mask).ok());
  for (int32_t token = 0; token <= 256; ++token) EXPECT_TRUE(test::has(mask, token)) << token;
  EXPECT_FALSE(test::has(mask, 257));
  EXPECT_FALSE(test::has(mask, 258));
  ASSERT_TRUE(matcher.accept_token(256).value());
  EXPECT_FALSE(matcher.accept_bytes("x").value());
  ASSERT_TRUE(matcher.accept_bytes("{\"a\":1}").value());
  EXPECT_FALSE(matcher.accept_token(258).value());
  ASSERT_TRUE(matcher.accept_token(257).value());
  EXPECT_TRUE(matcher.is_complete());
  ASSERT_TRUE(matcher.accept_bytes("call").value());
  EXPECT_TRUE(matcher.is_complete());
  ASSERT_TRUE(matcher.accept_bytes(":").value());
  EXPECT_FALSE(matcher.is_complete());
  EXPECT_FALSE(matcher.accept_token(256).value());
  ASSERT_TRUE(matcher.accept_bytes("f;").value());
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_TRUE(matcher.accept_token(258).value());
}

TEST(Tags, Failures) {
  const auto failure = [](const std::vector<Part>& parts, std::vector<std::string> triggers = {}) {
    TagOptions options;
    options.triggers = std::move(triggers);
    const auto made = grammar_of(parts, options);
    EXPECT_EQ(made.status().code(), Code::kGrammar);
    return std::string(made.status().message());
  };
  EXPECT_EQ(failure({}), "no tags");
  EXPECT_EQ(failure({{"", "a", ""}}), "tag 0 begins with nothing");
  EXPECT_EQ(failure({{"<a", "a", ""}, {"x<a>", "b", ""}}), "trigger \"x<a>\" holds trigger \"<a\"");
  EXPECT_EQ(failure({{"<a", "a", ""}}, {"<b"}), "no trigger begins tag \"<a\"");
  EXPECT_EQ(failure({{"<a", "a", ""}}, {"<a", "b"}), "no tag begins with trigger \"b\"");
  EXPECT_EQ(failure({{"<a", "a", ""}}, {""}), "trigger 0 is empty");
  EXPECT_EQ(failure({{"<a", "(", ""}}), "line 1, column 1: ( without )");
}

}  // namespace
}  // namespace gen::grammar

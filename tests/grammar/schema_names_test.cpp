// SPDX-License-Identifier: Apache-2.0
// Names that no keyword speaks of come once, too: masks and accepted tokens against a grammar that
// does not know of that rule, together with another JSON parser that looks for names that are there
// twice.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_texts.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema_validator.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

// The other parser does not take numbers that no double holds.
SchemaOptions short_numbers() {
  SchemaOptions options;
  options.style.digits = 2;
  return options;
}

// Without the rule.
std::shared_ptr<const Grammar> plain(const std::string& schema) {
  Expressions expressions;
  const ExprId root = schema_expression(schema, short_numbers(), expressions).value();
  return Grammar::from_expressions(expressions, root).value();
}

TEST(SchemaNames, ComeOnce) {
  const test::SchemaCase cases[] = {
      {"{}",
       {R"({"a":1,"b":2})", R"({"a":{"a":1}})", R"([{"a":1},{"a":1}])",
        R"({"a":1,"A":1,"":0,"aa":1})", R"({"\u00e9":1,"e":1})"},
       {R"({"a":1,"a":2})", R"({"a":1,"\u0061":2})", R"([{"x":{"b":1,"a":[{}],"b":2}}])",
        R"({"":1,"":1})", R"({"\n":1,"\u000A":1})", R"({"é":1,"\u00e9":1})",
        "{\"\\ud83e\\udd99\":1,\"\xF0\x9F\xA6\x99\":1}", R"({"a\"":1,"a\u0022":1})",
        R"({"\/":1,"/":1})", R"({"a":1,"b":{"a":1},"a":1})"}},
      {R"({"properties":{"a":{}},"patternProperties":{"^x":{"type":"integer"}}})",
       {R"({"a":1,"x":1,"xx":2,"y":null})"},
       {R"({"a":1,"a":1})", R"({"x":1,"x":1})", R"({"y":1,"y":1})",
        R"({"x1":1,"y":1,"\u00781":1})"}},
  };
  for (const test::SchemaCase& one : cases) test::check(one);
}

// A member that must show something may be one of the few names that a pattern or propertyNames
// leaves.
TEST(SchemaNames, OneOfFewNamesMayBeTheMemberThatIsAskedFor) {
  const test::SchemaCase cases[] = {
      {R"({"type":"object","propertyNames":{"enum":["a","b"]},
           "not":{"additionalProperties":{"type":"string"}}})",
       {R"({"a":1})", R"({"a":"x","b":1})", R"({"b":null,"a":"x"})"},
       {"{}", R"({"a":"x"})", R"({"a":"x","b":"y"})", R"({"c":1})", R"({"a":1,"c":1})"}},
      {R"({"type":"object","oneOf":[
           {"patternProperties":{"^(a|b)$":{"type":"string"}},"additionalProperties":false},
           {"patternProperties":{"^(a|b)$":{"type":"integer"}},"additionalProperties":false}]})",
       {R"({"a":"x"})", R"({"a":1})", R"({"b":2,"a":1})"},
       {"{}", R"({"a":1,"b":"x"})", R"({"a":null})", R"({"c":1})", R"({"a":1,"c":1})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-c]$"},
           "not":{"propertyNames":{"pattern":"^[ab]$"}}})",
       {R"({"c":1})", R"({"a":1,"c":1})"},
       {"{}", R"({"a":1,"b":1})", R"({"d":1})"}},
      // Beside names that are not few.
      {R"({"type":"object","patternProperties":{"^(a|b)$":{"type":"string"}},
           "not":{"patternProperties":{"^(a|x+)$":{"maxLength":1}}}})",
       {R"({"a":"xx"})", R"({"xx":"xx"})", R"({"a":"x","b":"x","x":"xx"})"},
       {"{}", R"({"a":"x"})", R"({"b":"xx"})", R"({"a":1,"xx":"xx"})"}},
  };
  for (const test::SchemaCase& one : cases) test::check(one);
}

TEST(SchemaNames, ThereMayBeManyOfThem) {
  constexpr int kMany = 900;
  std::string schema = R"({"required":["n7","n850"],"additionalProperties":false,"properties":{)";
  std::string all = "{";
  for (int i = 0; i < kMany; ++i) {
    const std::string name = (i > 0 ? ",\"n" : "\"n") + std::to_string(i) + "\":";
    schema += name + (i % 2 == 0 ? "{}" : R"({"type":"boolean"})");
    all += name + "true";
  }
  test::Validator validator(schema + "}}");
  EXPECT_TRUE(validator(all + "}"));
  EXPECT_TRUE(validator(R"({"n899":false,"n850":1,"n7":true,"n898":0})"));
  for (const char* text :
       {R"({"n7":true})", R"({"n7":true,"n850":1,"n899":1})", R"({"n7":true,"n850":1,"n900":1})",
        R"({"n7":true,"n850":1,"n898":0,"n898":0})", R"({"n850":true,"n850":1,"n7":true})",
        R"({"n3":true,"n850":1,"n7":true,"n3":true})"}) {
    EXPECT_FALSE(validator(text)) << text;
  }
  SchemaOptions options;
  options.watched = false;
  EXPECT_STREQ(test::compile(schema + "}}", options).status().message(),
               "/properties: more than 256 names in one object");
}

TEST(SchemaNames, MasksAreWhatIsAccepted) {
  test::JsonTexts texts(7);
  std::vector<std::string> tokens = test::all_bytes();
  for (std::string& piece : texts.pieces(300)) tokens.push_back(std::move(piece));
  for (const char* text :
       {"\":1,\"a\":", "{\"a\":1,\"a\":", "\"a\"", "a\":", "ab\":1",
        "\\u0061\":", "u0061\":", "061\":1,\"b", "\"\"", "\",\"", "},\"a\":", "\"b\":1,\"b\":1"}) {
    tokens.emplace_back(text);
  }
  const auto vocabulary = test::vocabulary(tokens);
  size_t refused = 0;
  for (const char* schema :
       {"{}",
        R"({"type":"object","properties":{"a":{"type":"object"}},"additionalProperties":{}})"}) {
    const auto all = plain(schema)->over(vocabulary).value();
    const auto over = test::compile(schema, short_numbers()).value()->over(vocabulary).value();
    for (int round = 0; round < gen::test::fewer(40); ++round) {
      Matcher slow = Matcher::create(all).value();
      Matcher matcher = Matcher::create(over).value();
      std::vector<std::string> read = {""};
      const std::string wanted = texts.object(4);
      for (int step = 0; step < 40; ++step) {
        std::vector<uint64_t> mask(vocabulary->words());
        std::vector<uint64_t> possible(vocabulary->words());
        ASSERT_TRUE(matcher.mask(mask).ok());
        ASSERT_TRUE(slow.mask(possible).ok());
        std::vector<int32_t> allowed;
        for (int32_t token = 0; token < vocabulary->size(); ++token) {
          const bool may = test::has(possible, token);
          const bool twice =
              may && test::has_name_twice(read.back() + std::string(vocabulary->bytes(token)));
          refused += twice ? 1 : 0;
          ASSERT_EQ(test::has(mask, token), may && !twice)
              << read.back() << " " << vocabulary->bytes(token);
          if (may && !twice) allowed.push_back(token);
          if (!may && texts.below(16) != 0) continue;
          Matcher fork = matcher.fork();
          ASSERT_EQ(fork.accept_token(token).value(), may && !twice)
              << read.back() << " " << vocabulary->bytes(token);
        }
        const ByteSet bytes = matcher.valid_bytes();
        for (int byte = 0; byte < 256; ++byte) {
          ASSERT_EQ(bytes.has(static_cast<uint8_t>(byte)), test::has(mask, byte)) << read.back();
        }
        if (allowed.empty()) break;
        if (texts.below(8) == 0) {  // back, some of it from a fork
          const auto back = texts.below(static_cast<uint32_t>(read.size()));
          if (texts.below(2) == 0) matcher = matcher.fork();
          ASSERT_TRUE(matcher.rollback(back).ok());
          ASSERT_TRUE(slow.rollback(back).ok());
          read.resize(read.size() - back);
          continue;
        }
        // Mostly along the text that is wanted.
        int32_t next = allowed[texts.below(static_cast<uint32_t>(allowed.size()))];
        if (wanted.starts_with(read.back()) && texts.below(8) != 0) {
          std::vector<int32_t> along;
          for (const int32_t token : allowed) {
            const std::string_view rest = std::string_view(wanted).substr(read.back().size());
            if (!vocabulary->bytes(token).empty() && rest.starts_with(vocabulary->bytes(token))) {
              along.push_back(token);
            }
          }
          if (!along.empty()) next = along[texts.below(static_cast<uint32_t>(along.size()))];
        }
        const std::string text = read.back() + std::string(vocabulary->bytes(next));
        const bool ends = vocabulary->is_end(next);
        ASSERT_TRUE(matcher.accept_token(next).value());
        ASSERT_TRUE(slow.accept_token(next).value());
        read.push_back(text);
        if (ends) break;
      }
    }
  }
  EXPECT_GT(refused, static_cast<size_t>(gen::test::fewer(500)));
}

// Texts of many names cost the same for each.
TEST(SchemaNames, Many) {
  const auto grammar = test::compile("{}").value();
  Matcher matcher =
      Matcher::create(grammar->over(test::vocabulary(test::all_bytes())).value()).value();
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"n" + std::to_string(i) + "\":{\"n1\":0},";
  ASSERT_TRUE(matcher.accept_bytes(text).value());
  EXPECT_FALSE(matcher.accept_bytes("\"n777\"").value());
  EXPECT_TRUE(matcher.accept_bytes("\"n77").value());
  EXPECT_FALSE(matcher.accept_bytes("7\"").value());
  EXPECT_FALSE(matcher.valid_bytes().has('"'));
  EXPECT_TRUE(matcher.rollback(1).ok());
  EXPECT_TRUE(matcher.accept_bytes("\"m").value());
  EXPECT_TRUE(matcher.valid_bytes().has('"'));
  // A call that refuses leaves none of its names.
  std::string more = "x\":0,\"m\":0";
  for (int i = 0; i < 100; ++i) more += ",\"m" + std::to_string(i) + "\":0";
  EXPECT_FALSE(matcher.accept_bytes(more + "!").value());
  EXPECT_TRUE(matcher.valid_bytes().has('"'));
  EXPECT_TRUE(matcher.accept_bytes(more + "}").value());
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_LT(matcher.memory(), text.size() * 40);
}

}  // namespace
}  // namespace gen::grammar

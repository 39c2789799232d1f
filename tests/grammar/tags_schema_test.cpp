// SPDX-License-Identifier: Apache-2.0
// Schemas in structural tags: the texts between the tags are those of the schema alone, names that
// come twice and items that must differ included, and masks say what accepting says.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema_validator.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

Result<std::shared_ptr<const Grammar>> tags(const std::string& text) {
  return Grammar::from_tags(text);
}

// A tag <f> … </f> with the schema, and what else there is in the file.
std::string one_tag(const std::string& schema, const std::string& more = "") {
  return R"({"tags":[{"begin":"<f>","json_schema":)" + schema + R"(,"end":"</f>"}])" + more + "}";
}

struct Case {
  const char* schema;
  std::vector<const char*> texts;
};

std::vector<Case> cases() {
  return {
      {"true",
       {R"({"a":1,"a":2})", R"({"a":1,"b":2})", R"({"a":1,"\u0061":2})",
        R"({"a":{"a":1},"b":{"a":1}})", R"([{"a":1},{"a":1}])", R"([{"a":1},{"b":1,"b":1}])",
        R"( { "a" : 1 , "a" : 1 } )", R"("{\"a\":1,\"a\":1")", R"("[")", "1", "-1.5e3", "null",
        "[1,1]", "", "{"}},
      {R"({"uniqueItems":true})",
       {"[1,1]", "[1,2]", "[1,1.0]", "[[1,1],2]", "[[1],[1]]", R"([{"a":1,"b":2},{"b":2,"a":1}])",
        R"(["a","\u0061"])", "[]", "[ 1 , 2 ]", R"("[1,1]")", R"([{"a":1,"a":1}])"}},
      {R"({"type":"object","properties":{"x":{"type":"array","uniqueItems":true,"items":{"type":"string"}}},)"
       R"("required":["x"]})",
       {R"({"x":["a","b"]})", R"({"x":["a","a"]})", R"({"x":["a"],"x":["b"]})",
        R"({"y":1,"x":[],"y":1})", R"({"y":[1,1],"x":["",""]})", R"({"y":[1,1],"x":[]})"}},
      {R"({"type":"array","items":{"type":"integer"},"uniqueItems":true,"minItems":2})",
       {"[1]", "[1,2]", "[1,1]", "[1,10,1e1]"}},
  };
}

TEST(TagsSchema, AreWhatTheSchemaAloneIs) {
  size_t valid = 0;
  size_t invalid = 0;
  for (const Case& one : cases()) {
    test::Validator alone(one.schema);
    auto made = tags(one_tag(one.schema));
    ASSERT_TRUE(made.ok()) << made.status().message();
    test::Validator within(**made);
    for (const std::string text : one.texts) {
      const bool wanted = alone(text);
      ++(wanted ? valid : invalid);
      EXPECT_EQ(within("<f>" + text + "</f>"), wanted) << one.schema << " " << text;
      EXPECT_EQ(within("a {\"\",\"\": [1,1 <f>" + text + "</f>b\"[{"), wanted) << text;
      // What was read in one tag says nothing in the next one.
      EXPECT_EQ(within("<f>" + text + "</f>\"x\"<f>" + text + "</f>"), wanted) << text;
      // Free text behind it is no JSON.
      EXPECT_EQ(within("<f>" + text + "</f>{\"a\":1,\"a\":[1,1] [\""), wanted) << text;
      // Without a tag all of it is free text.
      EXPECT_TRUE(within("f>" + text + "<")) << text;
    }
  }
  EXPECT_GT(valid, 15U);
  EXPECT_GT(invalid, 12U);
}

TEST(TagsSchema, NoTextIsAPartOfOne) {
  auto made = tags(one_tag("true"));
  ASSERT_TRUE(made.ok());
  test::Validator within(**made);
  EXPECT_FALSE(within("<f>{}"));
  EXPECT_FALSE(within("<f>{}</f><f>"));
  EXPECT_TRUE(within("\x80\xF8"));
  EXPECT_FALSE(within("\xFC"));  // no text has it, and it is how grammar and reader talk
  EXPECT_FALSE(within("<f>\xFC{}</f>"));
  EXPECT_FALSE(within("<f>[\xFD]</f>"));
}

// Tags of two schemas with one begin are read side by side.
TEST(TagsSchema, MayBeginAlike) {
  auto made = tags(
      R"({"tags":[{"begin":"<f>","json_schema":{"items":{"type":"string"},"type":"array","uniqueItems":true},"end":"!"},)"
      R"({"begin":"<f>","json_schema":{"type":"array","items":{"maxLength":1}},"end":"?"}]})");
  ASSERT_TRUE(made.ok()) << made.status().message();
  test::Validator within(**made);
  EXPECT_TRUE(within(R"(<f>["aa","bb"]!)"));
  EXPECT_FALSE(within(R"(<f>["aa","aa"]!)"));
  EXPECT_FALSE(within(R"(<f>["aa","bb"]?)"));
  EXPECT_TRUE(within(R"(<f>["a","a"]?)"));
  EXPECT_FALSE(within(R"(<f>["a","a"]!)"));
  EXPECT_FALSE(within(R"(<f>[{"a":1,"a":1}]?)"));
}

// What another kind of tag may read as well is not watched: there names may come twice, and items
// cannot be told apart.
TEST(TagsSchema, AreNotWatchedWhereOtherTagsBeginAlike) {
  const auto both = [](const std::string& schema, const std::string& begin) {
    return R"({"tags":[{"begin":"<f>","json_schema":)" + schema + R"(,"end":"!"},{"begin":")" +
           begin + R"(","regex":".*","end":"?"}],"triggers":["<"]})";
  };
  auto made = tags(both("true", "<f>{"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  test::Validator within(**made);
  EXPECT_TRUE(within(R"(<f>{"a":1,"a":2}!)"));
  EXPECT_TRUE(within(R"(<f>{"a":1,"a":2}?)"));
  for (const char* begin : {"<f>", "<f", "<f>{"}) {
    const auto refused = tags(both(R"({"uniqueItems":true})", begin));
    ASSERT_FALSE(refused.ok()) << begin;
    EXPECT_NE(std::string(refused.status().message()).find("uniqueItems"), std::string::npos);
  }
}

TEST(TagsSchema, RefusalsNameTheTagThatStandsInTheWay) {
  const auto refusal = [](const std::string& schema, const std::string& other) {
    const auto made = tags(R"({"tags":[{"begin":"<f>","json_schema":)" + schema +
                           R"(,"end":"!"},)" + other + "]}");
    return made.ok() ? std::string() : std::string(made.status().message());
  };
  const std::string items = R"({"uniqueItems":true})";
  const std::string why =
      "line 1, column 39: in this json_schema, /uniqueItems: of items that may have more than 256 "
      "values, as tag 1, ";
  EXPECT_EQ(refusal(items, R"({"begin":"<f>{","regex":"[a-z]*","end":"?"})"),
            why + R"("<f>{", begins alike)");
  EXPECT_EQ(refusal(items, R"({"begin":"<r>","regex":".*","end":"?"})"),
            why + R"("<r>", may go on over the begin of another tag)");
  EXPECT_EQ(refusal(items, R"({"begin_token":"<|tool|>","regex":".*","end":"?"})"),
            why + R"("<|tool|>", may go on over the begin of another tag)");
  EXPECT_EQ(
      refusal(R"({"not":{"uniqueItems":true}})", R"({"begin":"<f>","regex":"a","end":"?"})"),
      "line 1, column 39: in this json_schema, /not/uniqueItems: its negation is not supported "
      "here, as tag 1, \"<f>\", begins alike");
  EXPECT_EQ(refusal(items, R"({"begin":"<g>","regex":"a","end":"?"})"), "");
}

// A tag whose content may go on over its own end, and over the begin of the schema's tag: what
// stands there is the schema's text in one way to read it, and any text in another.
TEST(TagsSchema, AreNotWatchedWhereTagsMayGoOnOverTheirBegins) {
  const auto beside = [](const std::string& schema, const std::string& other) {
    return R"({"tags":[{"begin":"<f>","json_schema":)" + schema + R"(,"end":"</f>"},)" + other +
           R"(],"triggers":["<"]})";
  };
  const char* const go_on[] = {R"({"begin":"<r>","regex":".*","end":"</r>"})",
                               R"({"begin":"<r>","regex":"[^!]*","end":"?"})",
                               R"({"begin":"<r>","gbnf":"root ::= [^!]*","end":"</r>"})"};
  for (const std::string other : go_on) {
    auto made = tags(beside("true", other));
    ASSERT_TRUE(made.ok()) << made.status().message();
    test::Validator within(**made);
    EXPECT_TRUE(within(R"(<f>{"a":1,"a":1}</f>)")) << other;
    const auto refused = tags(beside(R"({"uniqueItems":true})", other));
    ASSERT_FALSE(refused.ok()) << other;
    EXPECT_NE(std::string(refused.status().message()).find("uniqueItems"), std::string::npos);
  }
  // All of this is the first tag's content.
  auto made = tags(beside("true", go_on[0]));
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(test::Validator(**made)(R"(<r>x</r><f>{"a":1,"a":1}</f></r>)"));
  for (const std::string other : {R"({"begin":"<r>","regex":"[^<]*","end":"</r>"})",
                                  R"({"begin":"<r>","regex":"[a-z]*","end":"</r>"})",
                                  R"({"begin":"<r>","any_json":true,"end":"</r>"})"}) {
    auto watched = tags(beside(R"({"uniqueItems":true})", other));
    ASSERT_TRUE(watched.ok()) << other << watched.status().message();
    test::Validator within(**watched);
    EXPECT_FALSE(within("<f>[1,1]</f>")) << other;
    EXPECT_TRUE(within("<f>[1,2]</f>")) << other;
  }
  // A number goes on where the schema's tag begins with a digit, and has no end of its own.
  const auto digits = [](const std::string& end) {
    return R"({"tags":[{"begin":"<a>","json_schema":{"type":"integer"},"end":")" + end +
           R"("},{"begin":"5","json_schema":{"uniqueItems":true},"end":"!"}]})";
  };
  EXPECT_FALSE(tags(digits("")).ok());
}

// A token that is asked for by name comes whatever its text is.
TEST(TagsSchema, MasksHaveNamedTokensWithAnyText) {
  auto texts = test::all_bytes();
  texts.push_back(R"(""")");
  texts.push_back("[1,");
  const auto vocabulary = test::vocabulary(texts);
  for (const int32_t end : {256, 257}) {
    for (const char* schema : {"true", R"({"uniqueItems":true})"}) {
      auto made = tags(R"({"tags":[{"begin":"<f>","json_schema":)" + std::string(schema) +
                       R"(,"end_token":)" + std::to_string(end) + "}]}");
      ASSERT_TRUE(made.ok()) << made.status().message();
      Matcher matcher = Matcher::create((*made)->over(vocabulary).value()).value();
      ASSERT_TRUE(matcher.accept_bytes("<f>1").value());
      std::vector<uint64_t> mask(vocabulary->words());
      ASSERT_TRUE(matcher.mask(mask).ok());
      EXPECT_TRUE(test::has(mask, end)) << schema;
      EXPECT_TRUE(matcher.accept_token(end).value()) << schema;
    }
  }
}

TEST(TagsSchema, MayBeginWithTokens) {
  std::vector<std::string> texts = test::all_bytes();
  const auto vocabulary = test::vocabulary(texts, 2);  // <0> is 256
  auto made =
      tags(R"({"tags":[{"begin_token":256,"json_schema":{"uniqueItems":true},"end_token":257}]})");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto reads = [&](const std::string& text) {
    Matcher matcher = Matcher::create((*made)->over(vocabulary).value()).value();
    if (!matcher.accept_token(256).value()) return false;
    return matcher.accept_bytes(text).value() && matcher.accept_token(257).value();
  };
  EXPECT_TRUE(reads("[1,2]"));
  EXPECT_FALSE(reads("[1,1]"));
  EXPECT_TRUE(reads(R"({"a":[1],"b":1})"));
  EXPECT_FALSE(reads(R"({"a":[1],"a":1})"));
}

// Random walks of tokens that begin, hold and end values; at each place every token's bit is what
// accepting it says, also behind what was taken back.
TEST(TagsSchema, MasksAreWhatCanBeAccepted) {
  std::vector<std::string> texts = test::all_bytes();
  for (const char* piece : {"<f>",
                            "</f>",
                            "<f>{",
                            R"(<f>{"a":1,"a")",
                            R"(<f>{"a":1,"b")",
                            R"(<f>{"a":1,"a":1}</f>)",
                            R"(<f>{"a":1}</f><f>{"a":1,)",
                            R"("a":1)",
                            R"("b":[)",
                            R"({"a":)",
                            R"(,"a":)",
                            R"("})",
                            "[1,1]",
                            "[1,2]",
                            "<f>[1,1",
                            "<f>[1,1]</f>",
                            "<f>[1,10]</f>",
                            "],[",
                            "1,1",
                            "1,2",
                            "}</f>",
                            R"(]</f> "a":1,"a" <f>[)",
                            R"("a","a")",
                            R"(]</f><f>[1,1])",
                            R"(}</f><f>{"a":1,"a":1)"}) {
    texts.emplace_back(piece);
  }
  const auto vocabulary = test::vocabulary(texts, 1);
  for (const char* schema :
       {"true", R"({"uniqueItems":true})",
        R"({"type":["object","array"],"additionalProperties":{"uniqueItems":true},)"
        R"("items":{"type":["integer","array"],"items":{"type":"integer"}}})"}) {
    for (const char* more : {"", R"(,"free_text":false,"at_least_one":true)"}) {
      SCOPED_TRACE(std::string(schema) + more);
      auto made = tags(one_tag(schema, more));
      ASSERT_TRUE(made.ok()) << made.status().message();
      Matcher matcher = Matcher::create((*made)->over(vocabulary).value()).value();
      std::vector<uint64_t> mask(vocabulary->words());
      std::mt19937 random(7);
      for (int round = 0; round < 25; ++round) {
        matcher.reset();
        for (int step = 0; step < 12; ++step) {
          ASSERT_TRUE(matcher.mask(mask).ok());
          std::vector<int32_t> taken;
          for (int32_t token = 0; token < vocabulary->size(); ++token) {
            const bool takes = matcher.accept_token(token).value();
            ASSERT_EQ(takes, test::has(mask, token)) << vocabulary->bytes(token);
            if (!takes) continue;
            ASSERT_TRUE(matcher.rollback(1).ok());
            if (vocabulary->bytes(token).size() > 1 || token == '"' || token == '}') {
              taken.push_back(token);
            }
          }
          const ByteSet bytes = matcher.valid_bytes();
          for (int byte = 0; byte < 256; ++byte) {
            ASSERT_EQ(bytes.has(static_cast<uint8_t>(byte)), test::has(mask, byte)) << byte;
          }
          if (taken.empty()) break;
          ASSERT_TRUE(matcher.accept_token(taken[random() % taken.size()]).value());
        }
      }
    }
  }
}

// Of parts of Lark files nobody knows where in a text they begin.
TEST(TagsSchema, OfLarkFilesAreNotWatched) {
  const auto lark = Grammar::from_lark("start: %json {\"uniqueItems\":true}");
  ASSERT_FALSE(lark.ok());
  EXPECT_NE(std::string(lark.status().message()).find("uniqueItems"), std::string::npos);
  const auto within = tags(
      R"x({"tags":[{"begin":"<f>","lark":"start: %json {\"uniqueItems\":true}","end":"!"}]})x");
  ASSERT_FALSE(within.ok());
  EXPECT_NE(std::string(within.status().message()).find("uniqueItems"), std::string::npos);
}

}  // namespace
}  // namespace gen::grammar

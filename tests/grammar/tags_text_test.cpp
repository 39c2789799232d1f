// SPDX-License-Identifier: Apache-2.0
// Structural tags as JSON: the same language as tags that are put together by hand; what is wrong
// is told with its place.
#include "grammar/notation/tags_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/notation/gbnf.h"
#include "grammar/grammar.h"
#include "grammar/json/json.h"
#include "grammar/matcher/matcher.h"
#include "grammar/regex/regex.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

using Made = Result<std::shared_ptr<const Grammar>>;

Matcher matcher_of(const Made& made, const std::shared_ptr<const Vocabulary>& vocabulary) {
  return Matcher::create(made.value()->over(vocabulary).value()).value();
}

struct Case {
  const char* text;
  std::vector<Tag> (*tags)(Expressions& to);
  TagOptions options;
};

std::vector<Tag> number_and_word(Expressions& to) {
  Tag number;
  number.begin = "<n>";
  number.body = parse_regex("[12]+", RegexMatch::kWhole, to).value();
  number.end = "</n>";
  Tag word;
  word.begin = "<w\xC3\xA9>";
  word.body = parse_gbnf("root ::= \"a\" root | \"n\"", to).value();
  return {number, word};
}

std::vector<Tag> between_tokens(Expressions& to) {
  Tag tag;
  tag.begin_token = TokenTerm{false, 256, ""};
  tag.body = any_json_expression(to);
  tag.end = "n";
  tag.end_token = TokenTerm{false, -1, "<1>"};
  return {tag};
}

std::vector<Tag> schemas(Expressions& to) {
  Tag number;
  number.begin = "<n>";
  number.body = schema_expression(R"({"maximum": 2, "type": "integer"})", {}, to).value();
  number.end = "</n>";
  Tag any;
  any.begin = "<w>";
  any.body = schema_expression("true", {}, to).value();
  return {number, any};
}

std::vector<Case> cases() {
  const char* const by_text =
      " {\"tags\":[{\"begin\":\"<n>\",\"regex\":\"[12]+\",\"end\":\"<\\/n>\"} ,\n"
      "{\"begin\":\"<w\\u00E9>\",\"gbnf\":\"root ::= \\\"a\\\" root | \\\"n\\\"\"}]";
  static const std::string plain = std::string(by_text) + "}";
  static const std::string some =
      std::string(by_text) + ", \"at_least_one\" : true,\"triggers\":[ \"<w\",\"<n\" ]} ";
  static const std::string first =
      std::string(by_text) +
      ",\"stop_after_first\":true,\"free_text\":false,\"at_least_one\":false}";
  const char* const by_token =
      "{\"tags\":[{\"begin_token\":256,\"any_json\":true,\"end\":\"n\",\"end_token\":\"<1>\"}]}";
  const char* const by_schema =
      R"({"tags":[{"begin":"<n>","json_schema": {"maximum": 2, "type": "integer"} ,"end":"</n>"},)"
      R"({"begin":"<w>","json_schema":true}]})";
  const char* const by_lark =
      R"({"tags":[{"begin":"<n>","lark":"start: N+\nN: /[12]/","end":"</n>"},)"
      R"({"begin":"<w\u00e9>","lark":"start: \"a\" start | \"n\""}]})";
  TagOptions least;
  least.at_least_one = true;
  least.triggers = {"<w", "<n"};
  TagOptions watched;
  watched.watched = true;
  TagOptions once;
  once.stop_after_first = true;
  once.free_text = false;
  return {{plain.c_str(), number_and_word, {}},   {some.c_str(), number_and_word, least},
          {first.c_str(), number_and_word, once}, {by_token, between_tokens, {}},
          {by_schema, schemas, watched},          {by_lark, number_and_word, {}}};
}

// Walks both at random by tokens and compares all masks.
TEST(TagsText, IsWhatTagsByHandAre) {
  const auto vocabulary = test::vocabulary(test::all_bytes(), 2);
  const std::vector<int> letters = {'<',  'n', '>', '1', '/', 'w', 0xC3,
                                    0xA9, 'a', '{', '}', 256, 257};
  size_t which = 0;
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.text);
    const Made by_text = Grammar::from_tags(one.text);
    ASSERT_TRUE(by_text.ok()) << by_text.status().message();
    const Made by_hand = Grammar::from_tags(
        [&](Expressions& to) -> Result<std::vector<Tag>> { return one.tags(to); }, one.options);
    Matcher left = matcher_of(by_text, vocabulary);
    Matcher right = matcher_of(by_hand, vocabulary);
    std::mt19937 random(static_cast<uint32_t>(++which));
    size_t ended = 0;
    for (int round = 0; round < 60; ++round) {
      left.reset();
      right.reset();
      for (int step = 0; step < 25; ++step) {
        std::vector<uint64_t> a(vocabulary->words());
        std::vector<uint64_t> b(vocabulary->words());
        ASSERT_TRUE(left.mask(a).ok());
        ASSERT_TRUE(right.mask(b).ok());
        ASSERT_EQ(a, b);
        ASSERT_EQ(left.is_complete(), right.is_complete());
        std::vector<int32_t> likely;  // letters of the tags, so that tags come about
        for (const int c : letters) {
          if (test::has(a, c)) likely.push_back(c);
        }
        if (likely.empty()) break;
        const int32_t token = likely[random() % likely.size()];
        ASSERT_TRUE(left.accept_token(token).value());
        ASSERT_TRUE(right.accept_token(token).value());
        ended += token == '>' || token == 257 ? 1 : 0;
      }
    }
    EXPECT_GT(ended, 10U);
  }
}

TEST(TagsText, EscapesAreThoseOfJson) {
  const Made made = Grammar::from_tags(
      R"({"free_text":false,"tags":[{"begin":"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00\u00e9","regex":"x","end":"é"}]})");
  ASSERT_TRUE(made.ok()) << made.status().message();
  const auto vocabulary = test::vocabulary(test::all_bytes());
  Matcher matcher = matcher_of(made, vocabulary);
  ASSERT_TRUE(matcher.accept_bytes("\"\\/\b\f\n\r\tA\xF0\x9F\x98\x80\xC3\xA9x\xC3\xA9").value());
  EXPECT_TRUE(matcher.is_complete());
}

TEST(TagsText, FailuresTellThePlace) {
  const auto failure = [](const std::string& text) {
    const Made made = Grammar::from_tags(text);
    EXPECT_EQ(made.status().code(), Code::kGrammar) << text;
    return std::string(made.status().message());
  };
  EXPECT_EQ(failure(""), "line 1, column 1: expected an object");
  EXPECT_EQ(failure("{}"), "no tags");
  EXPECT_EQ(failure("{\"tags\":[]} x"), "line 1, column 13: text behind the tags");
  EXPECT_EQ(failure("{\"tags\":[],}"), "line 1, column 12: expected a string");
  EXPECT_EQ(failure("{\"tags\":[]\n,\"tags\":[]}"),
            "line 2, column 2: key \"tags\" is there twice");
  EXPECT_EQ(failure("{\"tags\":{}}"), "line 1, column 9: expected an array");
  EXPECT_EQ(failure("{\"colour\":1}"),
            "line 1, column 2: unknown key \"colour\"; there are tags, triggers, at_least_one, "
            "stop_after_first, free_text");
  EXPECT_EQ(failure("{\"free_text\":1}"), "line 1, column 14: expected true or false");
  EXPECT_EQ(failure("{\"triggers\" [1]}"), "line 1, column 13: expected a colon");
  EXPECT_EQ(failure("{\"triggers\":[\"a\" \"b\"]}"), "line 1, column 18: expected a comma or ]");
  EXPECT_EQ(
      failure("{\"tags\":[{\"begin\":\"a\"}]}"),
      "line 1, column 10: a tag without a content: gbnf, lark, regex, json_schema or any_json");
  EXPECT_EQ(failure("{\"tags\":[{\"regex\":\"a\",\"any_json\":true}]}"),
            "line 1, column 10: a tag with more than one content");
  EXPECT_EQ(failure("{\"tags\":[{\"any_json\":false}]}"),
            "line 1, column 11: any_json can only be true");
  EXPECT_EQ(failure("{\"tags\":[{\"regex\":\"ab(\"}]}"),
            "line 1, column 19: in this regex, line 1, column 3: ( without )");
  EXPECT_EQ(failure("{\"tags\":[{\"json_schema\":{\"type\":5}}]}"),
            "line 1, column 25: in this json_schema, /type: a type is a string");
  EXPECT_EQ(failure("{\"tags\":[{\"json_schema\":}]}"), "line 1, column 25: expected a value");
  EXPECT_EQ(failure("{\"tags\":[{\"json_schema\":{\"a]}]}"),
            "line 1, column 32: a string without an end");
  EXPECT_EQ(
      failure("{\"tags\":[{\"schema\":\"\"}]}"),
      "line 1, column 11: unknown key \"schema\"; there are begin, begin_token, gbnf, lark, regex, "
      "json_schema, any_json, end, end_token");
  EXPECT_EQ(failure("{\"tags\":[{\"begin_token\":-1}]}"),
            "line 1, column 25: expected the id or the text of a token");
  EXPECT_EQ(failure("{\"tags\":[{\"begin_token\":01}]}"),
            "line 1, column 25: a number that begins with 0");
  EXPECT_EQ(failure("{\"tags\":[{\"begin_token\":2147483648}]}"),
            "line 1, column 25: number above 2147483647");
  EXPECT_EQ(failure("{\"tags\":[{\"end_token\":\"\"}]}"),
            "line 1, column 23: a token without a name");
  EXPECT_EQ(failure("{\"a\\x\":1}"), "line 1, column 5: an escape that JSON has not");
  EXPECT_EQ(failure("{\"\\ud83dx\":1}"), "line 1, column 4: half a surrogate pair");
  EXPECT_EQ(failure("{\"\\ud83d\\u0041\":1}"), "line 1, column 4: half a surrogate pair");
  EXPECT_EQ(failure("{\"\\udc00\":1}"), "line 1, column 4: half a surrogate pair");
  EXPECT_EQ(failure("{\"ab"), "line 1, column 5: a string without an end");
  EXPECT_EQ(failure("{\"a\\"), "line 1, column 5: an escape that JSON has not");
  EXPECT_EQ(failure("{\"a\n\"}"), "line 1, column 4: a control character in a string");
  EXPECT_EQ(failure("{\"\xFF\"}"), "line 1, column 3: not UTF-8");
  EXPECT_EQ(failure("{\"tags\":[{\"begin\":\"a\",\"begin_token\":1,\"regex\":\"b\"}]}"),
            "tag 0 begins with a text and a token");
}

TEST(TagsText, BoundsOnTagsAndTriggers) {
  const auto text = [](size_t tags, size_t bytes) {
    std::string all = "{\"tags\":[";
    for (size_t i = 0; i < tags; ++i) {
      const std::string begin =
          std::to_string(10'000 + i) + "\\n" + std::string(bytes, 'x') + "\\n";
      all += std::string(i > 0 ? "," : "") + R"({"begin":")" + begin + R"(","regex":"b"})";
    }
    return all + "]}";
  };
  EXPECT_TRUE(Grammar::from_tags(text(1024, 1)).ok());
  EXPECT_STREQ(Grammar::from_tags(text(1025, 1)).status().message(), "1025 tags are above 1024");
  EXPECT_STREQ(Grammar::from_tags(text(20, 900)).status().message(),
               "20 triggers of 18140 bytes are above 1024 of 16384");
}

}  // namespace
}  // namespace gen::grammar

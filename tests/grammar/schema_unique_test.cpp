// SPDX-License-Identifier: Apache-2.0
// uniqueItems: which texts are valid, that no text comes to a dead end, and that masks, bytes and
// accepted tokens say the same; against a grammar that does not know of the rule together with
// another JSON parser, which compares items.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_texts.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema_validator.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

using Json = nlohmann::json;

bool all_differ(const Json& array) {
  for (size_t i = 0; i < array.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (array[i] == array[k]) return false;
    }
  }
  return true;
}

bool differs(const Json& value) { return !value.is_array() || all_differ(value); }

// Arrays in arrays, too.
bool differs_all_the_way(const Json& value) {
  return differs(value) &&
         (!value.is_array() || std::all_of(value.begin(), value.end(), differs_all_the_way));
}

TEST(SchemaUnique, Items) {
  const test::SchemaCase cases[] = {
      {R"({"uniqueItems":true})",
       {"1",
        "[]",
        "[1]",
        "[1,2]",
        "[0,false]",
        "[1,true]",
        R"([1,"1"])",
        "[[1],[2]]",
        R"([{"a":1},{"a":2}])",
        "[[1],1]",
        "[[1,1]]",
        R"(["a","A"])",
        "[1,10]",
        "[1,0.1]",
        R"([{},[],"",0,null,false])",
        "[1e5,1e-5]",
        "[[],[[]]]",
        "[0,0.1]",
        "[10,1,100]",
        "[1e99999999999999999999999999,1e99999999999999999999999998]",
        R"({"a":[1,1]})"},
       {"[1,1]",
        "[1,1.0]",
        "[1, 1e0]",
        "[10,1e1]",
        "[0.1E+1 , 1]",
        "[100,10e1]",
        "[0,-0]",
        "[0,0.0e5]",
        "[null,null]",
        "[true, false,true]",
        R"(["a","\u0061"])",
        R"(["/","\/"])",
        R"([{"a":1,"b":2},{"b":2,"a":1}])",
        R"([{"a":[1]},{ "a" : [ 1.0 ] }])",
        "[[1],[1]]",
        "[[],[]]",
        "[{},{}]",
        "[1,2,3,1]",
        R"(["\ud83e\udd99","🦙"])",
        R"([{"a":{"b":1,"c":2}},{"\u0061":{"c":20e-1,"b":1}}])",
        "[-1.50,-15e-1]",
        "[1e99999999999999999999999999,10e99999999999999999999999998]",
        "[1e-99999999999999999999999999,0.1e-99999999999999999999999998]",
        "[1e100000000000000000,10e99999999999999999]"}},
      {R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})",
       {"[0,1,2]", "[1,10,100]", "[1,-1]", "[12,1.2e2]"},
       {"[0,0]", "[0,-0.0]", "[1,1.0]", "[12,1.2e1]", "[1,2.5]"}},
      {R"({"items":{"minimum":1,"maximum":50,"type":"integer"},"uniqueItems":true})",
       {"[1,2,50]", "[]", "[1,10]"},
       {"[1,2,1]", "[51]", "[10,1e1]"}},
      {R"({"items":{"minimum":-40,"maximum":0,"type":"integer"},"uniqueItems":true})",
       {"[0,-1,-40]", "[-1,-1e1,0]"},
       {"[0,0e5]", "[-0,0]", "[0,0.0e1]"}},
      {R"({"items":{"minimum":1,"maximum":3,"type":"integer"},"uniqueItems":true,"minItems":3})",
       {"[1,2,3]", "[3,1,2.0]"},
       {"[1,2]", "[1,2,3,1]", "[1,2,1]"}},
      {R"({"items":{"type":"string","maxLength":2},"uniqueItems":true})",
       {R"(["a","ab","b",""])"},
       {R"(["a","a"])", R"(["abc"])", R"(["","a",""])"}},
      {R"({"prefixItems":[{"type":"boolean"},{"type":"boolean"}],"uniqueItems":true})",
       {"[true]", "[true,false]", "[false,true,1]", "[]", R"([true,false,"a",[true]])"},
       {"[true,true]", "[true,false,true]", "[false,true,1,1]", "[1]", "[false,true,1,1.0]"}},
      {R"({"prefixItems":[{"type":"boolean"},{"type":"boolean"}],"uniqueItems":true,"items":false,
          "minItems":2})",
       {"[true,false]", "[false,true]"},
       {"[true,true]", "[true]", "[true,false,1]"}},
      {R"({"anyOf":[{"items":{"type":"string"},"uniqueItems":true},
                    {"items":{"maxLength":1}}]})",
       {R"(["aa","bb"])", R"(["a","a"])", R"(["a","b"])", R"(["a","a",1,1])", R"(["aa",""])"},
       {R"(["aa","aa"])", R"(["a","bb","a"])", R"(["a","a","bb"])", R"(["aa","bb",1])"}},
      {R"({"items":{"items":{"type":"string"},"uniqueItems":true},"uniqueItems":true})",
       {R"([["a","b"],["b","a"],[]])"},
       {R"([["a","b"],["a","b"]])", R"([["a","a"]])", R"([[],[]])"}},
      {R"({"items":{"items":{"type":"string"},"uniqueItems":true}})",
       {R"([["a","b"],["a","b"]])", "[[],[],[]]"},
       {R"([["a","a"]])", R"([["a","b"],["b","b"]])"}},
      {R"({"properties":{"a":{"uniqueItems":true},"b":{"type":"array"}}})",
       {R"({"a":[1,2],"b":[1,1]})", R"({"b":[[1],[1]],"a":[[1,1]]})", R"({"c":[1,1]})"},
       {R"({"a":[1,1]})", R"({"b":[1,1],"a":[{},{}]})"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"object","required":["a"],
          "properties":{"a":{"type":"boolean"},"b":{"enum":["x","y"]}},
          "additionalProperties":false}})",
       {R"([{"a":true},{"a":false},{"a":true,"b":"x"},{"b":"y","a":true}])"},
       {R"([{"a":true},{"a":true}])", R"([{"a":true,"b":"x"},{"b":"\u0078","a":true}])"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","items":{"type":"integer"},
          "uniqueItems":true})",
       {"[0,1,10]", "[-1,1]"},
       {"[0,0]", "[-0,0]", "[1,1]"}},
      {R"({"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":2,
          "uniqueItems":true}]})",
       {R"("a")", R"(["a","b"])"},
       {R"(["a"])", R"(["a","a"])"}},
      {R"({"uniqueItems":true,"maxItems":1,"contains":{"const":1}})", {"[1]"}, {"[]", "[1,1]"}},
      // First items of one value each.
      {R"({"const":["a",[1],{"a":[]}],"uniqueItems":true})",
       {R"(["a",[1],{"a":[]}])", R"(["\u0061",[1.0],{"a":[]}])"},
       {R"(["a",[1]])", R"(["a",[1],[1]])"}},
      {R"({"enum":[["a","a"],["a","b"],[[0],[-0]],"x"],"uniqueItems":true})",
       {R"(["a","b"])", "\"x\""},
       {R"(["a","a"])", "[[0],[0]]"}},
      {R"({"prefixItems":[{"const":1},{"const":2}],"minItems":2,"uniqueItems":true})",
       {"[1,2]", "[1,2,3]", "[1,2,[1],[2]]"},
       {"[1]", "[1,2,1]", "[1,2,3,3]", "[1,2,2e0]"}},
      {R"({"prefixItems":[{"const":1},{"const":2},{"const":1}],"uniqueItems":true})",
       {"[]", "[1]", "[1,2]"},
       {"[1,2,1]", "[1,2,1,4]"}},
      {R"({"prefixItems":[{"const":1},{"enum":[1,2]}],"uniqueItems":true})",
       {"[1,2,3]", "[1]"},
       {"[1,1]", "[1,2,2]"}},
      {R"({"uniqueItems":false})", {"[1,1]"}, {}},
      // Together with contains.
      {R"({"contains":{"type":"null"},"uniqueItems":true})",
       {"[null]", "[1,null]", "[null,1,2]", "{}"},
       {"[]", "[1]", "[null,null]", "[1,null,1.0]"}},
      {R"({"items":{"type":"integer","minimum":0,"maximum":9},"contains":{"minimum":5},
          "minContains":2,"maxContains":3,"minItems":4,"uniqueItems":true})",
       {"[5,6,1,2]", "[0,9,1,8,7]", "[1,2,5,6]", "[5,6,7,0]"},
       {"[5,6,1]", "[5,5,1,2]", "[5,6,7,8]", "[5,1,2,3]", "[5,6,1,1]", "[5,6,7,8,0]"}},
      {R"({"contains":{"type":"array","items":{"type":"string"},"minItems":2},"uniqueItems":true})",
       {R"([["a","b"]])", R"([1,["a","a"],[]])"},
       {R"([["a"]])", R"([["a","b"],["a","b"]])"}},
      // Two items must be equal.
      {R"({"not":{"uniqueItems":true}})",
       {"[1,1]", "[1,2,1.0]", "[[],[]]", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]", "[1,1,1,2]",
        "[2,1,1,3]", "[[1],[1]]", R"(["a","\u0061"])"},
       {"[]", "[1]", "[1,2]", "{}", "1", "[[1,1]]", "[ ]", "[[1,1],[1]]", "[1,[1],[1,1]]"}},
      {R"({"items":{"not":{"uniqueItems":true}},"uniqueItems":true})",
       {"[[1,1]]", "[[1,1],[2,2]]", "[]", "[[1,1],[1,1,1]]"},
       {"[[1,1],[1,1]]", "[[1]]", "[[1,2],[1,1]]", "[[]]"}},
      {R"({"type":"array","oneOf":[{"uniqueItems":true},{"items":{"type":"string"}}]})",
       {"[1,2]", R"(["a","a"])", R"([1,"a"])"},
       {"[1,1]", R"(["a","b"])", "[]", R"(["a"])", R"(["a","a",1])"}},
      {R"({"type":"array","if":{"uniqueItems":true},"then":{"maxItems":2}})",
       {"[1,2]", "[]", "[1,1,2]", "[1,1]"},
       {"[1,2,3]", "[[1],[2],[1,1]]"}},
      {R"({"not":{"items":{"type":"integer"},"uniqueItems":true},"type":"array"})",
       {"[1,1]", "[null]", "[1,2,null]", "[null,null]"},
       {"[]", "[1]", "[1,2]"}},
      {R"({"properties":{"a":{"not":{"uniqueItems":true}},"b":{"uniqueItems":true}}})",
       {R"({"a":[1,1],"b":[1]})", R"({"b":[1,2],"a":[2,2]})"},
       {R"({"a":[1,2]})", R"({"a":[1,1],"b":[1,1]})", R"({"a":[1]})"}},
  };
  for (const test::SchemaCase& one : cases) test::check(one);
}

// Until draft 7, what stands beside $ref does not count, so it lists no values either.
TEST(SchemaUnique, ListsBesideAReference) {
  for (const char* list : {R"("enum":[1])", R"("const":1)"}) {
    const std::string schema = std::string(R"({"$schema":"http://json-schema.org/draft-07/schema#",
        "type":"array","uniqueItems":true,"items":{"$ref":"#/definitions/n",)") +
                               list + R"(},"definitions":{"n":{"type":"integer"}}})";
    test::check({schema.c_str(), {"[]", "[1]", "[2,3]"}, {"[2,2]", "[\"a\"]"}});
  }
  test::check({R"({"type":"array","uniqueItems":true,"items":{"$ref":"#/$defs/n","enum":[1]},
                   "$defs":{"n":{"type":"integer"}}})",
               {"[]", "[1]"},
               {"[2]", "[1,1]"}});
}

// From -9 to 9 there are 19 whole numbers, and of all that have a digit at each side of the point,
// 199.
TEST(SchemaUnique, DigitsLimitHowManyNumbersThereAre) {
  SchemaOptions options;
  options.style.digits = 1;
  options.style.plain = true;
  const auto refusal = [&](const char* type, size_t count) {
    const auto made =
        test::compile(R"({"type":"array","items":{"type":")" + std::string(type) +
                          R"("},"uniqueItems":true,"minItems":)" + std::to_string(count) + "}",
                      options);
    return made.ok() ? std::string() : std::string(made.status().message());
  };
  EXPECT_EQ(refusal("integer", 19), "");
  EXPECT_EQ(refusal("integer", 20), "/uniqueItems: of items, which may have less than 20 values");
  EXPECT_EQ(refusal("number", 199), "");
  EXPECT_NE(refusal("number", 100'000), "");
  options.style.digits = 2;
  EXPECT_EQ(refusal("integer", 199), "");
  EXPECT_NE(refusal("integer", 200), "");
}

TEST(SchemaUnique, Refused) {
  EXPECT_EQ(test::refusal(R"({"properties":{"a":{"contains":{"enum":[1,2]},"minContains":3,
                              "uniqueItems":true}}})"),
            "/properties/a/uniqueItems: of items that contains counts, which may have less than 3 "
            "values");
  EXPECT_EQ(test::refusal(R"({"items":{"enum":[1,2,3]},"contains":{"const":1},"maxContains":1,
                              "minItems":4,"uniqueItems":true})"),
            "/uniqueItems: of items that contains need not count, which may have less than 4 "
            "values");
  const std::string limits =
      "/uniqueItems: together with contains and other limits of single items";
  EXPECT_EQ(test::refusal(R"({"prefixItems":[{}],"contains":{"const":1},"uniqueItems":true})"),
            limits);
  EXPECT_EQ(test::refusal(R"({"contains":{"const":1},"allOf":[{"contains":{"const":2}}],
                              "uniqueItems":true})"),
            limits);
  const std::string negated =
      "/not/uniqueItems: its negation together with maxItems, contains or single items";
  EXPECT_EQ(test::refusal(R"({"not":{"uniqueItems":true},"maxItems":3})"), negated);
  EXPECT_EQ(test::refusal(R"({"not":{"uniqueItems":true},"prefixItems":[{}]})"), negated);
  EXPECT_EQ(test::refusal(R"({"not":{"uniqueItems":true},"contains":{"const":1}})"), negated);
  EXPECT_EQ(test::refusal(R"({"type":"array","not":{"uniqueItems":true},"maxItems":1})"),
            "#: no value is valid");
  EXPECT_EQ(test::refusal(R"({"type":"array","not":{"uniqueItems":true},"uniqueItems":true})"),
            "#: no value is valid");
  EXPECT_EQ(test::refusal(R"({"prefixItems":[{"enum":[1,2]},{"enum":[1,2]},{"enum":[1,2]}],
                              "minItems":3,"uniqueItems":true})"),
            "/uniqueItems: of item 2, which may have less than 3 values");
  EXPECT_EQ(test::refusal(R"({"type":"array","prefixItems":[{"const":1},{"const":1}],"minItems":2,
                              "uniqueItems":true})"),
            "#: no value is valid");
  EXPECT_EQ(test::refusal(R"({"const":[1,10e-1],"uniqueItems":true})"), "#: no value is valid");
  EXPECT_EQ(test::refusal(R"({"items":{"type":"integer","minimum":1,"maximum":50},"minItems":60,
                              "uniqueItems":true})"),
            "/uniqueItems: of items, which may have less than 60 values");
  EXPECT_EQ(test::refusal(
                R"({"type":"array","items":{"type":"boolean"},"minItems":3,"uniqueItems":true})"),
            "#: no value is valid");
}

struct Program {
  const char* schema;
  bool (*fits)(const Json& value);  // what uniqueItems asks for
  std::vector<const char*> tokens;
  const char* all = nullptr;  // all values, fit or not; else `schema` without uniqueItems
};

const Program kPrograms[] = {
    {R"({"uniqueItems":true})", differs, {"[0,0", "[[],[]", "1,1", "true,true", "null,", "{},{"}},
    {R"({"items":{"$ref":"#"},"uniqueItems":true})",
     differs_all_the_way,
     {"[[1],[1]", "[[],[", "],[", "]]", "[1,[1"}},
    {R"({"type":"array","items":{"type":"string"},"uniqueItems":true})",
     differs,
     {"[\"", "\",\"", "\",", "a\",\"a", "\"a\"", "\"]", "\\u0061", "u0061\"", "\"b\",\"b\""}},
    {R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})",
     differs,
     {"0,", ",0", "1.0", ".0", "0.", "e0", "0e", "1e1", "10,1", ",1,", "1]", "12"}},
    {R"({"type":"array","items":{"type":"integer","minimum":0,"maximum":40,"not":{"minimum":3,
       "maximum":38}},"minItems":2,"uniqueItems":true})",
     differs,
     {"0,1,2", ",39,40", "0,", ",4", "1e", "e1", "0.", "4e", "40e-", ",0", ",1,", "0.4"}},
    {R"({"type":"array","items":{"type":"integer","minimum":-40,"maximum":0},"uniqueItems":true})",
     differs,
     {"0,", ",0", "-0", "0e", "0.0", "[0,0", "-1,", ",-4", "[0,-1", "e1", "-40,", ",0e"}},
    {R"({"type":"array","uniqueItems":true,"items":{"type":"object","required":["a","b","c"],
        "properties":{"a":{"type":"boolean"},"b":{"type":"boolean"},"c":{"type":"boolean"}},
        "additionalProperties":false}})",
     differs,
     {"[{\"a\":true,\"b\":true,\"c\":true}", ",{\"b\":true,\"a\":true,", "\"c\":true}",
      "\"c\":false}", "\"c\":", ",{\"c\":true,\"b\":true,", "\"a\":true}", "\"a\":"}},
    {R"({"type":"array","items":{"pattern":"^[ab]{1,9}$","type":"string"},"uniqueItems":true})",
     differs,
     {"[\"a\",", "\",\"", "ab", "aaaa", "bbbb", "\"a", "a\"", "\\u0062", "[\"a\",\"a"}},
    {R"({"type":"array","items":{"pattern":"^(a*|\\nb?)$","type":"string"},"uniqueItems":true})",
     differs,
     {"[\"\\n\",", "\\n", "\\nb", "\"\\n", "\\u000a", "a\",", "\",\"", "\"\\nb\","}},
    {R"({"type":"array","items":{"maxLength":1,"type":"string"},"uniqueItems":true})",
     differs,
     {"[\"a\",", "\",\"", "\"\",", "\"\"", ",\"a\"", "a\"", "\\u0062"}},
    {R"({"prefixItems":[{"type":"boolean"},{"type":"boolean"}],"items":{"type":"boolean"},
        "type":"array","uniqueItems":true})",
     differs,
     {"[true", "true,", ",true", "false,", "e,f", "e,t", "true,false", "],", "[false,true"}},
    {R"({"type":"array","uniqueItems":true,"items":{"type":"object","required":["a"],
        "properties":{"a":{"type":"boolean"},"b":{"enum":["x","y"]}},"additionalProperties":false}})",
     differs,
     {"{\"a\":true}", ",{\"a\":", "{\"a\":true,", "\"b\":\"x\"", "true}", "false}", "},{\"",
      "\"x\"}", "{\"b\":\"y\",\"a\":", "[{\"a\":true},{\"a\":true"}},
    {R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{}}}})",
     differs,
     {"{\"a\":true}", "{},", ",{\"a\":1", "{\"a\":", "},{}", "}]", "},{\"a\":", "\"b\":1}",
      ",\"b\":"}},
    {R"({"type":"array","uniqueItems":true,"items":{"type":"array","uniqueItems":true,"maxItems":2,
        "items":{"enum":[1,2,"x"]}}})",
     [](const Json& value) { return all_differ(value) && differs_all_the_way(value); },
     {"[1,2]", ",[1,", "[],", ",[", "2],[1", "[\"x\",1", "[[1],[1", "[[1,2],[1,2"}},
    {R"({"type":"array","anyOf":[{"items":{"type":"string"},"uniqueItems":true},
        {"items":{"type":"string","maxLength":1}}]})",
     [](const Json& value) {
       return all_differ(value) || std::all_of(value.begin(), value.end(), [](const Json& one) {
                const auto text = one.get<std::string>();
                return std::count_if(text.begin(), text.end(),
                                     [](char c) { return (c & 0xC0) != 0x80; }) <= 1;
              });
     },
     {"[\"a\",", "\"a\",\"a\"", "\"aa\",", "\",\"", "\"aa", "\"]", "a\"", "aa\""}},
    {R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true},
        "b":{"type":"array"}},"additionalProperties":false})",
     [](const Json& value) { return !value.contains("a") || all_differ(value["a"]); },
     {"{\"a\":[", "\"b\":[1,1]", "[1,1]", "[1,1", "],\"b\":[", "1,", ",1", "[[1],[1]]"}},
    {R"({"type":"array","items":{"type":"string"},"not":{"uniqueItems":true}})",
     [](const Json& value) { return !all_differ(value); },
     {"[\"a\",", "\",\"", "a\"", "\"a\",\"a\"", "\"a\"]", "[\"a\"]", "[]", "\"]", "\\u0061\"",
      ",\"b"},
     R"({"type":"array","items":{"type":"string"}})"},
    {R"({"type":"array","oneOf":[{"uniqueItems":true},{"items":{"type":"string"}}]})",
     [](const Json& value) {
       return all_differ(value) != std::all_of(value.begin(), value.end(),
                                               [](const Json& one) { return one.is_string(); });
     },
     {"[\"a\",", "\",\"", "a\"", "\"a\",\"a\"", "\"]", "[1", ",1", "[\"a\"]", "[]", "1]",
      "[\"a\",1,"},
     R"({"type":"array"})"},
    {R"({"type":"array","items":{"not":{"uniqueItems":true},"type":"array","items":{"enum":["x","y"]}},
        "uniqueItems":true})",
     [](const Json& value) {
       return all_differ(value) && std::none_of(value.begin(), value.end(), all_differ);
     },
     {"[[", "],[", "[\"x\",\"x\"]", "\"x\",", "\"y\"]", "[\"x\"]", "\"x\",\"x\"],[\"x\",\"x\"]",
      "\"]", "]]"},
     R"({"type":"array","items":{"type":"array","items":{"enum":["x","y"]}}})"},
    {R"({"type":"array","items":{"type":"string"},"contains":{"minLength":2},"uniqueItems":true})",
     differs,
     {"[\"aa\",", "\",\"", "aa\"", "\"aa\"]", "[\"a\"", "\"]", "bb", "\"b\",\"b\""}},
    {R"({"type":"array","items":{"type":"integer","minimum":0,"maximum":9},"contains":{"minimum":5},
        "minContains":2,"maxContains":3,"minItems":4,"uniqueItems":true})",
     differs,
     {"[5,6,", "7,", ",8", "[0,", "1,2", "[1,2,3,4,", ",9", "9]", "5,6", "0]"}},
};

// Whether the text can become one that fits, by trying: bytes of `alphabet`, at most `depth` more.
bool can_become(Matcher& plain, std::string& text, const Program& program, int depth, int& left) {
  if (plain.is_complete()) {
    const Json value = Json::parse(text, nullptr, false);
    if (!value.is_discarded() && program.fits(value)) return true;
  }
  if (depth == 0 || --left < 0) return false;
  const ByteSet valid = plain.valid_bytes();
  for (const char c : std::string_view("]}\"0157.ea,b:-xtruflsn{[")) {
    if (!valid.has(static_cast<uint8_t>(c))) continue;
    EXPECT_TRUE(plain.accept_bytes(std::string_view(&c, 1)).value());
    text.push_back(c);
    const bool found = can_become(plain, text, program, depth - 1, left);
    text.pop_back();
    EXPECT_TRUE(plain.rollback(1).ok());
    if (found) return true;
  }
  return false;
}

// A way on to the end that the matcher offers, byte by byte.
std::string finish(Matcher& matcher) {
  std::string text;
  for (int i = 0; i < 200 && !matcher.is_complete(); ++i) {
    const ByteSet valid = matcher.valid_bytes();
    int next = -1;
    for (const char c : std::string_view("\"]}")) {
      if (next < 0 && valid.has(static_cast<uint8_t>(c))) next = static_cast<uint8_t>(c);
    }
    for (int byte = i % 3 == 0 ? 0x30 : 0x21; byte < 0x7F && next < 0; ++byte) {
      if (valid.has(static_cast<uint8_t>(byte))) next = byte;
    }
    for (int byte = 0; byte < 256 && next < 0; ++byte) {
      if (valid.has(static_cast<uint8_t>(byte))) next = byte;
    }
    if (next < 0) return text + "(dead)";
    text.push_back(static_cast<char>(next));
    EXPECT_TRUE(matcher.accept_bytes(text.substr(text.size() - 1)).value());
  }
  return text;
}

class Random {
 public:
  Random(const Program& program, uint32_t seed) : program_(program), texts_(seed) {
    SchemaOptions options;
    options.style.digits = 2;
    options.style.space = 1;
    std::vector<std::string> tokens = test::all_bytes();
    for (const char* token : program.tokens) tokens.emplace_back(token);
    for (std::string& piece : texts_.pieces(30)) tokens.push_back(std::move(piece));
    vocabulary_ = test::vocabulary(tokens);
    grammar_ = test::compile(program.schema, options).value()->over(vocabulary_).value();
    options.ignored = {"uniqueItems"};
    Expressions expressions;
    const char* const all = program.all != nullptr ? program.all : program.schema;
    const ExprId root = schema_expression(all, options, expressions).value();
    const JsonRules names = {true};
    all_ =
        Grammar::from_expressions(expressions, root, {}, names).value()->over(vocabulary_).value();
  }

  void run(int steps) {
    Matcher matcher = Matcher::create(grammar_).value();
    Matcher plain = Matcher::create(all_).value();
    std::vector<std::string> read = {""};
    for (int step = 0; step < steps; ++step) {
      std::vector<uint64_t> mask(vocabulary_->words());
      std::vector<uint64_t> possible(vocabulary_->words());
      ASSERT_TRUE(matcher.mask(mask).ok());
      ASSERT_TRUE(plain.mask(possible).ok());
      std::vector<int32_t> allowed;
      for (int32_t token = 0; token < vocabulary_->size(); ++token) {
        const bool may = test::has(mask, token);
        ASSERT_LE(may, test::has(possible, token)) << where(read, token);
        if (may) allowed.push_back(token);
        if (!test::has(possible, token)) continue;
        Matcher fork = matcher.fork();
        ASSERT_EQ(fork.accept_token(token).value(), may) << where(read, token);
        if (vocabulary_->is_end(token)) {
          ASSERT_EQ(may, program_.fits(Json::parse(read.back()))) << where(read, token);
          continue;
        }
        if (!may) {
          ++n_refused;
          if (texts_.below(25) == 0) {
            Matcher behind = plain.fork();
            ASSERT_TRUE(behind.accept_token(token).value());
            std::string text = read.back() + std::string(vocabulary_->bytes(token));
            int left = 300;
            ASSERT_FALSE(can_become(behind, text, program_, 6, left)) << where(read, token);
          }
        } else if (texts_.below(20) == 0) {
          const std::string begun = read.back() + std::string(vocabulary_->bytes(token));
          const std::string text = begun + finish(fork);
          const Json value = Json::parse(text, nullptr, false);
          ASSERT_TRUE(fork.is_complete() && program_.fits(value)) << begun << " then " << text;
          plain.reset();
          ASSERT_TRUE(plain.accept_bytes(text).value() && plain.is_complete()) << text;
          plain.reset();
          ASSERT_TRUE(plain.accept_bytes(read.back()).value());
        }
      }
      const ByteSet bytes = matcher.valid_bytes();
      for (int byte = 0; byte < 256; ++byte) {
        ASSERT_EQ(bytes.has(static_cast<uint8_t>(byte)), test::has(mask, byte))
            << where(read, byte);
      }
      ASSERT_FALSE(allowed.empty()) << read.back();
      if (texts_.below(10) == 0) {  // back, some of it from a fork
        const auto back = texts_.below(static_cast<uint32_t>(read.size()));
        if (texts_.below(2) == 0) matcher = matcher.fork();
        ASSERT_TRUE(matcher.rollback(back).ok());
        read.resize(read.size() - back);
        plain.reset();
        ASSERT_TRUE(plain.accept_bytes(read.back()).value());
        continue;
      }
      // Mostly tokens of several bytes, and not those that end.
      int32_t next = -1;
      for (int i = 0; i < 8; ++i) {
        next = allowed[texts_.below(static_cast<uint32_t>(allowed.size()))];
        const std::string_view piece = vocabulary_->bytes(next);
        if (piece.size() > 1 || (piece.size() == 1 && piece[0] != ']' && texts_.below(3) == 0)) {
          break;
        }
      }
      ASSERT_TRUE(matcher.accept_token(next).value());
      if (vocabulary_->is_end(next)) return;
      read.push_back(read.back() + std::string(vocabulary_->bytes(next)));
      ASSERT_TRUE(plain.accept_bytes(vocabulary_->bytes(next)).value());
    }
  }

  size_t n_refused = 0;

 private:
  std::string where(const std::vector<std::string>& read, int32_t token) const {
    return std::string(program_.schema) + " " + read.back() + " and " +
           std::string(vocabulary_->bytes(token));
  }

  const Program& program_;
  test::JsonTexts texts_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const TokenGrammar> grammar_;
  std::shared_ptr<const TokenGrammar> all_;
};

TEST(SchemaUnique, MasksAreWhatIsAcceptedAndNothingIsADeadEnd) {
  const char* rounds = std::getenv("GEN_UNIQUE_ROUNDS");
  const auto count = static_cast<uint32_t>(rounds != nullptr ? std::atoi(rounds) : 2);
  size_t n_refused = 0;
  for (uint32_t round = 0; round < count; ++round) {
    for (size_t i = 0; i < std::size(kPrograms); ++i) {
      Random random(kPrograms[i], 100 * round + static_cast<uint32_t>(i));
      for (int text = 0; text < 3; ++text) {
        random.run(25);
        if (testing::Test::HasFatalFailure()) return;
      }
      n_refused += random.n_refused;
    }
  }
  EXPECT_GT(n_refused, std::size(kPrograms));
}

// Where an array has no item yet, or one: tokens that end it at once.
TEST(SchemaUnique, MasksOfShortTexts) {
  std::vector<std::string> tokens = test::all_bytes();
  for (const char* token :
       {"[]", "[1]", "1]",      "]]", "[[",  "\"]", "a\"]", "[\"a\"]", "[[1]]", "[1,1]", "1,1]",
        "]",  "],[", "[[1,1]]", "2]", ",1]", ",1",  "[[]",  "]}",      "[1]}",  "1]}"}) {
    tokens.emplace_back(token);
  }
  const auto vocabulary = test::vocabulary(tokens);
  for (const char* schema :
       {R"({"not":{"uniqueItems":true}})", R"({"uniqueItems":true})",
        R"({"type":"array","items":{"not":{"uniqueItems":true}}})",
        R"({"type":"array","oneOf":[{"uniqueItems":true},{"items":{"type":"string"}}]})",
        R"({"additionalProperties":{"type":"array","not":{"uniqueItems":true}}})",
        R"({"contains":{"const":1},"uniqueItems":true})"}) {
    const auto grammar = test::compile(schema).value()->over(vocabulary).value();
    Matcher matcher = Matcher::create(grammar).value();
    size_t refused = 0;
    for (const char* text :
         {"", "[", "[1", "[\"a", "[[", "[[1", "[1,", "[[1,", "{\"a\":[", "{\"a\":[1", "[[1,1],[",
          "[[1,1],[1", "{\"a\":", "[1,2", "[ ", "[1 "}) {
      matcher.reset();
      if (!matcher.accept_bytes(text).value()) continue;
      std::vector<uint64_t> mask(vocabulary->words());
      ASSERT_TRUE(matcher.mask(mask).ok());
      const ByteSet bytes = matcher.valid_bytes();
      for (int32_t token = 0; token < vocabulary->size(); ++token) {
        Matcher fork = matcher.fork();
        const bool taken = fork.accept_token(token).value();
        refused += taken ? 0 : 1;
        ASSERT_EQ(taken, test::has(mask, token))
            << schema << " " << text << " and " << vocabulary->bytes(token);
        if (token < 256) {
          ASSERT_EQ(taken, bytes.has(static_cast<uint8_t>(token)))
              << schema << " " << text << token;
        }
      }
    }
    EXPECT_GT(refused, 100U);
  }
}

// What can only become an item that is there is not begun.
TEST(SchemaUnique, NoDeadEnds) {
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {R"({"items":{"minimum":-40,"maximum":0,"type":"integer"},"uniqueItems":true})",
       {"[0,0", "[-1,0,-4,-40,0", "[0,0e"}},
      {R"({"items":{"type":"object","required":["a","b","c"],"additionalProperties":false,
          "properties":{"a":{"type":"boolean"},"b":{"type":"boolean"},"c":{"type":"boolean"}}},
          "uniqueItems":true})",
       {R"([{"a":true,"b":true,"c":true},{"b":true,"a":true,"c":t)"}},
      {R"({"items":{"type":"boolean"},"prefixItems":[true],"uniqueItems":true})",
       {"[true,t", "[1,true,t", "[1,true,false,"}},
      {R"({"uniqueItems":true})", {"[null,n", "[1,0,0e", "[true,[true],true"}},
      {R"({"items":{"maxItems":0,"type":"array"},"uniqueItems":true})", {"[[],"}},
  };
  for (const auto& [schema, texts] : cases) {
    const auto grammar = test::compile(schema).value();
    const auto over = grammar->over(test::vocabulary(test::all_bytes())).value();
    for (const char* text : texts) {
      Matcher matcher = Matcher::create(over).value();
      EXPECT_FALSE(matcher.accept_bytes(text).value()) << schema << " " << text;
      const std::string_view all = text;
      if (!matcher.accept_bytes(all.substr(0, all.size() - 1)).value()) continue;
      EXPECT_FALSE(matcher.valid_bytes().has(static_cast<uint8_t>(all.back()))) << schema << text;
    }
  }
}

// Texts that only one way can end: after every byte it is still open.
TEST(SchemaUnique, TheOnlyWayIsFound) {
  const std::pair<const char*, const char*> cases[] = {
      // "1." can only become 10, by 1.0e1: the one zero behind the point must be there.
      {R"({"items":{"minimum":-100,"maximum":10,"type":"integer"},"uniqueItems":true})",
       "[1,1.0e1]"},
      // The name c was begun before what is still missing, which comes behind it.
      {R"({"items":{"type":"object","required":["a","b","c"],"additionalProperties":false,
          "properties":{"a":{"type":"boolean"},"b":{"type":"boolean"},"c":{"type":"boolean"}}},
          "uniqueItems":true})",
       R"([{"a":true,"b":true,"c":true},{"a":true,"b":true,"c":false},{"c":true,"b":true,"a":false}])"},
  };
  for (const auto& [schema, text] : cases) {
    const auto grammar = test::compile(schema).value();
    Matcher matcher =
        Matcher::create(grammar->over(test::vocabulary(test::all_bytes())).value()).value();
    for (const char* at = text; *at != '\0'; ++at) {
      ASSERT_TRUE(matcher.accept_bytes(std::string_view(at, 1)).value())
          << schema << " " << text << " at " << (at - text);
    }
    EXPECT_TRUE(matcher.is_complete()) << text;
  }
}

// Behind an item that comes again only the schema that allows it is left, within one token, too.
TEST(SchemaUnique, MasksForgetASchemaThatWasLeft) {
  std::vector<std::string> tokens = test::all_bytes();
  for (const char* token : {",\"z", ",\"b", "]", ",\"bz"}) tokens.emplace_back(token);
  const auto grammar = test::compile(R"({"anyOf":[
      {"type":"array","items":{"type":"string"},"uniqueItems":true},
      {"type":"array","items":{"type":"string","pattern":"^[ab]*$"}}]})")
                           .value();
  Matcher matcher = Matcher::create(grammar->over(test::vocabulary(tokens)).value()).value();
  std::vector<uint64_t> mask(tokens.size() / 64 + 1);
  const auto allowed = [&](const char* text) {
    matcher.reset();
    EXPECT_TRUE(matcher.accept_bytes(text).value()) << text;
    EXPECT_TRUE(matcher.mask(mask).ok());
    return std::vector<bool>{test::has(mask, 256), test::has(mask, 257), test::has(mask, 258),
                             test::has(mask, 259)};
  };
  EXPECT_EQ(allowed("[\"a\",\"b\""), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(allowed("[\"a\",\"a\""), (std::vector<bool>{false, true, true, false}));
}

// A string that can become endlessly many may lose that by an escape.
TEST(SchemaUnique, MasksSeeWhatEscapesLeadTo) {
  std::vector<std::string> tokens = test::all_bytes();
  for (const char* token : {"a", "aa", "\\n", "\\nb", "\"\\nb"}) tokens.emplace_back(token);
  const auto grammar = test::compile(
      R"({"type":"array","items":{"type":"string","pattern":"^(a*|\\nb?)$"},"uniqueItems":true})");
  const auto over = grammar.value()->over(test::vocabulary(tokens)).value();
  Matcher matcher = Matcher::create(over).value();
  std::vector<uint64_t> mask(tokens.size() / 64 + 1);
  const auto allowed = [&](const char* text) {
    matcher.reset();
    EXPECT_TRUE(matcher.accept_bytes(text).value()) << text;
    EXPECT_TRUE(matcher.mask(mask).ok());
    return std::vector<bool>{test::has(mask, 'a'), test::has(mask, 257), test::has(mask, 258),
                             test::has(mask, 259)};
  };
  EXPECT_EQ(allowed(R"(["\n",")"), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(allowed(R"(["\nb",")"), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(allowed(R"(["\n","\nb",")"), (std::vector<bool>{true, true, false, false}));
}

}  // namespace
}  // namespace gen::grammar

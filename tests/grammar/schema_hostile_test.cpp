// SPDX-License-Identifier: Apache-2.0
// Schemas that nobody writes but an attacker: what they may cost is bounded, in memory and in what
// is looked at (no clock), and names that the compiler uses itself mean nothing in a schema.
#include <gtest/gtest.h>

#include <string>

#include "grammar/schema_validator.h"

namespace gen::grammar {
namespace {

using test::check;
using test::refusal;
using test::Validator;

std::string repeated(size_t count, const std::string& begin, const std::string& end) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += (i > 0 ? "," : "") + begin + std::to_string(i) + end;
  return all;
}

TEST(SchemaHostile, NamesOfTheCompilerAreNoKeywords) {
  for (const char* schema : {R"({"\u0001any":5})", R"({"\u0001any":"x"})",
                             R"({"\u0001items":[false]})", R"({"not":{"not":{"\u0001any":7}}})"}) {
    check({schema, {"[1]", "null"}, {}});
  }
  EXPECT_NE(refusal(R"({"$ref":"#/pattern","\u0002pattern":{"type":"null"}})").find("unresolved"),
            std::string::npos);
}

// Every node of a resource would have the whole URI.
TEST(SchemaHostile, UrisAreShort) {
  const std::string longest = "http://x.y/" + std::string(2037, 'a');
  EXPECT_EQ(refusal(R"({"$id":")" + longest + R"("})"), "");
  EXPECT_EQ(refusal(R"({"items":{"$id":")" + longest + R"(a"}})"),
            "/items/$id: a URI of more than 2048 bytes");
  EXPECT_EQ(refusal(R"({"$id":")" + longest + R"(/","items":{"$id":"b"}})"),
            "/$id: a URI of more than 2048 bytes");
  EXPECT_EQ(refusal(R"({"$schema":"http://json-schema.org/draft-04/schema#","not":{"id":")" +
                    longest + R"(a"}})"),
            "/not/id: a URI of more than 2048 bytes");
}

TEST(SchemaHostile, ChainsOfReferences) {
  const auto chain = [](size_t length) {
    std::string defs;
    for (size_t i = 0; i < length; ++i) {
      defs +=
          "\"a" + std::to_string(i) + R"(":{"$ref":"#/$defs/a)" + std::to_string(i + 1) + "\"},";
    }
    return R"({"unevaluatedProperties":false,"$ref":"#/$defs/a0","$defs":{)" + defs + "\"a" +
           std::to_string(length) + R"(":{"properties":{"b":true}}}})";
  };
  check({chain(20).c_str(), {R"({"b":1})"}, {R"({"c":1})"}});
  EXPECT_EQ(refusal(chain(1'000)).find("/unevaluatedProperties: beside more than 32 schemas"), 0U);
  EXPECT_NE(refusal(chain(20'000)).find("more than 200000 alternatives"), std::string::npos);
}

TEST(SchemaHostile, ManySchemasOfOneValue) {
  // A bit for each way in which items count: 64 of them are no shift.
  for (const size_t count : {17U, 64U, 65U}) {
    EXPECT_EQ(refusal(R"({"allOf":[)" + repeated(count, R"({"contains":{"const":)", "}}") + "]}"),
              "/contains: too many counts");
  }
  EXPECT_NE(refusal(R"({"allOf":[)" + repeated(60'000, R"({"a":)", "}") + "]}")
                .find("more than 200000 alternatives"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"not":{"oneOf":[)" + repeated(40'000, R"({"minimum":)", "}") + "]}}")
                .find("more than 200000 alternatives"),
            std::string::npos);
}

// Each of five members, whichever it is, shows something: 200 names to the power of five.
TEST(SchemaHostile, MembersThatShowSomething) {
  std::string names;
  for (int i = 0; i < 200; ++i) names += (i > 0 ? ",\"n" : "\"n") + std::to_string(i) + "\":{}";
  std::string some;
  for (const char c : {'a', 'b', 'c', 'd', 'e'}) {
    some +=
        std::string(c > 'a' ? "," : "") + R"({"not":{"propertyNames":{"pattern":"^)" + c + "\"}}}";
  }
  EXPECT_NE(refusal(R"({"properties":{)" + names + R"(},"allOf":[)" + some + "]}")
                .find("more than 200000 alternatives"),
            std::string::npos);
}

TEST(SchemaHostile, MembersThatShowManyThings) {
  const auto some = [](size_t count) {
    return R"({"not":{"anyOf":[)" + repeated(count, R"({"patternProperties":{"^)", R"(":false}})") +
           "]}}";
  };
  Validator six(R"({"type":"object","allOf":[)" + some(6) + "]}");
  EXPECT_TRUE(six(R"({"0":1,"11":1,"2":1,"3":1,"4":1,"5":1})"));
  EXPECT_FALSE(six(R"({"0":1,"11":1,"2":1,"3":1,"4":1,"6":1})"));
  EXPECT_EQ(refusal(R"({"type":"object","allOf":[)" + some(7) + "]}"),
            "/properties: more than 6 conditions that some member must meet in one object");
}

// Those that list their values are compared by these, not each with each.
TEST(SchemaHostile, LongListsOfValues) {
  Validator texts(R"({"oneOf":[)" + repeated(2'000, R"({"const":"v)", "\"}") + "]}");
  for (const char* text : {R"("v0")", R"("v1999")", R"("\u0076777")"})
    EXPECT_TRUE(texts(text)) << text;
  for (const char* text : {R"("v2000")", R"("v")", "0"}) EXPECT_FALSE(texts(text)) << text;
  Validator numbers(R"({"oneOf":[)" + repeated(500, R"({"const":)", "}") + "]}");
  for (const char* text : {"0", "499", "1.00e2"}) EXPECT_TRUE(numbers(text)) << text;
  for (const char* text : {"500", "-1", "1.5"}) EXPECT_FALSE(numbers(text)) << text;
  EXPECT_EQ(refusal(R"({"enum":[)" + repeated(60'000, "", "") + "]}"),
            "/enum: numbers take an automaton of more than 400000 states");
  check({R"({"oneOf":[{"const":1},{"enum":[2,1.0,"a"]},{"enum":["a",3,[2]]},{"const":null},
                      {"type":"number","maximum":0},{"const":[2]},{"type":"array","maxItems":0},
                      {"enum":[null]}]})",
         {"2", "3", "-1", "[]"},
         {"1", "4", "[2]", "[3]", "null", "\"a\"", "\"b\""}});
  check(
      {R"({"not":{"oneOf":[{"const":1},{"enum":[2,1.0,"a"]},{"enum":["a",3,[2]]},{"type":"number","maximum":0},
                             {"const":[2]},{"type":"array","maxItems":0}]}})",
       {"1", "4", "[2]", "[3]", "null", "\"a\"", "{}"},
       {"2", "3", "-1", "[]"}});
}

// Where a schema is expected, anything else is a mistake of its author, not a schema for all
// values.
TEST(SchemaHostile, WhatIsNoSchemaIsRefused) {
  const char* const cases[][2] = {
      {R"({"properties":{"a":5}})", "/properties/a: no schema"},
      {R"({"additionalProperties":"false"})", "/additionalProperties: no schema"},
      {R"({"patternProperties":{"^a":null}})", "/patternProperties/^a: no schema"},
      {R"({"propertyNames":[]})", "/propertyNames: no schema"},
      {R"({"items":1})", "/items: no schema"},
      {R"({"prefixItems":[{},"x"]})", "/prefixItems/1: no schema"},
      {R"({"contains":[]})", "/contains: no schema"},
      {R"({"not":"x"})", "/not: no schema"},
      {R"({"allOf":[{},[]]})", "/allOf/1: no schema"},
      {R"({"anyOf":[{"type":"null"},1]})", "/anyOf/1: no schema"},
      {R"({"oneOf":[{"type":"null"},1]})", "/oneOf/1: no schema"},
      {R"({"if":null,"then":true})", "/if: no schema"},
      {R"({"if":{"type":"null"},"else":"x"})", "/else: no schema"},
      {R"({"dependentSchemas":{"a":1}})", "/dependentSchemas/a: no schema"},
      {R"({"unevaluatedProperties":0})", "/unevaluatedProperties: no schema"},
      {R"({"unevaluatedItems":0})", "/unevaluatedItems: no schema"},
      {R"({"format":5})", "/format: not a string"},
  };
  for (const auto& [schema, message] : cases) EXPECT_EQ(refusal(schema), message) << schema;
  check({R"({"$defs":{"unused":"text"},"default":5,"examples":1})", {"1"}, {}});
}

TEST(SchemaHostile, MessagesTellWhatIsBehindANul) {
  EXPECT_EQ(refusal(R"({"properties":{"a\u0000b":{"type":"foo"}}})"),
            "/properties/a b/type: no type is called \"foo\"");
}

}  // namespace
}  // namespace gen::grammar

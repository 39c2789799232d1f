// SPDX-License-Identifier: Apache-2.0
// The plain style of JSON: what programs write and all usual decoders take, and all of a schema's
// values that such texts can have.
#include "grammar/json/json_style.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "grammar/json/json.h"
#include "grammar/json/plain_number.h"
#include "grammar/schema_validator.h"

namespace gen::grammar {
namespace {

using test::Validator;

SchemaOptions plain() {
  SchemaOptions options;
  options.style = JsonStyle::of_models();
  return options;
}

struct Case {
  const char* schema;
  std::vector<const char*> plain;  // texts of both styles
  std::vector<const char*> other;  // valid, but not plain
};

void check(const Case& one) {
  const auto full = test::compile(one.schema);
  const auto made = test::compile(one.schema, plain());
  ASSERT_TRUE(full.ok()) << one.schema << " " << full.status().message();
  ASSERT_TRUE(made.ok()) << one.schema << " " << made.status().message();
  Validator any(*full.value());
  Validator style(*made.value());
  for (const char* text : one.plain) {
    EXPECT_TRUE(any(text)) << one.schema << " " << text;
    EXPECT_TRUE(style(text)) << one.schema << " " << text;
  }
  for (const char* text : one.other) {
    EXPECT_TRUE(any(text)) << one.schema << " " << text;
    EXPECT_FALSE(style(text)) << one.schema << " " << text;
  }
}

TEST(JsonStyle, OneBlankInAPlace) {
  check({R"({"properties":{"a":{"type":"array"}},"required":["a"],"type":"object"})",
         {R"({"a":[]})", R"( { "a" : [ 1 , 2 ] })"},
         {R"({"a":  []})", "{\"a\":\n[]}", "{\"a\":\t[]}", R"({"a":[]} )", "\n{\"a\":[]}"}});
}

TEST(JsonStyle, MembersAsTheSchemaListsThem) {
  check(
      {R"({"properties":{"z":{},"a":{}},"required":["a"],"additionalProperties":{"type":"null"}})",
       {R"({"z":1,"a":2})", R"({"a":2})", R"({"a":2,"q":null})"},
       {R"({"a":2,"z":1})", R"({"q":null,"a":2})"}});
  // More names than an order can hold: any order, but no refusal.
  std::string properties;
  for (int i = 0; i < 300; ++i) {
    properties += (i > 0 ? "," : "") + std::string("\"n") + std::to_string(i) + "\":{}";
  }
  const auto many = test::compile("{\"properties\":{" + properties + "}}", plain());
  ASSERT_TRUE(many.ok()) << many.status().message();
  Validator validator(*many.value());
  EXPECT_TRUE(validator(R"({"n299":1,"n0":1})"));
  EXPECT_FALSE(validator(R"({"n299":1,"n299":1})"));
}

TEST(JsonStyle, WholeNumbersAreDigits) {
  const std::vector<const char*> spellings = {"1.0", "10e-1", "1E0", "420.000E-1", "-0"};
  check({R"({"type":"integer"})", {"0", "1", "-17", "999999999999999"}, spellings});
  check({R"({"type":"integer"})", {}, {"1000000000000000", "12345678901234567890"}});
  check({R"({"type":"number","multipleOf":5})", {"0", "-15", "1000000000005"}, {"5.0", "1e1"}});
  check({R"({"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807})",
         {"9223372036854775807", "-9223372036854775808"},
         {"9223372036854775807.0", "9e18"}});
  check({R"({"type":"integer","minimum":1000000000000000})", {"1000000000000000"}, {"1e15"}});
  check({R"({"anyOf":[{"type":"integer"},{"type":"string"}]})", {"3", "\"x\""}, {"3.0"}});
}

TEST(JsonStyle, NumbersAreFiniteDoubles) {
  check({R"({"type":"number"})",
         {"0", "-0.5", "1.50", "123456789012345.12345678901234567", "1e5", "-2.5E-07", "9e99"},
         {"1e999", "1e100", "12e3", "1234567890123456", "1e005", "0.123456789012345678"}});
  check({R"({"type":"number","minimum":-1e308,"maximum":1e308})",
         {"1e307", "-3.5e+250", "0.1"},
         {"10e306", "1e308"}});
  check({R"({"minimum":1e20,"type":"number"})", {"1e20", "2.5e+30"}, {"100000000000000000000"}});
  check({R"({"type":"number","multipleOf":0.01})", {"1.5", "12.50", "3"}, {"1.500"}});
  // Beyond all doubles there is nothing plain.
  check({R"({"type":"number","minimum":1e400})", {"1e400", "1e401"}, {}});
  // Remainders would be counted along with the digits: these are not.
  check({R"({"type":"integer","multipleOf":1009})", {"1009"}, {"1009.0"}});
}

TEST(JsonStyle, ListedNumbersHaveOneText) {
  check({R"({"enum":[1,2.5,-0.001,1e25,1e-9,100]})",
         {"1", "2.5", "-0.001", "1e25", "1e-9", "100"},
         {"1.0", "2.50", "1e0", "1e+25", "1e2"}});
  check({R"({"const":12345678901234567890})", {"12345678901234567890"}, {}});
  check({R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer","enum":[3,4]})",
         {"3"},
         {}});
  check({R"({"type":"integer","multipleOf":700001,"minimum":0,"maximum":2000000})",
         {"0", "700001", "1400002"},
         {"700001.0"}});
}

TEST(JsonStyle, EscapesOnlyWhereJsonHasNoOtherText) {
  const std::vector<const char*> good = {R"("a\nb\"\\")", "\"\xC3\xA9/\x7F\"", R"("\t\r\b\f")"};
  const std::vector<const char*> bad = {R"("\u0061")", R"("\/")",     R"("\u000a")",
                                        R"("\u0022")", R"("\u00e9")", R"("\ud83d\ude00")"};
  check({R"({"type":"string"})", good, bad});
  check({R"({"type":"string","pattern":"^[^x]*$"})", good, bad});
  check({R"({"type":"string","maxLength":9})", good, bad});
  check({R"({"enum":["a\u0001/","b\n"]})",
         {R"("a\u0001/")", R"("b\n")"},
         {R"("\u0061\u0001/")", R"("a\u0001\/")", R"("b\u000a")"}});
  // Asked for by name they come all the same.
  check({R"({"type":"string","pattern":"^[\u0000-\u0003]+$"})", {R"("\u0001\u0003")"}, {}});
  check({R"({"properties":{"a/\u0002\n":{}},"required":["a/\u0002\n"],
             "additionalProperties":false})",
         {R"({"a/\u0002\n":1})"},
         {R"({"a\/\u0002\n":1})", R"({"\u0061/\u0002\n":1})"}});
  check({R"({"type":"object"})", {R"({"k\n":1})"}, {R"({"\u006b":1})"}});
}

TEST(JsonStyle, DatesThatDecodersTake) {
  check(
      {R"({"type":"string","format":"date-time"})",
       {R"("2026-11-28T01:02:03Z")", R"("0001-01-01T00:00:00Z")", R"("9999-12-31T23:59:59+00:01")",
        R"("2024-02-29T23:59:59.123456789+14:00")", R"("0001-01-01T00:00:00-14:00")"},
       {R"("2026-11-28t01:02:03Z")", R"("2026-11-28T01:02:03z")", R"("0000-01-01T00:00:00Z")",
        R"("2026-11-28T01:02:03.1234567890Z")", R"("2016-12-31T23:59:60Z")",
        R"("2026-11-28T01:02:03+14:01")", R"("2026-11-28T01:02:03-20:00")",
        R"("2026-11-28T01:02:03-00:00")", R"("0001-01-01T00:00:00+00:01")",
        R"("9999-12-31T23:59:59-00:01")", R"("2026\u002d11-28T01:02:03Z")"}});
}

TEST(JsonStyle, OtherTimes) {
  check({R"({"type":"string","format":"date"})", {R"("2024-02-29")"}, {R"("0000-01-01")"}});
  check(
      {R"({"type":"string","format":"time"})", {R"("01:02:03.5-05:30")"}, {R"("01:02:03+23:00")"}});
  check({R"({"type":"string","format":"duration"})",
         {R"("P1Y2M3DT4H5M6S")", R"("PT36H")"},
         {R"("P1234567890D")"}});
  // A format that another keyword leaves nothing plain of, and one that must not hold.
  check({R"({"format":"date-time","const":"2016-12-31T23:59:60Z"})",
         {R"("2016-12-31T23:59:60Z")"},
         {}});
  check({R"({"format":"date-time","type":"string","maxLength":20})",
         {R"("2026-11-28T01:02:03Z")"},
         {R"("2026-11-28T01:02:03z")"}});
  Validator none(*test::compile(R"({"type":"string","not":{"format":"date"}})", plain()).value());
  EXPECT_FALSE(none(R"("0000-01-01")"));
  EXPECT_TRUE(none(R"("2024-02-30")"));
}

// Whatever the limits, each plain text is one of the full language.
TEST(JsonStyle, PlainTextsAreValid) {
  const char* const schemas[] = {
      R"({"type":"integer","minimum":-3,"maximum":1200})",
      R"({"type":"number","exclusiveMinimum":0.25,"maximum":1e6})",
      R"({"type":"number","multipleOf":0.5})",
      R"({"not":{"type":"integer"},"type":"number"})",
      R"({"type":"string","format":"date-time"})",
      R"({"type":"string","format":"time"})",
      R"({"type":"string","format":"duration"})",
      R"({"type":"string","pattern":"^[a-c\"]+$"})",
      R"({"type":"array","uniqueItems":true,"items":{"type":"number"}})",
      R"({"properties":{"a":{"enum":[1,2.5,"x"]},"b":{"type":"boolean"}},"required":["a"]})"};
  std::mt19937 random(7);
  for (const char* schema : schemas) {
    Validator any(*test::compile(schema).value());
    const auto made = test::compile(schema, plain()).value();
    Matcher matcher =
        Matcher::create(made->over(test::vocabulary(test::all_bytes())).value()).value();
    for (int i = 0; i < 100; ++i) {
      matcher.reset();
      std::string text;
      while (!matcher.is_finished() && text.size() < 200) {
        if (matcher.is_complete() && random() % 3 == 0) break;
        const ByteSet ways = matcher.valid_bytes();
        char byte = 0;
        do byte = static_cast<char>(random() % 256);
        while (!ways.has(static_cast<uint8_t>(byte)));
        if (!matcher.accept_bytes({&byte, 1}).value()) break;
        text += byte;
      }
      if (matcher.is_complete()) {
        EXPECT_TRUE(any(text)) << schema << " " << text;
      }
    }
  }
}

// Expected values from the C library.
TEST(JsonStyle, AnyPlainNumberIsFinite) {
  for (const bool far : {false, true}) {
    PlainNumbers shape;
    if (far) shape.exponent_digits = 3;
    const Dfa numbers = plain_numbers(shape);
    std::mt19937 random(3);
    for (int i = 0; i < 5'000; ++i) {
      std::string text;
      uint32_t state = 0;
      while (!numbers.states[state].final || random() % 4 != 0) {
        const auto& edges = numbers.states[state].edges;
        if (edges.empty()) break;
        const ByteEdge edge = edges[random() % edges.size()];
        text += static_cast<char>(edge.low + random() % (edge.high - edge.low + 1U));
        state = edge.target;
      }
      EXPECT_TRUE(std::isfinite(std::strtod(text.c_str(), nullptr))) << text;
    }
  }
}

TEST(JsonStyle, LimitsThatAreAskedFor) {
  SchemaOptions options = plain();
  options.style.digits = 3;
  Validator few(*test::compile(R"({"type":"number"})", options).value());
  for (const char* text : {"123", "0.123", "1.5e12"}) EXPECT_TRUE(few(text)) << text;
  for (const char* text : {"1234", "0.1234", "1e123", "15e2"}) EXPECT_FALSE(few(text)) << text;
  options.style.digits = kUnbounded;
  Validator many(*test::compile(R"({"type":"integer"})", options).value());
  EXPECT_TRUE(many(std::string(5000, '7')));
  EXPECT_FALSE(many("7.0"));
}

TEST(JsonStyle, AnyValue) {
  const auto made = Grammar::any_json({}, JsonStyle::of_models()).value();
  Validator plain_json(*made);
  for (const char* text : {R"( {"a" : [1, -2.5e3, "\n", null]})", "true"}) {
    EXPECT_TRUE(plain_json(text)) << text;
  }
  for (const char* text : {"1 ", "[1,\n2]", "1e999", R"("\u0061")", "[1,  2]"}) {
    EXPECT_FALSE(plain_json(text)) << text;
    EXPECT_TRUE(Validator(*Grammar::any_json().value())(text)) << text;
  }
}

}  // namespace
}  // namespace gen::grammar

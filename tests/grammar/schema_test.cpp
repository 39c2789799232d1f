// SPDX-License-Identifier: Apache-2.0
// JSON Schema: what each keyword takes and leaves, what is refused, and random schemas against the
// verdicts of another validator (make_schema_pairs.py).
#include "grammar/schema/schema.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema_validator.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

using test::compile;
using test::refusal;
using test::Validator;
using Case = test::SchemaCase;
using test::check;

TEST(Schema, NumbersCountByValue) {
  const Case cases[] = {
      {R"({"type":"integer"})",
       {"0", "-0", "1.0", "1e2", "10e-1", "1.50e1", "0e5", "0.0", "123456789012345678901234567890",
        "1e999"},
       {"1.5", "1e-1", "0.1", "15e-1", "01", "1.", "1.0000000000000000000000000000000001"}},
      {R"({"$schema":"http://json-schema.org/draft-04/schema#","type":"integer"})",
       {"1", "-10"},
       {"1.0", "1e2"}},
      {R"({"type":"number","minimum":0.5,"exclusiveMaximum":12})",
       {"0.5", "5e-1", "0.50", "11.999", "1.1e1", "1"},
       {"0.4999", "12", "1.2e1", "120e-1", "-1", "0", "1e300", "1e-300"}},
      {R"({"type":"number","minimum":-4,"maximum":4})",
       {"-4", "-0.5", "-0.0", "0.5", "4.0"},
       {"-4.1", "4.000001", "-5"}},
      {R"({"type":"number","exclusiveMinimum":0})", {"0.1", "1", "1e-9"}, {"0", "-0", "-0.1"}},
      {R"({"type":"integer","minimum":-5})", {"-5", "-1", "0", "17"}, {"-6", "-", "-50"}},
      {R"({"type":"number","maximum":-3})", {"-3", "-3.0", "-1e9"}, {"-2.99", "3", "0", "-3e-1"}},
      {R"({"type":"number","minimum":0})", {"0", "-0", "1e400", "1e-400"}, {"-1e-400", "-1"}},
      {R"({"enum":[1,2.5]})", {"1", "1.0", "0.1e1", "25e-1", "2.50"}, {"2", "10", "1e1", "1.01"}},
      {R"({"type":"number","multipleOf":0.01})",
       {"0.01", "1", "19.99", "1e-2", "0.0100", "5e3", "1.5e-1"},
       {"0.001", "0.015", "1e-3", "1.5e-2"}},
      {R"({"type":"number","multipleOf":15})",
       {"0", "15", "30.0", "1.5e1", "3e1", "-45", "1500000000000000000000000000000"},
       {"5", "3", "1.5", "1e3", "14", "1500000000000000000000000000001"}},
      {R"({"type":"number","not":{"multipleOf":2}})",
       {"1", "1.5", "3e0"},
       {"2", "0", "4.0", "1e1"}},
      {R"({"const":12345678901234567890})",
       {"12345678901234567890", "12345678901234567890.00"},
       {"12345678901234567891", "12345678901234567889"}},
  };
  for (const Case& one : cases) check(one);
}

TEST(Schema, StringsCountByCharacter) {
  const Case cases[] = {
      {R"({"type":"string","maxLength":2})",
       {R"("")", R"("é\u00e9")", R"("\ud83e\udd99x")", "\"\xF0\x9F\xA6\x99x\"", R"("\n\\")"},
       {R"("abc")", R"("\ud83e")", R"("\udd99")", R"("\ud83ex")", "\"a\nb\""}},
      {R"({"enum":["a\"b","é"]})",
       {R"("a\"b")", R"("\u0061\u0022b")", R"("\u00E9")", "\"\xC3\xA9\""},
       {R"("a")", R"("e")"}},
      {R"({"type":"string","pattern":"^a+$","minLength":2})",
       {R"("aa")", R"("\u0061a")"},
       {R"("a")", R"("ab")", R"("aa\n")"}},
      {R"({"type":"string","not":{"enum":["a","ab"]},"maxLength":2})",
       {R"("")", R"("b")", R"("aa")"},
       {R"("a")", R"("\u0061b")", R"("abc")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("2000-02-29")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2024-13-01")", R"("2024-1-01")"}},
      {R"({"type":"string","format":"ipv6"})",
       {R"("::1")", R"("1:2::7:8")", R"("::ffff:1.2.3.4")"},
       {R"("1::2::3")", R"("12345::")", R"("1:2:3:4:5:6:7")"}},
      {R"({"type":"string","format":"email"})",
       {R"("joe.b@example.com")", R"("te~st@a.b")"},
       {R"("2962")", R"("a..b@c.d")", R"(".a@b.c")"}},
      {R"({"type":"string","format":"date-time"})",
       {R"("1990-12-31T23:59:60Z")", R"("1963-06-19t08:30:06.283185z")"},
       {R"("1990-02-31T15:59:59.123-08:00")", R"("1990-12-31T10:00:60Z")"}},
  };
  for (const Case& one : cases) check(one);
}

TEST(Schema, ObjectsInAnyOrder) {
  const Case cases[] = {
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"boolean"}},
           "required":["b"],"additionalProperties":false})",
       {R"({"b":true})", R"({ "a" : null , "b":false })", R"({"b":true,"\u0061":null})"},
       {"{}", R"({"a":null})", R"({"b":true,"b":true})", R"({"b":true,"\u0062":true})",
        R"({"b":true,})", R"({,"b":true})", R"({"b":true,"c":1})", R"({"b":1})"}},
      {R"({"type":"object","patternProperties":{"^x":{"type":"number"}},
           "additionalProperties":{"type":"string"},"minProperties":1,"maxProperties":2})",
       {R"({"x":1})", R"({"y":"","x1":2})"},
       {"{}", R"({"x":""})", R"({"y":1})", R"({"x":1,"xx":2,"y":""})"}},
      {R"({"type":"object","propertyNames":{"maxLength":1},"required":["a"]})",
       {R"({"a":1})", R"({"b":[],"a":{}})"},
       {R"({"a":1,"bb":2})", R"({"b":1})"}},
      {R"({"type":"object","dependentRequired":{"a":["b"]},"properties":{"a":{},"b":{}}})",
       {"{}", R"({"b":1})", R"({"b":1,"a":2})"},
       {R"({"a":1})"}},
      {R"({"const":{"a":[1,{"b":null}]}})",
       {R"({"a":[1.0,{"b":null}]})"},
       {R"({"a":[1]})", R"({"a":[1,{"b":null}],"c":1})", "{}"}},
      {R"({"type":"object","not":{"additionalProperties":{"type":"string"}}})",
       {R"({"a":"x","b":1})"},
       {"{}", R"({"a":"x"})"}},
  };
  for (const Case& one : cases) check(one);
}

TEST(Schema, Arrays) {
  const Case cases[] = {
      {R"({"type":"array","items":{"type":"string"},"maxItems":0})", {"[]", "[ ]"}, {R"(["a"])"}},
      {R"({"type":"array","prefixItems":[{"type":"null"}],"items":{"type":"number"},"maxItems":3})",
       {"[]", "[null]", "[null, 1 ,2]"},
       {"[1]", "[null,null]", "[null,1,2,3]"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","items":[true],
           "additionalItems":false,"type":"array"})",
       {"[]", "[1]"},
       {"[1,2]"}},
      {R"({"type":"array","contains":{"const":1},"minContains":2,"maxContains":3})",
       {"[1,1]", "[2,1,0,1.0]"},
       {"[]", "[1]", "[1,1,1,1]"}},
      {R"({"type":"array","items":{"enum":["a","b",1]},"uniqueItems":true,"minItems":2})",
       {R"(["a",1])", R"([1,"b","a"])"},
       {R"(["a"])", R"(["a","\u0061"])", R"(["a",1,1.0])", R"(["a","c"])"}},
      {R"({"enum":["a",1,null,[2],{"b":"c"}]})",
       {R"("a")", "1.0", "null", "[2]", R"({"b":"c"})"},
       {R"("1")", R"("c")", "2", "[1]", "false"}},
      {R"({"type":"array","items":{"type":"boolean"},"minItems":20,"maxItems":30})",
       {"[true,true,true,true,true,true,true,true,true,true,true,true,true,true,true,true,true,"
        "true,"
        "true,false]"},
       {"[true]", "[]"}},
  };
  for (const Case& one : cases) check(one);
}

TEST(Schema, Combinations) {
  const Case cases[] = {
      {R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"x\""}, {"3", "1.5"}},
      {R"({"anyOf":[{"type":"null"},{"type":"array"}],"not":{"maxItems":0}})",
       {"[1]"},
       {"null", "[]", "1"}},
      {R"({"if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["a"]},
           "else":{"required":["b"]},"type":"object"})",
       {R"({"k":1,"a":0})", R"({"k":2,"b":0})", R"({"b":0})"},
       {R"({"k":1,"b":0})", "{}"}},
      {R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"l":{
           "$ref":"#/$defs/tree"}},"additionalProperties":false}}})",
       {"{}", R"({"l":{"l":{}}})"},
       {R"({"l":1})", R"({"l":{"l":null}})"}},
      {R"({"$id":"http://a.b/c","$defs":{"x":{"$id":"d","$anchor":"y","type":"null"}},"$ref":"d#y"})",
       {"null"},
       {"1"}},
      {R"({"$ref":"#/$defs/a","maxLength":1,"$defs":{"a":{"type":"string"}}})",
       {"\"a\""},
       {"\"ab\"", "1"}},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a",
           "maxLength":1,"definitions":{"a":{"type":"string"}}})",
       {"\"ab\""},
       {"1"}},
      {"true", {"1", "{}", R"({"a":{"b":[]}})"}, {"", "nul"}},
  };
  for (const Case& one : cases) check(one);
}

TEST(Schema, WhatIsRefusedIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"properties":{"a/b":{"$ref":"http://x.y/z"}}})", "/properties/a~1b/$ref: unresolved"},
      {R"({"items":{"pattern":"(a)\\1"}})", "/items/pattern"},
      {R"({"type":"object","properties":{"x":{"enum":[]}},"required":["x"]})",
       "the required member x can have no value"},
      {R"({"type":"text"})", "/type: no type is called \"text\""},
      {R"({"items":[true]})", "/items"},
      {R"({"format":"idn-hostname"})", "/format"},
      {R"({"contains":{"enum":[1,2]},"minContains":3,"uniqueItems":true})", "/uniqueItems"},
      {R"({"unevaluatedProperties":{"$ref":"#/x"}})", "/unevaluatedProperties/$ref"},
      {R"({"type":"string","minLength":3,"maxLength":2})", "no value is valid"},
      {R"({"not":{}})", "/not: no value is valid: it excludes all values"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"not":true}}})",
       "/$defs/a/not: no value is valid: it ex"},
      {R"({"type":"object","required":["a"],"additionalProperties":false})", "required member a"},
      {R"({"allOf":[{"type":"string"},{"type":"number"}]})", "no value is valid"},
      {R"({"type":"integer","minimum":1.2,"maximum":1.8})", "no number"},
      {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
       "no value is valid"},
      {R"({"a":1,"a":2})", "line 1"},
      {"[]", "a schema is"},
      {R"({"$schema":"http://json-schema.org/draft-03/schema#"})", "/$schema"},
  };
  for (const auto& [schema, message] : cases) {
    EXPECT_NE(refusal(schema).find(message), std::string::npos)
        << schema << ": " << refusal(schema);
  }
}

// More names than a word has bits: each may come once, in any order, and two must.
TEST(Schema, ManyNames) {
  std::string properties;
  for (int i = 0; i < 200; ++i) {
    properties +=
        (i > 0 ? ",\"n" : "\"n") + std::to_string(i) + "\":{\"const\":" + std::to_string(i) + "}";
  }
  Validator validator(R"({"type":"object","additionalProperties":false,"required":["n7","n199"],
      "properties":{)" +
                      properties + "}}");
  const auto member = [&](const std::vector<int>& numbers) {
    std::string text = "{";
    for (const int i : numbers) {
      text += (text.size() > 1 ? ",\"n" : "\"n") + std::to_string(i) + "\":" + std::to_string(i);
    }
    return validator(text + "}");
  };
  EXPECT_TRUE(member({7, 199}));
  EXPECT_TRUE(member({199, 63, 64, 127, 128, 191, 192, 7, 0}));
  EXPECT_FALSE(member({7}));
  EXPECT_FALSE(member({7, 198}));
  for (const int twice : {0, 63, 64, 130, 199}) EXPECT_FALSE(member({7, 199, twice, 5, twice}));
  std::vector<int> all;
  for (int i = 199; i >= 0; --i) all.push_back(i);
  EXPECT_TRUE(member(all));
  EXPECT_FALSE(member({7, 199, 200}));
}

// What the mask allows is what can be read, in the middle of members too.
TEST(Schema, MasksAreWhatIsAccepted) {
  std::vector<std::string> texts = test::all_bytes();
  for (const char* text : {"{\"", "\": ", "\",\"", "\":1,\"b\":", "a\":", "true", "1}", ", \"",
                           "},", "\\u006", "null,\"a", "]}", "e1"}) {
    texts.emplace_back(text);
  }
  const auto vocabulary = test::vocabulary(texts);
  const auto grammar = compile(R"({"type":"object","properties":{"a":{"type":"integer"},
      "b":{"type":"boolean"},"c":{"enum":["x",null]},"d":{"type":"array","items":{"$ref":"#"}}},
      "required":["a","c"],"additionalProperties":false,"maxProperties":3})")
                           .value();
  const auto over = grammar->over(vocabulary).value();
  uint32_t seed = 1;
  for (int round = 0; round < 60; ++round) {
    Matcher matcher = Matcher::create(over).value();
    for (int step = 0; step < 60; ++step) {
      std::vector<uint64_t> mask(vocabulary->words());
      ASSERT_TRUE(matcher.mask(mask).ok());
      std::vector<int32_t> allowed;
      for (int32_t token = 0; token < vocabulary->size(); ++token) {
        Matcher fork = matcher.fork();
        const bool taken = fork.accept_token(token).value();
        ASSERT_EQ(test::has(mask, token), taken) << token;
        if (!taken) continue;
        allowed.push_back(token);
        if (!fork.is_finished()) {
          EXPECT_LT(fork.min_bytes(), 200U);
        }
      }
      if (allowed.empty()) break;
      seed = seed * 1664525U + 1013904223U;
      ASSERT_TRUE(matcher.accept_token(allowed[(seed >> 8U) % allowed.size()]).value());
    }
  }
}

// A range of characters holds what lies in it, in every way to escape it.
TEST(Schema, RangesHoldTheirEscapes) {
  const auto unit = [](uint32_t code, const char* form) {
    char text[8];
    std::snprintf(text, sizeof text, form, static_cast<unsigned>(code));
    return std::string("\\u") + text;
  };
  const auto escaped = [&](uint32_t code, const char* form) {
    if (code < 0x10000) return unit(code, form);
    const uint32_t above = code - 0x10000;
    return unit(0xD800 + (above >> 10U), form) + unit(0xDC00 + (above & 0x3FFU), form);
  };
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  const std::pair<uint32_t, uint32_t> ranges[] = {{8, 8},
                                                  {3, 13},
                                                  {10, 34},
                                                  {35, 47},
                                                  {48, 92},
                                                  {0x7F, 0x80},
                                                  {0x2FF, 0x1230},
                                                  {0xABCD, 0xABEF},
                                                  {0xE000, 0xFFFF},
                                                  {0xFFFE, 0x10001},
                                                  {0x10000, 0x103FF},
                                                  {0x10400, 0x10800},
                                                  {0x1F5FF, 0x1F64F},
                                                  {0x10FFFE, 0x10FFFF}};
  for (const auto& [low, high] : ranges) {
    char pattern[64];
    std::snprintf(pattern, sizeof pattern, "^[\\\\u{%x}-\\\\u{%x}]$", low, high);
    test::Validator valid(std::string(R"({"pattern":")") + pattern + R"(","type":"string"})");
    for (const uint32_t edge :
         {low, low + 1, (low + high) / 2, high - 1, high, high + 1, low - 1}) {
      if (edge > 0x10FFFF || (edge >= 0xD800 && edge <= 0xDFFF)) continue;
      const bool in = low <= edge && edge <= high;
      for (const char* form : {"%04x", "%04X"}) {
        EXPECT_EQ(valid("\"" + escaped(edge, form) + "\""), in) << pattern << " " << edge;
      }
    }
    for (size_t i = 0; i < kMeant.size(); ++i) {
      const auto code = static_cast<uint32_t>(kMeant[i]);
      const std::string text = std::string("\"\\") + kLetters[i] + "\"";
      EXPECT_EQ(valid(text), low <= code && code <= high) << pattern << " " << text;
    }
  }
}

}  // namespace
}  // namespace gen::grammar

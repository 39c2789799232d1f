// SPDX-License-Identifier: Apache-2.0
// JSON Schema across schemas: references, resources and drafts, other documents, what keywords that
// are no assertions change, and what hostile schemas may cost. Verdicts are those of the
// specifications: 2020-12 core, sections 8.2 and 11; 2019-09 core, section 8.2.4; RFC 3339, 6570.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "grammar/schema/schema.h"
#include "grammar/schema_validator.h"

namespace gen::grammar {
namespace {

using test::check;
using test::compile;
using test::refusal;
using test::SchemaCase;
using test::Validator;

TEST(SchemaScope, ReferencesFollowIdentifiers) {
  const SchemaCase cases[] = {
      {R"({"$id":"http://x.y/root","$ref":"item","$defs":{"a":{"$id":"item","$anchor":"one",
          "type":"array","items":{"$ref":"#one"}}}})",
       {"[]", "[[],[[]]]"},
       {"1", "[1]"}},
      // What only looks like an identifier.
      {R"({"$defs":{"a":{"const":{"$id":"http://x.y/z","type":"null"}},
                    "b":{"$id":"http://x.y/z","type":"string"}},
          "$ref":"http://x.y/z"})",
       {"\"a\""},
       {"null"}},
      {R"({"properties":{"$id":{"type":"integer"},"$ref":{"type":"string"}}})",
       {R"({"$id":1,"$ref":"#"})"},
       {R"({"$id":"a"})", R"({"$ref":1})"}},
      // Siblings of $ref count from 2019-09 on.
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},
          "properties":{"a":{"$ref":"#/definitions/s","maxLength":1}}})",
       {R"({"a":"long"})"},
       {R"({"a":1})"}},
      {R"({"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s","maxLength":1}}})",
       {R"({"a":"l"})"},
       {R"({"a":"long"})", R"({"a":1})"}},
      // A resource of an older draft inside.
      {R"({"$id":"http://x.y/new","properties":{"a":{"$ref":"old"}},"$defs":{"o":{
          "$schema":"http://json-schema.org/draft-07/schema#","$id":"old",
          "items":[{"type":"integer"}],"dependencies":{"b":["c"]}}}})",
       {R"({"a":[1,"x"]})", R"({"a":{"b":1,"c":2}})"},
       {R"({"a":["x"]})", R"({"a":{"b":1}})"}},
  };
  for (const SchemaCase& one : cases) check(one);
}

// The tree of the core specification: what nodes are depends on which schema was entered first.
TEST(SchemaScope, DynamicReferencesLeadToTheOutermost) {
  const char* tree = R"("tree":{"$id":"http://x.y/tree","$dynamicAnchor":"node","type":"object",
      "properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}})";
  check({std::string(R"({"$id":"http://x.y/strict","$dynamicAnchor":"node","$ref":"tree",
      "unevaluatedProperties":false,"$defs":{)")
             .append(tree)
             .append("}}")
             .c_str(),
         {R"({"children":[{"data":1}]})"},
         {R"({"children":[{"daat":1}]})", R"({"daat":1})"}});
  check({std::string(R"({"$ref":"http://x.y/tree","$defs":{)").append(tree).append("}}").c_str(),
         {R"({"children":[{"daat":1}]})", R"({"daat":1})"},
         {R"({"children":[1]})"}});
  const char* old = R"("$defs":{"t":{"$id":"http://x.y/t","$recursiveAnchor":true,"type":"object",
      "properties":{"c":{"items":{"$recursiveRef":"#"}}}}})";
  check({std::string(R"({"$schema":"https://json-schema.org/draft/2019-09/schema",
      "$id":"http://x.y/s","$recursiveAnchor":true,"$ref":"t","unevaluatedProperties":false,)")
             .append(old)
             .append("}")
             .c_str(),
         {R"({"c":[{"c":[]}]})"},
         {R"({"c":[{"d":1}]})", R"({"c":[1]})"}});
}

TEST(SchemaScope, OtherDocumentsComeFromAResolver) {
  const char* schema = R"({"$id":"http://x.y/a","items":{"$ref":"b#/$defs/n"},"minItems":1})";
  EXPECT_NE(refusal(schema).find("/items/$ref: unresolved"), std::string::npos);
  std::vector<std::string> asked;
  SchemaOptions options;
  options.resolver = [&](const std::string& uri) -> std::optional<std::string> {
    asked.push_back(uri);
    if (uri == "http://x.y/b") return R"({"$defs":{"n":{"$ref":"c"}}})";
    if (uri == "http://x.y/c") return R"({"type":"integer"})";
    return {};
  };
  auto made = compile(schema, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  Validator validator(**made);
  EXPECT_TRUE(validator("[1]"));
  EXPECT_FALSE(validator("[\"a\"]"));
  EXPECT_EQ(asked, (std::vector<std::string>{"http://x.y/b", "http://x.y/c"}));
  options.resolver = [](const std::string&) { return std::optional<std::string>("[1"); };
  EXPECT_FALSE(compile(schema, options).ok());
}

// Titles, descriptions and the order of members change nothing: not even the automata.
TEST(SchemaScope, AnnotationsChangeNothing) {
  const char* plain = R"({"type":"object","properties":{"a":{"type":"integer","minimum":3},
      "b":{"anyOf":[{"type":"string","pattern":"^x"},{"enum":[1,"q"]}]}},"required":["a"],
      "unevaluatedProperties":{"type":"null"}})";
  const char* same[] = {
      R"({"title":"T","description":"d","type":"object","properties":{"a":{"type":"integer",
          "minimum":3,"default":7,"examples":["no"]},"b":{"$comment":"c","anyOf":[{"type":"string",
          "pattern":"^x"},{"enum":[1,"q"],"deprecated":true}]}},"required":["a"],
          "unevaluatedProperties":{"type":"null","x-own":[1]}})",
      R"({"unevaluatedProperties":{"type":"null"},"required":["a"],"properties":{"b":{"anyOf":[
          {"enum":["q",1]},{"pattern":"^x","type":"string"}]},"a":{"minimum":3,"type":"integer"}},
          "type":"object"})",
  };
  const char* texts[] = {
      R"({"a":3})",          R"({"a":2})",       R"({"b":"x1","a":4.0})", R"({"a":5,"b":"y"})",
      R"({"a":5,"c":null})", R"({"a":5,"c":0})", R"({"b":1,"a":3e0})",    "[]",
      R"({"a":3,"b":"q"})"};
  const auto grammar = compile(plain).value();
  Validator validator(*grammar);
  for (const char* schema : same) {
    const auto other = compile(schema).value();
    EXPECT_EQ(other->machines().states.size(), grammar->machines().states.size()) << schema;
    EXPECT_EQ(other->machines().byte_edges.size(), grammar->machines().byte_edges.size());
    Validator as_well(*other);
    for (const char* text : texts) EXPECT_EQ(as_well(text), validator(text)) << schema << text;
  }
}

TEST(SchemaScope, NumbersOfAnySize) {
  const SchemaCase cases[] = {
      {R"({"type":"number","minimum":1e300})",
       {"1e300", "2e307", "1E+301"},
       {"9.99e299", "1", "-1e301"}},
      {R"({"type":"number","exclusiveMinimum":0,"maximum":1e-300})",
       {"1e-300", "9e-301", "1e-999"},
       {"0", "1.1e-300", "1e-299"}},
      {R"({"type":"number","multipleOf":1e-8})", {"12.34567891", "1e-8", "0.00000001"}, {"1e-9"}},
      {R"({"type":"number","multipleOf":3e6})",
       {"3000000", "3e6", "0", "12e6", "-6000000.0", "123000000000000000000"},
       {"1000000", "3e5", "3000001", "3000000.5", "300000"}},
      {R"({"type":"number","minimum":100})", {"123456789", "100000.5"}, {"99.999999", "-123456"}},
      {R"({"type":"number","maximum":-100})", {"-123456789"}, {"123456", "-0.00012345"}},
      {R"({"type":"integer","multipleOf":0.5})", {"1", "2.0"}, {"1.5"}},
      {R"({"enum":[1,10,100,-0.25]})",
       {"1", "10.0", "1e2", "0.1e1", "-25e-2", "-0.250"},
       {"1000", "11", "0.25", "-1", "0"}},
      {R"({"type":"number","not":{"enum":[0,1]}})",
       {"2", "10", "-1", "0.1", "1e1"},
       {"0", "1", "-0.0", "1.0", "10e-1", "0e5"}},
      {R"({"type":"number","minimum":123456789012345678901234567890})",
       {"123456789012345678901234567890", "123456789012345678901234567890.5", "1e30"},
       {"123456789012345678901234567889", "1e29", "123456789012345678901234567889.9999"}},
  };
  for (const SchemaCase& one : cases) check(one);
}

// Only what may go on without end is copied for each length: addresses, but not those of numbers.
TEST(SchemaScope, LengthsLimitPatternsAndFormats) {
  const auto text = [](size_t a, const std::string& end) {
    return "\"" + std::string(a, 'a') + end + "\"";
  };
  Validator mail(R"({"format":"email","maxLength":254})");
  EXPECT_TRUE(mail(text(250, "@b.c")));
  EXPECT_FALSE(mail(text(251, "@b.c")));
  EXPECT_TRUE(mail(text(244, "@[1.2.3.4]")));
  EXPECT_FALSE(mail(text(245, "@[1.2.3.4]")));
  EXPECT_TRUE(mail(text(247, "@\\u00622.c")));
  EXPECT_FALSE(mail(text(254, "")));
  Validator pairs(R"({"pattern":"^(ab)*$","minLength":3,"maxLength":7})");
  for (int n = 0; n < 6; ++n) {
    std::string value = "\"";
    for (int i = 0; i < n; ++i) value += "ab";
    EXPECT_EQ(pairs(value + "\""), n == 2 || n == 3) << n;
  }
  EXPECT_NE(refusal(R"({"type":"string","pattern":"^(ab)*$","minLength":3,"maxLength":3})"), "");
  Validator least(R"({"pattern":"^(é|𝄞)+$","minLength":2})");
  EXPECT_FALSE(least("\"é\""));
  EXPECT_TRUE(least("\"é𝄞\""));
  EXPECT_TRUE(least("\"\\ud834\\udd1e\\u00e9é\""));
  EXPECT_FALSE(least("\"\\ud834\\udd1e\""));
}

TEST(SchemaScope, HostsDifferByDraft) {
  check({R"({"$schema":"http://json-schema.org/draft-04/schema#","format":"hostname"})",
         {"\"ab--cd.example\"", "\"xn--4gbwdl.xn--wgbh1c\""},
         {"\"-a\"", "\"a-\"", "\"a..b\""}});
  check({R"({"format":"hostname"})", {"\"a.b-c.d\""}, {"\"ab--cd.example\"", "\"-a\""}});
  // Labels in Punycode are left out, whichever way they are asked for.
  check({R"({"type":"string","not":{"format":"hostname"}})",
         {"\"ab--cd.example\"", "\"-a\"", "\"xn---\"", "\"a b\""},
         {"\"a.b\"", "\"xn--4gbwdl.xn--wgbh1c\"", "\"a.XN--x\"", "\"xn--ab--cd\""}});
  check({R"({"format":"uri-template"})", {"\"a'b/{x}\""}, {"\"{a\""}});
}

// Whatever exceeds a limit is told with its keyword and place.
TEST(SchemaScope, LimitsNameKeywordAndPlace) {
  const auto why = [](const char* schema, size_t states, size_t edges) {
    SchemaOptions options;
    options.automata.states = states;
    GrammarLimits limits;
    limits.edges = edges;
    const auto made = Grammar::from_json_schema(schema, options, limits);
    return std::string(made.ok() ? "" : made.status().message());
  };
  constexpr size_t kMany = 100'000;
  for (const auto& [schema, place] : {
           std::pair(R"({"properties":{"a":{"anyOf":[{"type":"null"},{"minimum":123456.789}]}}})",
                     "/properties/a/anyOf/1/minimum: numbers take an automaton of more than 96"),
           {R"({"items":{"type":"number","multipleOf":1001}})", "/items/multipleOf: numbers take"},
           {R"({"properties":{"a":{"pattern":"^(ab)*$","maxLength":90,"minLength":1}}})",
            "/properties/a/pattern: a length limit takes an automaton of more than 48 states"},
           {R"({"allOf":[{"pattern":"a.{9}b"}]})", "/allOf/0/pattern: an automaton of more than"},
           {R"({"items":{"format":"date"}})", "/items/format: an automaton of more than 12 states"},
           {R"({"patternProperties":{"a.{9}b":{}}})",
            "/patternProperties: an automaton of more than 12 states"},
           {R"({"items":{"minLength":1e9999999999}})",
            "/items/minLength: the exponent of 1e9999999999 is above 1000000000"},
           {R"({"items":{"enum":[1,1e5000]}})", "/items/enum: a number beyond 10^4096, either way"},
           {R"({"items":{"multipleOf":0.123456789}})",
            "/items/multipleOf: a divisor whose digits are above 65536, without bounds"},
           {"[]", "#: a schema is an object or a boolean"},
       }) {
    EXPECT_EQ(why(schema, 12, kMany).substr(0, std::string(place).size()), place) << schema;
  }
  EXPECT_EQ(why(R"({"properties":{"abc":{},"bcd":{}}})", kMany, 50),
            "/properties: the grammar takes more than 50 edges");
  EXPECT_EQ(why(R"({"type":"object","minProperties":1,"maxProperties":1,"required":["a","b"]})",
                kMany, kMany),
            "#: no value is valid: more required members than there may be");
}

// RFC 8259, section 7.
TEST(SchemaScope, EscapesCountByValue) {
  check(
      {R"({"properties":{"a/\"\\\u0001é𝄞b":{"const":1}},"additionalProperties":false})",
       {R"({"a/\"\\\u0001é𝄞b":1})", R"({"\u0061\/\u0022\u005C\u0001\u00e9\uD834\udd1E\u0062":1})"},
       {R"({"a/\"\\\u0001é𝄞b":2})", R"({"a/\"\\\u0001é\ud834b":1})", R"({"a/\"\\\u0001é𝄞":1})",
        R"({"\u0062/\"\\\u0001é𝄞b":1})"}});
  check({R"({"pattern":"^[a-cé\t]{2}[^x]$"})",
         {R"("\u0061\u00E9\u0079")", R"("\t\u0063\ud83d\ude00")", R"("ab\u0009")", R"("ab\b")"},
         {R"("\u0064aa")", R"("aa\u0078")", R"("\n\u0063y")", R"("ab\ud83d")"}});
  // More characters lead elsewhere than rules stand side by side.
  check({R"({"enum":["a1","b2","c3","d4","e5","f6","g7","\t8"]})",
         {R"("\u00611")", R"("\u00677")", R"("\t8")", R"("\u00098")"},
         {R"("\u00612")", R"("\u00687")", R"("t8")", R"("\n8")"}});
}

// RFC 3339, section 5.7: the 60th second is the one behind 23:59:59 in UTC.
TEST(SchemaScope, LeapSecondsAreThoseOfUtc) {
  check({R"({"format":"time"})",
         {"\"23:59:60Z\"", "\"23:59:60.5z\"", "\"23:59:60+00:00\"", "\"01:29:60+01:30\"",
          "\"23:29:60+23:30\"", "\"15:59:60-08:00\"", "\"00:29:60-23:30\"", "\"05:44:60+05:45\""},
         {"\"22:59:60Z\"", "\"23:58:60Z\"", "\"23:59:61Z\"", "\"23:59:60+01:00\"",
          "\"23:59:60-00:30\"", "\"01:29:60-01:30\"", "\"23:59:60\""}});
}

// Later drafts leave `dependencies` out of their vocabularies and let validators keep it.
TEST(SchemaScope, DependenciesStay) {
  check({R"({"dependencies":{"a":["b"],"c":{"required":["d"]}},"unevaluatedProperties":true})",
         {"{}", R"({"a":1,"b":2})", R"({"c":1,"d":2})"},
         {R"({"a":1})", R"({"c":1})"}});
}

// Metaschemas of others: their vocabularies count where a resolver has them (2020-12 core, section
// 8.1.2).
TEST(SchemaScope, MetaschemasLeaveKeywordsOut) {
  SchemaOptions options;
  options.resolver = [](const std::string& uri) -> std::optional<std::string> {
    const std::string head = R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)";
    const std::string core =
        R"("$vocabulary":{"https://json-schema.org/draft/2020-12/vocab/core":true,)";
    if (uri == "http://x.y/plain") {
      return head + core + R"("https://json-schema.org/draft/2020-12/vocab/applicator":true,
                              "http://x.y/unknown":false}})";
    }
    if (uri == "http://x.y/own") return head + core + R"("http://x.y/unknown":true}})";
    if (uri == "http://x.y/old") return R"({"$schema":"http://json-schema.org/draft-04/schema#"})";
    return std::nullopt;
  };
  Validator plain(*compile(R"({"$schema":"http://x.y/plain#","properties":{"a":false,"b":{
      "minimum":10,"format":"date"}},"unevaluatedProperties":false,"required":["c"]})",
                           options)
                       .value());
  EXPECT_TRUE(plain(R"({"b":1,"d":2})"));
  EXPECT_FALSE(plain(R"({"a":1})"));
  EXPECT_FALSE(plain(R"({"b":"x"})"));
  const auto own = compile(R"({"$schema":"http://x.y/own"})", options);
  ASSERT_FALSE(own.ok());
  EXPECT_STREQ(own.status().message(),
               "/$schema: the vocabulary \"http://x.y/unknown\" is not known");
  Validator old(*compile(R"({"$schema":"http://x.y/old","type":"integer"})", options).value());
  EXPECT_FALSE(old("1.0"));
  SchemaReport report;
  Expressions to;
  ASSERT_TRUE(schema_expression(R"({"$schema":"http://x.y/none"})", options, to, &report).ok());
  ASSERT_EQ(report.relaxed.size(), 1U);
  EXPECT_EQ(report.relaxed[0], "/$schema: not known, read as 2020-12");
}

// The URIs that json-schema.org publishes, and no others that look like them.
TEST(SchemaScope, DraftsAreNamedByTheirUris) {
  const auto counts_beside = [](const std::string& uri) {  // what stands beside a $ref
    return !Validator(R"({"$schema":")" + uri + R"(","$ref":"#/definitions/n","maximum":1,
                          "definitions":{"n":{"type":"integer"}}})")("2");
  };
  for (const char* draft : {"04", "06", "07"}) {
    for (const char* scheme : {"http", "https"}) {
      for (const char* end : {"", "#"}) {
        const std::string uri =
            std::string(scheme) + "://json-schema.org/draft-" + draft + "/schema" + end;
        EXPECT_FALSE(counts_beside(uri)) << uri;
      }
    }
  }
  for (const char* uri :
       {"https://json-schema.org/draft/2019-09/schema#",
        "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/schema#",
        "https://example.com/draft-07-ours/schema", "http://x.y/draft-07/schema#",
        "http://json-schema.org/draft-07/schemas", "http://x.y/draft-03"}) {
    EXPECT_TRUE(counts_beside(uri)) << uri;
  }
  SchemaReport report;
  Expressions to;
  ASSERT_TRUE(schema_expression(R"({"$schema":"https://example.com/draft-07-ours/schema"})", {}, to,
                                &report)
                  .ok());
  EXPECT_EQ(report.relaxed, std::vector<std::string>{"/$schema: not known, read as 2020-12"});
  EXPECT_EQ(
      refusal(R"({"$schema":"http://json-schema.org/draft-03/schema#"})"),
      "/$schema: the draft \"http://json-schema.org/draft-03/schema#\" is older than draft 4");
}

// What would take forever is refused, and by name. The bound is on what is looked at: no clock.
TEST(SchemaScope, HostileSchemasAreRefused) {
  std::string tower = R"({"type":"object","properties":{"a":{"type":"integer"}}})";
  for (int i = 0; i < 10; ++i) {
    tower = R"({"allOf":[{"anyOf":[)" + tower + R"(,{"required":["x)" + std::to_string(i) +
            R"("]}]},{"not":{"allOf":[)" + tower + R"(,{"required":["y"]}]}}]})";
    if (tower.size() > 100'000) break;
  }
  EXPECT_NE(refusal(tower).find("more than 200000 alternatives"), std::string::npos);
  std::string patterns = R"({"patternProperties":{)";
  for (char c = 'a'; c < 'u'; ++c) {
    patterns +=
        (c > 'a' ? ",\"" : "\"") + std::string(1, c) + "\":{\"minimum\":" + std::to_string(c) + "}";
  }
  EXPECT_NE(refusal(patterns + "}}").find("more than 200000 alternatives"), std::string::npos);
  std::string names = R"({"properties":{)";
  for (int i = 0; i < 20'000; ++i) {
    names += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":true";
  }
  EXPECT_EQ(refusal(names + "}}"), "/properties: more than 4096 names in one object");
  std::string list = R"(["p0")";
  for (int i = 1; i < 80'000; ++i) list += ",\"p" + std::to_string(i) + "\"";
  list += "]";
  EXPECT_EQ(refusal(R"({"type":"object","required":)" + list + "}"),
            "/required: more than 256 names in one object");
  EXPECT_NE(refusal(R"({"type":"object","required":["a"],"dependentRequired":{"a":)" + list + "}}"),
            "");
}

}  // namespace
}  // namespace gen::grammar

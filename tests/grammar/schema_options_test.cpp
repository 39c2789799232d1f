// SPDX-License-Identifier: Apache-2.0
// Options of schemas: what they relax, and that they say so; members in the order of their
// definition; references into other documents.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema/clause.h"
#include "grammar/schema/document.h"
#include "grammar/schema/relax.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

class Validator {
 public:
  Validator(const std::string& schema, const SchemaOptions& options) {
    const auto made = Grammar::from_json_schema(schema, options, {}, &report);
    if (!made.ok()) {
      refusal = made.status().message();
      return;
    }
    matcher_.emplace(
        Matcher::create(made.value()->over(test::vocabulary(test::all_bytes())).value()).value());
  }
  bool operator()(const std::string& text) {
    matcher_->reset();
    return matcher_->accept_bytes(text).value() && matcher_->is_complete();
  }
  /// Reads the bytes, then goes to the nearest end; empty if there is none.
  std::string finished(const std::string& text) {
    matcher_->reset();
    if (!matcher_->accept_bytes(text).value()) return "";
    std::string all = text;
    while (!matcher_->is_complete() && all.size() < 1000) {
      const uint64_t left = matcher_->min_bytes();
      const ByteSet valid = matcher_->valid_bytes();
      bool nearer = false;
      for (int byte = 0; byte < 256 && !nearer; ++byte) {
        const auto c = static_cast<char>(byte);
        if (!valid.has(static_cast<uint8_t>(byte))) continue;
        if (!matcher_->accept_bytes({&c, 1}).value()) return "";
        nearer = matcher_->min_bytes() < left;
        if (nearer) all += c;
        if (!nearer && !matcher_->rollback(1).ok()) return "";
      }
      if (!nearer) return "";
    }
    return all;
  }

  std::string refusal;
  SchemaReport report;

 private:
  std::optional<Matcher> matcher_;
};

TEST(SchemaOptions, OneOfAsAnyOf) {
  const std::string schema =
      R"({"properties":{"oneOf":{"oneOf":[{"type":"integer"},{"minimum":2}]},
          "b":{"not":{"oneOf":[{"type":"integer"},{"minimum":2}]}},
          "c":{"$ref":"#/properties/oneOf/oneOf/0"}},"const":{"oneOf":3,"b":0.5,"c":1}})";
  Validator exact(schema, {});
  EXPECT_NE(exact.refusal.find("no value is valid"), std::string::npos) << exact.refusal;
  EXPECT_TRUE(exact.report.relaxed.empty());
  SchemaOptions options;
  options.one_of_as_any_of = true;
  Validator relaxed(schema, options);
  ASSERT_EQ(relaxed.refusal, "");
  EXPECT_TRUE(relaxed(R"({"oneOf":3,"b":0.5,"c":1})"));
  EXPECT_EQ(relaxed.report.relaxed,
            (std::vector<std::string>{"/properties/b/not/oneOf: as anyOf",
                                      "/properties/oneOf/oneOf: as anyOf"}));
  Validator negated(R"({"not":{"oneOf":[{"type":"integer"},{"minimum":2}]}})", options);
  EXPECT_FALSE(negated("3"));
  EXPECT_TRUE(negated("0.5"));
}

// Schemas that lie below a name that is no keyword, as those of OpenAPI do.
TEST(SchemaOptions, KeywordsAreIgnoredWhereverAReferenceLeads) {
  SchemaOptions options;
  options.ignored = {"pattern"};
  options.one_of_as_any_of = true;
  const std::string components = R"("components":{"schemas":{
      "A":{"pattern":"(a)\\1","maxLength":2,"items":{"$ref":"#/components/schemas/B"}},
      "B":{"pattern":"b","oneOf":[true,{"pattern":"c"}],"not":{"const":"x"}},
      "C":{"pattern":"(a)\\1"},"pattern":{"type":"null"}}})";
  Validator relaxed(R"({"anyOf":[{"$ref":"#/components/schemas/A"},
      {"type":"number","$ref":"#/components/schemas/A/items"},
      {"$ref":"#/components/schemas/pattern"}],)" +
                        components + "}",
                    options);
  ASSERT_EQ(relaxed.refusal, "");
  const std::vector<std::string> told = {
      "/components/schemas/A/pattern: ignored", "/components/schemas/B/oneOf/1/pattern: ignored",
      "/components/schemas/B/oneOf: as anyOf", "/components/schemas/B/pattern: ignored"};
  std::vector<std::string> sorted = relaxed.report.relaxed;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, told);
  EXPECT_TRUE(relaxed(R"("ab")"));
  EXPECT_TRUE(relaxed(R"(["q"])"));
  EXPECT_FALSE(relaxed(R"(["x"])"));
  // The same in another document.
  options.resolver = [&](const std::string& uri) {
    return uri == "urn:o" ? std::optional("{" + components + "}") : std::nullopt;
  };
  Validator other(R"({"$ref":"urn:o#/components/schemas/C"})", options);
  ASSERT_EQ(other.refusal, "");
  EXPECT_EQ(other.report.relaxed,
            std::vector<std::string>{"urn:o#/components/schemas/C/pattern: ignored"});
  // Values stay as they are, whatever leads there.
  Validator values(R"({"type":"object","anyOf":[{"enum":[{"pattern":"b"}]},
      {"allOf":[{"$ref":"#/anyOf/0/enum/0"},{"maxProperties":0}]}]})",
                   options);
  ASSERT_EQ(values.refusal, "");
  EXPECT_TRUE(values(R"({"pattern":"b"})"));
  EXPECT_TRUE(values("{}"));
}

TEST(SchemaOptions, IgnoredKeywords) {
  SchemaOptions options;
  options.ignored = {"pattern", "minLength", "uniqueItems"};
  Validator relaxed(R"({"type":"object","additionalProperties":false,"properties":{
      "pattern":{"type":"string","pattern":"(a)\\1","minLength":3,"maxLength":4},
      "a/b":{"enum":[{"pattern":1}]},"l":{"uniqueItems":true},
      "r":{"$ref":"#/properties/pattern/pattern"}}})",
                    options);
  ASSERT_EQ(relaxed.refusal, "/properties/r/$ref: leads to no schema");
  relaxed = Validator(R"({"type":"object","additionalProperties":false,"properties":{
      "pattern":{"type":"string","pattern":"(a)\\1","minLength":3,"maxLength":4},
      "a/b":{"enum":[{"pattern":1}]},"l":{"uniqueItems":true}}})",
                      options);
  ASSERT_EQ(relaxed.refusal, "");
  EXPECT_EQ(relaxed.report.relaxed,
            (std::vector<std::string>{"/properties/l/uniqueItems: ignored",
                                      "/properties/pattern/minLength: ignored",
                                      "/properties/pattern/pattern: ignored"}));
  EXPECT_TRUE(relaxed(R"({"pattern":"x","l":[1,1],"a/b":{"pattern":1}})"));
  EXPECT_FALSE(relaxed(R"({"pattern":"12345"})"));
  EXPECT_FALSE(relaxed(R"({"a/b":{}})"));
  for (const char* name : {"pattern", "oneOf", "uniqueItems", "items", "additionalProperties",
                           "unevaluatedItems", "not", "if", "dependencies", "type"}) {
    EXPECT_TRUE(is_asking_keyword(name)) << name;
  }
  for (const char* name : {"", "$ref", "$defs", "definitions", "title", "patern"}) {
    EXPECT_FALSE(is_asking_keyword(name)) << name;
  }
}

TEST(SchemaOptions, MembersInTheOrderOfTheirDefinition) {
  SchemaOptions options;
  options.style.order = JsonStyle::Order::kDefinition;
  Validator some(R"({"type":"object","properties":{"z":{"type":"null"},"a":{"type":"null"},
      "m":{"type":"null"}},"required":["a"],"additionalProperties":{"type":"integer"}})",
                 options);
  ASSERT_EQ(some.refusal, "");
  for (const char* text : {R"({"a":null})", R"({"z":null,"a":null})", R"({"a":null,"m":null})",
                           R"({"z":null,"a":null,"m":null,"q":1,"b":2})", R"({"a":null,"b":1})"}) {
    EXPECT_TRUE(some(text)) << text;
  }
  for (const char* text :
       {"{}", R"({"a":null,"z":null})", R"({"m":null,"a":null})", R"({"b":1,"a":null})",
        R"({"a":null,"b":1,"m":null})", R"({"z":null,"m":null})"}) {
    EXPECT_FALSE(some(text)) << text;
  }
  // The required member cannot come any more behind these: they are not begun.
  EXPECT_EQ(some.finished("{\"m"), "");
  EXPECT_EQ(some.finished("{\"z\":null,\""), "{\"z\":null,\"a\":null}");

  Validator counted(
      R"({"type":"object","properties":{"z":{"const":1},"a":{"const":1},"m":{"const":1}},
      "minProperties":2,"maxProperties":2,"additionalProperties":false})",
      options);
  for (const char* text : {R"({"z":1,"a":1})", R"({"z":1,"m":1})", R"({"a":1,"m":1})"}) {
    EXPECT_TRUE(counted(text)) << text;
  }
  for (const char* text : {R"({"a":1,"z":1})", R"({"z":1})", R"({"z":1,"a":1,"m":1})"}) {
    EXPECT_FALSE(counted(text)) << text;
  }
  EXPECT_EQ(counted.finished("{\"m"), "");  // nothing could be the second
  EXPECT_EQ(counted.finished("{\"a"), "{\"a\":1,\"m\":1}");
}

TEST(SchemaOptions, OtherDocuments) {
  std::map<std::string, std::string> documents = {
      {"http://x.y/names.json",
       R"({"$defs":{"name":{"type":"string","pattern":"^[a-z]+$","$anchor":"n"}},
           "type":"array","items":{"$ref":"#/$defs/name"}})"},
      {"http://x.y/tree.json",
       R"({"$id":"urn:tree","properties":{"l":{"$ref":"#"},"n":{"$ref":"http://x.y/names.json#n"}},
           "additionalProperties":false,"type":"object"})"}};
  SchemaOptions options;
  options.resolver = [&](const std::string& uri) {
    const auto found = documents.find(uri);
    return found != documents.end() ? std::optional(found->second) : std::nullopt;
  };
  Validator all(
      R"({"$id":"http://x.y/root.json","anyOf":[{"$ref":"names.json"},{"$ref":"tree.json"},
      {"$ref":"tree.json#/properties/n"}]})",
      options);
  ASSERT_EQ(all.refusal, "");
  for (const char* text : {"[]", R"(["a"])", R"({"l":{"n":"x"}})", R"("x")"}) {
    EXPECT_TRUE(all(text)) << text;
  }
  for (const char* text : {"[1]", R"({"n":"X"})", R"({"l":{"m":1}})", "1"}) {
    EXPECT_FALSE(all(text)) << text;
  }
  const auto refusal = [&](const char* schema) { return Validator(schema, options).refusal; };
  EXPECT_EQ(refusal(R"({"$ref":"http://x.y/none.json"})"),
            "/$ref: unresolved reference http://x.y/none.json");
  documents["http://x.y/names.json"] = R"({"items":{"type":"text"}})";
  EXPECT_EQ(refusal(R"({"$ref":"http://x.y/names.json"})"),
            "http://x.y/names.json#/items/type: no type is called \"text\"");
  documents["http://x.y/names.json"] = "{";
  EXPECT_EQ(refusal("{}"), "");  // nothing leads there
  EXPECT_NE(refusal(R"({"$ref":"http://x.y/names.json"})").find("http://x.y/names.json: line 1"),
            std::string::npos);
  documents = {{"urn:a", R"({"oneOf":[true]})"}};
  options.ignored = {"oneOf"};
  EXPECT_EQ(Validator(R"({"$ref":"urn:a"})", options).report.relaxed,
            std::vector<std::string>{"urn:a#/oneOf: ignored"});
}

// Literals come in the order in which their schemas were read, wherever in memory those lie: what
// is made of a schema, and the numbers of its states, are always the same.
TEST(SchemaOptions, AddressesDoNotMatter) {
  SchemaDocument document = SchemaDocument::read(R"({"a":{"b":{}},"c":{}})").value();
  const JsonValue& root = document.root();
  const JsonValue& a = *root.find("a");
  std::vector<const JsonValue*> nodes = {&root, &a, a.find("b"), root.find("c")};
  std::vector<JsonValue> made(4);  // side by side, numbered from the last
  for (size_t i = made.size(); i-- > 0;) {
    document.number(&made[i]);
    nodes.push_back(&made[i]);
  }
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    EXPECT_LT(Literal{nodes[i]}, Literal{nodes[i + 1]}) << i;
    EXPECT_LT(Literal{nodes[i]}, !Literal{nodes[i]});
  }
}

}  // namespace
}  // namespace gen::grammar

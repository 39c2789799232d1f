// SPDX-License-Identifier: Apache-2.0
// Random schemas of all drafts against the verdicts of another validator (make_schema_pairs.mjs,
// seed 2026). What is refused is refused by name, and a schema without valid values has none there
// either.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/schema/json_value.h"
#include "grammar/vocabularies.h"
#include "support/json_text.h"

namespace gen::grammar {
namespace {

struct Pairs {
  std::string schema;
  std::vector<std::string> instances;
  std::string valid;
};

std::vector<Pairs> read_pairs() {
  std::vector<Pairs> made;
  std::ifstream file(GEN_SCHEMA_PAIRS);
  for (std::string line; std::getline(file, line);) {
    const JsonValue all = read_json(line).value();
    Pairs one;
    one.schema = test::json_text(*all.find("schema"));
    one.valid = all.find("valid")->text;
    for (const JsonValue& text : all.find("instances")->items) one.instances.push_back(text.text);
    made.push_back(std::move(one));
  }
  return made;
}

std::string verdicts_of(const Grammar& grammar, const std::vector<std::string>& instances) {
  static const auto kBytes = test::vocabulary(test::all_bytes());
  Matcher matcher = Matcher::create(grammar.once_over(kBytes).value()).value();
  std::string made;
  for (const std::string& text : instances) {
    matcher.reset();
    made += matcher.accept_bytes(text).value() && matcher.is_complete() ? '1' : '0';
  }
  return made;
}

TEST(SchemaPairs, AgreeWithAnotherValidator) {
  size_t pairs = 0;
  std::map<std::string, size_t> refused;
  const std::vector<Pairs> all = read_pairs();
  for (const Pairs& one : all) {
    const auto grammar = Grammar::from_json_schema(one.schema, SchemaOptions());
    if (!grammar.ok()) {
      const std::string why = grammar.status().message();
      const bool none = why.find("no value is valid") != std::string::npos;
      if (none) {
        EXPECT_EQ(one.valid.find('1'), std::string::npos) << why << " " << one.schema;
      }
      const size_t colon = why.find(": ");
      ASSERT_NE(colon, std::string::npos) << why;
      ++refused[none ? "none"
                     : why.substr(why.rfind('/', colon) + 1, colon - why.rfind('/', colon) - 1)];
      continue;
    }
    pairs += one.valid.size();
    const std::string made = verdicts_of(*grammar.value(), one.instances);
    for (size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(made[i], one.valid[i]) << one.schema << " " << one.instances[i];
    }
  }
  EXPECT_EQ(all.size(), 300U);
  EXPECT_GT(pairs, 2500U);
  for (const auto& [keyword, count] : refused) {
    EXPECT_TRUE(keyword == "none" || keyword == "uniqueItems") << keyword;
    EXPECT_LT(count, keyword == "none" ? 60U : 15U) << keyword;
  }
}

// What only tells people something is no part of the language: the same machines come out.
TEST(SchemaPairs, AnnotationsChangeNothing) {
  const std::vector<Pairs> all = read_pairs();
  size_t tried = 0;
  for (size_t i = 0; i < all.size(); i += 5) {
    JsonValue schema = read_json(all[i].schema).value();
    if (!schema.is(JsonType::kObject)) continue;
    const auto plain = Grammar::from_json_schema(all[i].schema, SchemaOptions());
    for (const char* name : {"title", "description", "$comment", "x-own"}) {
      schema.add(name, JsonValue::of_string("type"));
    }
    schema.add("default", JsonValue::of_number(1));
    schema.add("examples",
               JsonValue::array({JsonValue::object().add("$ref", JsonValue::of_string("#/no"))}));
    schema.add("readOnly", JsonValue::of_bool(true));
    const auto told = Grammar::from_json_schema(test::json_text(schema), SchemaOptions());
    ASSERT_EQ(plain.ok(), told.ok()) << all[i].schema;
    if (!plain.ok()) continue;
    ++tried;
    EXPECT_EQ(plain.value()->machines().states.size(), told.value()->machines().states.size())
        << all[i].schema;
    EXPECT_EQ(verdicts_of(*plain.value(), all[i].instances),
              verdicts_of(*told.value(), all[i].instances));
  }
  EXPECT_GT(tried, 40U);
}

}  // namespace
}  // namespace gen::grammar

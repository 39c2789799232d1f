// SPDX-License-Identifier: Apache-2.0
// Schemas as validators, for tests: texts byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar::test {

inline Result<std::shared_ptr<const Grammar>> compile(const std::string& schema,
                                                      const SchemaOptions& options = {}) {
  return Grammar::from_json_schema(schema, options);
}

inline std::string refusal(const std::string& schema) {
  const auto made = compile(schema);
  return made.ok() ? "" : made.status().message();
}

class Validator {
 public:
  explicit Validator(const std::string& schema) : Validator(*compile(schema).value()) {}
  explicit Validator(const Grammar& grammar)
      : matcher_(Matcher::create(grammar.over(vocabulary(all_bytes())).value()).value()) {}
  bool operator()(const std::string& text) {
    matcher_.reset();
    return matcher_.accept_bytes(text).value() && matcher_.is_complete();
  }

 private:
  Matcher matcher_;
};

struct SchemaCase {
  const char* schema;
  std::vector<const char*> valid;
  std::vector<const char*> invalid;
};

inline void check(const SchemaCase& one) {
  ASSERT_EQ(refusal(one.schema), "") << one.schema;
  Validator validator(one.schema);
  for (const char* text : one.valid) EXPECT_TRUE(validator(text)) << one.schema << " " << text;
  for (const char* text : one.invalid) EXPECT_FALSE(validator(text)) << one.schema << " " << text;
}

}  // namespace gen::grammar::test

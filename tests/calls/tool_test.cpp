// SPDX-License-Identifier: Apache-2.0
// Descriptions of tools: what is refused, and schemas that generators write around an object.
#include "calls/tool.h"

#include <gtest/gtest.h>

#include <string>

namespace gen::calls {
namespace {

TEST(Tool, ObjectsBehindReferencesMoveToTheTop) {
  const auto shown = [](const char* schema) {
    auto made = make_tool("f", "", schema);
    return made.ok() ? made->parameters : std::string(made.status().message());
  };
  const std::string plain = R"({"type": "object", "properties": {"a": {"type": "string"}}})";
  EXPECT_EQ(shown(plain.c_str()), plain);
  EXPECT_EQ(
      shown(R"({"$ref": "#/$defs/F", "$defs": {"F": {"type": "object", "properties": {"a": {"$ref":
      "#/$defs/A"}}}, "A": {"const": 1}}})"),
      R"({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"F": {"type": )"
      R"("object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "A": {"const": 1}}})");
  EXPECT_EQ(
      shown(R"({"allOf": [{"$ref": "#/definitions/F"}], "definitions": {"F": {"type": "object",
      "properties": {}}}})"),
      R"({"type": "object", "properties": {}, "definitions": {"F": {"type": "object", )"
      R"("properties": {}}}})");
  // Nothing is found in circles, and nowhere.
  EXPECT_EQ(shown(R"({"$ref": "#/$defs/F", "$defs": {"F": {"$ref": "#/$defs/F"}}})"),
            R"({"$ref": "#/$defs/F", "$defs": {"F": {"$ref": "#/$defs/F"}}})");
  EXPECT_EQ(shown(R"({"$ref": "#/$defs/G"})"), R"({"$ref": "#/$defs/G"})");
  EXPECT_EQ(shown(R"({"type": "string"})"),
            "the parameters of tool f are of the type string, not object");
}

TEST(Tool, NamesAreChecked) {
  EXPECT_FALSE(make_tool("", "", "").ok());
  EXPECT_FALSE(make_tool("a b", "", "").ok());
  EXPECT_FALSE(make_tool(std::string(65, 'a'), "", "").ok());
  EXPECT_FALSE(make_tool("a", "", "[]").ok());
  EXPECT_FALSE(make_tool("a", "", "{").ok());
  EXPECT_TRUE(make_tool("a.b-c_1", "", "").ok());
}

}  // namespace
}  // namespace gen::calls

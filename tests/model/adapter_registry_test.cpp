// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_registry.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace gen::model {
namespace {

std::shared_ptr<const LoadedAdapter> made(uint64_t content, size_t bytes = 10) {
  LoadedAdapter adapter;
  adapter.content = content;
  adapter.bytes = bytes;
  return std::make_shared<const LoadedAdapter>(std::move(adapter));
}

std::string why(const AdapterRegistry& registry, const std::vector<AdapterChoice>& choices) {
  const auto mix = registry.mix(choices);
  if (mix.ok()) return "";
  EXPECT_EQ(mix.status().code(), Code::kInvalidArgument);
  return mix.status().message();
}

TEST(AdapterRegistry, KeepsNamesOldestFirst) {
  AdapterRegistry registry;
  EXPECT_EQ(registry.size(), 0U);
  EXPECT_EQ(registry.name(0), "");
  ASSERT_TRUE(registry.put("a", 1, made(1)).ok());
  ASSERT_TRUE(registry.put("b", 1, made(2, 5)).ok());
  ASSERT_TRUE(registry.put("c", 1, made(3)).ok());
  EXPECT_EQ(registry.bytes(), 25U);
  const auto before = registry.mix(std::vector<AdapterChoice>{{"b", 1}}).value();
  ASSERT_TRUE(registry.put("b", 2, made(4, 7)).ok());  // in its place
  EXPECT_EQ(registry.size(), 3U);
  EXPECT_EQ(registry.name(1), "b");
  EXPECT_EQ(registry.bytes(), 27U);
  EXPECT_NE(registry.mix(std::vector<AdapterChoice>{{"b", 1}}).value()->identity, before->identity);
  ASSERT_TRUE(registry.remove("a").ok());
  EXPECT_EQ(registry.name(0), "b");
  EXPECT_EQ(registry.name(1), "c");
  EXPECT_EQ(registry.name(2), "");
  EXPECT_STREQ(registry.remove("a").message(), "no adapter is named \"a\"");
}

TEST(AdapterRegistry, RefusesNamesAndScales) {
  AdapterRegistry registry;
  EXPECT_TRUE(registry.put(std::string(kMaxAdapterName, 'n'), 1, made(1)).ok());
  for (const std::string& name : {std::string(), std::string(kMaxAdapterName + 1, 'n')}) {
    EXPECT_EQ(std::string(registry.put(name, 1, made(1)).message()),
              "an adapter's name of " + std::to_string(name.size()) + " bytes, outside [1, 255]");
  }
  EXPECT_STREQ(registry.put("\xff", 1, made(1)).message(), "an adapter's name is not UTF-8");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_STREQ(registry.put("a", kInfinity, made(1)).message(), "adapter scale inf is not finite");
  EXPECT_EQ(registry.size(), 1U);
}

TEST(AdapterRegistry, Mixes) {
  AdapterRegistry registry;
  for (uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(registry.put(std::string(1, static_cast<char>('a' + i - 1)), 2, made(i)).ok());
  }
  using Choices = std::vector<AdapterChoice>;
  EXPECT_EQ(registry.mix(Choices{}).value(), nullptr);
  EXPECT_EQ(registry.mix(Choices{{"a", 0}, {"b", -0.0F}}).value(), nullptr);
  const auto mix = registry.mix(Choices{{"a", 0.5F}, {"c", 0}, {"b", -3}}).value();
  ASSERT_EQ(mix->uses.size(), 2U);
  EXPECT_EQ(mix->uses[0].scale, 1.0F);  // multiplied by that of the registry
  EXPECT_EQ(mix->uses[1].scale, -6.0F);
  EXPECT_NE(mix->identity, 0U);
  EXPECT_EQ(registry.mix(Choices{{"b", -3}, {"a", 0.5F}}).value()->identity, mix->identity);
  EXPECT_NE(registry.mix(Choices{{"b", 0.5F}, {"a", -3}}).value()->identity, mix->identity);
  EXPECT_NE(registry.mix(Choices{{"a", 0.5F}}).value()->identity, mix->identity);

  EXPECT_EQ(why(registry, {{"a", 1}, {"x", 1}}), "no adapter is named \"x\"");
  EXPECT_EQ(why(registry, {{"x", 0}}), "no adapter is named \"x\"");
  EXPECT_EQ(why(registry, {{"a", 1}, {"a", 2}}), "adapter \"a\" is given twice");
  EXPECT_EQ(why(registry, {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}}),
            "5 adapters for one request, of at most 4");
  EXPECT_EQ(why(registry, {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 0}}), "");
  EXPECT_EQ(why(registry, {{"a", std::numeric_limits<float>::max()}}),
            "adapter \"a\": scales 2 and 3.40282e+38 multiply to inf");
}

}  // namespace
}  // namespace gen::model

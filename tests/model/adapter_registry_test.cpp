// SPDX-License-Identifier: Apache-2.0
#include "model/adapter_registry.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
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

/// The names, in order, as one text.
std::string names(const AdapterRegistry& registry) {
  std::string all;
  for (size_t i = 0; i < registry.size(); ++i) all += registry.name(i);
  return all;
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

TEST(AdapterRegistry, ForgetsTheLeastRecentlyUsedOverItsBudget) {
  AdapterRegistry registry;
  registry.set_budget(30);
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(registry.put(name, 1, made(1)).ok());
  EXPECT_EQ(names(registry), "abc");  // a budget that is just full
  ASSERT_TRUE(registry.put("d", 1, made(1)).ok());
  EXPECT_EQ(names(registry), "bcd");
  // Requests use names, with scale 0 too, and put() of a name that there is uses it.
  ASSERT_TRUE(registry.mix(std::vector<AdapterChoice>{{"b", 0}}).ok());
  ASSERT_TRUE(registry.put("c", 1, made(1)).ok());
  ASSERT_TRUE(registry.put("e", 1, made(1)).ok());
  EXPECT_EQ(names(registry), "bce");
  // One put() may forget several.
  ASSERT_TRUE(registry.put("f", 1, made(1, 15)).ok());
  EXPECT_EQ(names(registry), "ef");
  EXPECT_EQ(registry.bytes(), 25U);
  // A name in its own place leaves the room of what it stood for.
  ASSERT_TRUE(registry.put("e", 1, made(1, 15)).ok());
  EXPECT_EQ(names(registry), "ef");
  ASSERT_TRUE(registry.put("e", 1, made(1, 16)).ok());
  EXPECT_EQ(names(registry), "e");
  EXPECT_EQ(registry.bytes(), 16U);
  registry.set_budget(0);
  ASSERT_TRUE(registry.put("g", 1, made(1, 1000)).ok());
  EXPECT_EQ(names(registry), "eg");
}

TEST(AdapterRegistry, NamesOfOneMixAreUsedAtOnce) {
  for (const bool other_way : {false, true}) {
    AdapterRegistry registry;
    registry.set_budget(30);
    for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(registry.put(name, 1, made(1)).ok());
    std::vector<AdapterChoice> both = {{"a", 1}, {"b", 1}};
    if (other_way) std::swap(both[0], both[1]);
    ASSERT_TRUE(registry.mix(both).ok());
    ASSERT_TRUE(registry.put("d", 1, made(1)).ok());
    EXPECT_EQ(names(registry), "abd");
    ASSERT_TRUE(registry.put("e", 1, made(1, 11)).ok());
    EXPECT_EQ(names(registry), "de");
  }
  // What is refused uses nothing.
  AdapterRegistry registry;
  registry.set_budget(20);
  for (const char* name : {"a", "b"}) ASSERT_TRUE(registry.put(name, 1, made(1)).ok());
  EXPECT_NE(why(registry, {{"a", 1}, {"x", 1}}), "");
  ASSERT_TRUE(registry.put("c", 1, made(1)).ok());
  EXPECT_EQ(names(registry), "bc");
}

TEST(AdapterRegistry, RefusesAnAdapterAboveItsBudget) {
  AdapterRegistry registry;
  registry.set_budget(30);
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(registry.put(name, 1, made(1)).ok());
  const auto before = registry.mix(std::vector<AdapterChoice>{{"b", 1}}).value();
  for (const char* name : {"b", "d"}) {
    const Status status = registry.put(name, 2, made(2, 31));
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()),
              std::string("adapter \"") + name + "\" takes 31 bytes of the adapters' budget of 30");
  }
  EXPECT_EQ(names(registry), "abc");
  EXPECT_EQ(registry.bytes(), 30U);
  EXPECT_EQ(registry.mix(std::vector<AdapterChoice>{{"b", 1}}).value()->identity, before->identity);
  ASSERT_TRUE(registry.put("d", 1, made(2, 30)).ok());
  EXPECT_EQ(names(registry), "d");
}

TEST(AdapterRegistry, ALowerBudgetForgetsWhatIsThere) {
  AdapterRegistry registry;
  std::weak_ptr<const LoadedAdapter> kept[3];
  for (size_t i = 0; i < 3; ++i) {
    const auto adapter = made(i);
    kept[i] = adapter;
    ASSERT_TRUE(registry.put(std::string(1, static_cast<char>('a' + i)), 1, adapter).ok());
  }
  ASSERT_TRUE(registry.mix(std::vector<AdapterChoice>{{"a", 1}}).ok());
  registry.set_budget(30);
  EXPECT_EQ(names(registry), "abc");
  registry.set_budget(19);
  EXPECT_EQ(names(registry), "a");
  EXPECT_FALSE(kept[0].expired());
  EXPECT_TRUE(kept[1].expired());
  EXPECT_TRUE(kept[2].expired());
  EXPECT_EQ(why(registry, {{"b", 1}}), "no adapter is named \"b\"");
  registry.set_budget(9);
  EXPECT_EQ(registry.size(), 0U);
  EXPECT_EQ(registry.bytes(), 0U);
}

TEST(AdapterRegistry, CountsAnAdapterWithTwoNamesOnce) {
  AdapterRegistry registry;
  const auto shared = made(1, 20);
  ASSERT_TRUE(registry.put("a", 1, shared).ok());
  ASSERT_TRUE(registry.put("b", 2, shared).ok());
  EXPECT_EQ(registry.bytes(), 20U);
  ASSERT_TRUE(registry.put("c", 1, made(1, 20)).ok());  // equal, but another object
  EXPECT_EQ(registry.bytes(), 40U);
  registry.set_budget(40);
  EXPECT_EQ(names(registry), "abc");
  ASSERT_TRUE(registry.remove("a").ok());
  EXPECT_EQ(registry.bytes(), 40U);
  ASSERT_TRUE(registry.put("b", 1, shared).ok());
  EXPECT_EQ(registry.bytes(), 40U);
  ASSERT_TRUE(registry.put("c", 1, shared).ok());
  EXPECT_EQ(registry.bytes(), 20U);
  ASSERT_TRUE(registry.remove("b").ok());
  ASSERT_TRUE(registry.remove("c").ok());
  EXPECT_EQ(registry.bytes(), 0U);
}

TEST(AdapterRegistry, KeepsItsBudgetWhileThreadsUseIt) {
  constexpr int kTimes = 2000;
  constexpr size_t kMost = 45;
  AdapterRegistry registry;
  registry.set_budget(kMost);
  const auto name = [](int i) { return std::string(1, static_cast<char>('a' + i % 8)); };
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; i < kTimes; ++i) {
      EXPECT_TRUE(registry.put(name(3 * i), 1, made(1, 1 + static_cast<size_t>(i) % 20)).ok());
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kTimes; ++i) {
      const auto mix = registry.mix(std::vector<AdapterChoice>{{name(i), 1}, {name(i + 1), 1}});
      EXPECT_TRUE(mix.ok() ? mix.value()->uses.size() == 2
                           : mix.status().code() == Code::kInvalidArgument);
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kTimes; ++i) static_cast<void>(registry.remove(name(5 * i)));
  });
  threads.emplace_back([&] {
    for (int i = 0; i < kTimes; ++i) {
      registry.set_budget(i % 2 == 0 ? 25 : kMost);
      EXPECT_LE(registry.bytes(), kMost);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(registry.bytes(), kMost);
  while (registry.size() != 0) ASSERT_TRUE(registry.remove(registry.name(0)).ok());
  EXPECT_EQ(registry.bytes(), 0U);
}

}  // namespace
}  // namespace gen::model

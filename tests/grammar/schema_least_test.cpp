// SPDX-License-Identifier: Apache-2.0
// The fewest bytes that end an object are a sum: those of its required members, of the cheapest
// others until there are as many as it must have, of the commas between them and of its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"

namespace gen::grammar {
namespace {

struct Member {
  std::string name;
  std::string type;
  std::string least;  // a shortest value
  bool required;

  [[nodiscard]] std::string text() const { return "\"" + name + "\":" + least; }
};

std::vector<Member> some_members(std::mt19937& random) {
  static const struct {
    const char* type;
    const char* least;
  } kTypes[] = {
      {"integer", "0"}, {"boolean", "true"}, {"string", "\"\""}, {"array", "[]"}, {"null", "null"}};
  std::vector<Member> members(1 + random() % 11);
  for (size_t i = 0; i < members.size(); ++i) {
    const auto& kind = kTypes[random() % std::size(kTypes)];
    members[i] = {std::string(random() % 6, 'x') + static_cast<char>('a' + i), kind.type,
                  kind.least, random() % 2 == 0};
  }
  return members;
}

// With `open`, any names of two capitals may come, with integers.
constexpr size_t kOpenSize = 6;  // "AA":0

std::string schema_of(const std::vector<Member>& members, size_t least, bool open) {
  std::string properties;
  std::string required;
  for (const Member& one : members) {
    properties +=
        (properties.empty() ? "" : ",") + ("\"" + one.name + "\":{\"type\":\"") + one.type + "\"}";
    if (one.required) required += (required.empty() ? "\"" : ",\"") + one.name + "\"";
  }
  const std::string others =
      open ? R"("patternProperties":{"^[A-Z]{2}$":{"type":"integer"}},)" : "";
  return R"({"type":"object","additionalProperties":false,)" + others + "\"properties\":{" +
         properties + "},\"required\":[" + required +
         "],\"minProperties\":" + std::to_string(least) + "}";
}

// Bytes behind the first `there` members of `members` and before the brace that ends the object.
size_t fewest(const std::vector<Member>& members, size_t there, size_t least, bool open) {
  std::vector<size_t> others;
  size_t count = there;
  size_t bytes = 0;
  for (size_t i = there; i < members.size(); ++i) {
    const size_t size = members[i].text().size();
    if (!members[i].required) {
      others.push_back(size);
      continue;
    }
    bytes += size + (count == 0 ? 0 : 1);
    ++count;
  }
  if (open) others.insert(others.end(), least, kOpenSize);
  std::sort(others.begin(), others.end());
  for (const size_t size : others) {
    if (count >= least) break;
    bytes += size + (count == 0 ? 0 : 1);
    ++count;
  }
  return bytes;
}

TEST(SchemaLeast, ObjectsEndInAsFewBytesAsTheirMembersNeed) {
  const auto vocabulary = test::vocabulary(test::all_bytes());
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<Member> members = some_members(random);
    const bool open = round % 2 == 0;
    const size_t least = random() % (members.size() + (open ? 8 : 1));
    const std::string schema = schema_of(members, least, open);
    const auto grammar = Grammar::from_json_schema(schema, SchemaOptions{});
    ASSERT_TRUE(grammar.ok()) << schema;
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    std::shuffle(members.begin(), members.end(), random);
    std::string text = "{";
    for (size_t there = 0;; ++there) {
      ASSERT_TRUE(matcher.accept_bytes(text).ok()) << schema << text;
      ASSERT_EQ(matcher.min_bytes(), fewest(members, there, least, open) + 1)
          << schema << " behind " << there << " members";
      if (there == members.size()) break;
      text = (there == 0 ? "" : ",") + members[there].text();
    }
  }
}

}  // namespace
}  // namespace gen::grammar

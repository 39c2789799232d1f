// SPDX-License-Identifier: Apache-2.0
// Proves that what is quoted is JSON, whatever bytes it holds, and says the text that came.
#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "nlohmann/json.hpp"

namespace gen {
namespace {

TEST(JsonQuote, IsReadAsTheText) {
  std::string all;
  for (int byte = 0; byte < 128; ++byte) all += static_cast<char>(byte);
  all += "\u00e9\u20ac\U0001F600";
  EXPECT_EQ(nlohmann::json::parse(json_quote(all)).get<std::string>(), all);
}

TEST(JsonQuote, OfWhatIsNoTextIsJson) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(json_quote("a\xff\xc3\xa9\xc3"), "\"a" + bad + "\u00e9" + bad + "\"");
  EXPECT_EQ(json_quote("\xed\xa0\x80|\xf0\x9f"), "\"" + bad + bad + bad + "|" + bad + bad + "\"");
  for (int first = 128; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{static_cast<char>(first), static_cast<char>(second), 'x'};
      EXPECT_TRUE(nlohmann::json::accept(json_quote(text))) << first << " " << second;
    }
  }
}

}  // namespace
}  // namespace gen

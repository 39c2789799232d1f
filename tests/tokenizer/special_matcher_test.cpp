// SPDX-License-Identifier: Apache-2.0
// SpecialMatcher finds the leftmost match, the longest there; checked by hand and against a plain
// search.
#include "tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace gen::tokenizer {
namespace {

TEST(SpecialMatcher, LeftmostThenLongest) {
  SpecialMatcher matcher;
  matcher.add("<a", 1);
  matcher.add("<ab>", 2);
  matcher.add("b>c", 3);
  matcher.add("x", 4);
  matcher.finish();
  auto match = matcher.find("..<ab>c", 0);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 2U);
  EXPECT_EQ(match->end, 6U);
  EXPECT_EQ(match->id, 2);
  match = matcher.find("<ab", 0);  // the longer one is cut off
  ASSERT_TRUE(match);
  EXPECT_EQ(match->id, 1);
  EXPECT_EQ(match->end, 2U);
  match = matcher.find("x<a", 1);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 1U);
  EXPECT_FALSE(matcher.find("nothing here", 0));
  EXPECT_FALSE(matcher.find("", 0));
  EXPECT_FALSE(matcher.find("x", 1));
}

TEST(SpecialMatcher, EmptyFindsNothing) {
  SpecialMatcher matcher;
  matcher.finish();
  EXPECT_FALSE(matcher.find("abc", 0));
}

TEST(SpecialMatcher, EqualsAPlainSearch) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < 1 + random() % 6; ++i) {
      std::string text;
      for (size_t k = 0; k < 1 + random() % 4; ++k) text += "ab\xFF"[random() % 3];
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
    SpecialMatcher matcher;
    for (size_t i = 0; i < texts.size(); ++i) matcher.add(texts[i], static_cast<int32_t>(i));
    matcher.finish();
    std::string text;
    for (size_t k = 0; k < random() % 12; ++k) text += "abc\xFF"[random() % 4];

    size_t begin = text.size();
    size_t length = 0;
    for (size_t at = 0; at < text.size() && length == 0; ++at) {
      for (const std::string& one : texts) {
        if (text.compare(at, one.size(), one) == 0 && one.size() > length) {
          begin = at;
          length = one.size();
        }
      }
    }
    const auto match = matcher.find(text, 0);
    ASSERT_EQ(match.has_value(), length != 0) << text;
    if (!match) continue;
    EXPECT_EQ(match->begin, begin) << text;
    EXPECT_EQ(match->end, begin + length) << text;
    EXPECT_EQ(texts[static_cast<size_t>(match->id)], text.substr(begin, length));
  }
}

}  // namespace
}  // namespace gen::tokenizer

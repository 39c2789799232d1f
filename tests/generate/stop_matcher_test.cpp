// SPDX-License-Identifier: Apache-2.0
// Proves that no byte of a stop string gets out and that nothing is held back longer than needed,
// against searching and comparing the whole text at every step.
#include "generate/text/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace gen::generate {
namespace {

using Strings = std::vector<std::string>;

// What each piece set free, then what the end set free; nothing after a match.
Strings pass(const Strings& stops, const Strings& pieces, bool* matched = nullptr) {
  StopMatcher matcher(stops);
  Strings out;
  bool hit = false;
  for (const std::string& piece : pieces) {
    std::string text;
    hit = matcher.feed(piece, &text);
    out.push_back(text);
    if (hit) break;
  }
  if (!hit) {
    std::string text;
    matcher.flush(&text);
    out.push_back(text);
  }
  if (matched != nullptr) *matched = hit;
  return out;
}

TEST(StopMatcher, ExamplesOfTheSpecification) {
  EXPECT_EQ(pass({"bar"}, {"foo", " ba", "r x"}), (Strings{"foo", " ", ""}));
  EXPECT_EQ(pass({"abac"}, {"ab", "aba", "c"}), (Strings{"", "ab", ""}));
  EXPECT_EQ(pass({"abac"}, {"ab", "aba"}), (Strings{"", "ab", "aba"}));
}

TEST(StopMatcher, EmptyStopsAreIgnored) {
  EXPECT_EQ(pass({}, {"a", "b"}), (Strings{"a", "b", ""}));
  EXPECT_EQ(pass({"", ""}, {"a", "b"}), (Strings{"a", "b", ""}));
}

TEST(StopMatcher, EarliestStartWinsNotListOrder) {
  EXPECT_EQ(pass({"d", "bc"}, {"abcd"}), (Strings{"a"}));
  EXPECT_EQ(pass({"b", "abc"}, {"xabc"}), (Strings{"x"}));
  EXPECT_EQ(pass({"abc", "b"}, {"xabc"}), (Strings{"x"}));
}

TEST(StopMatcher, SpansAnyNumberOfPieces) {
  bool matched = false;
  EXPECT_EQ(pass({"stop"}, {"x", "s", "", "t", "o", "p", "y"}, &matched),
            (Strings{"x", "", "", "", "", ""}));
  EXPECT_TRUE(matched);
}

TEST(StopMatcher, FeedingAfterAFlushStartsAnew) {
  StopMatcher matcher(Strings{"ab"});
  std::string out;
  EXPECT_FALSE(matcher.feed("xa", &out));
  matcher.flush(&out);
  EXPECT_FALSE(matcher.feed("b", &out));
  EXPECT_EQ(out, "xab");
}

// Long runs of one letter are the worst case for naive holding back: 10^10 steps here.
TEST(StopMatcher, LinearInTheText) {
  const std::string run(100000, 'a');
  StopMatcher matcher(Strings{run + "b", run + "c"});
  std::string out;
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(matcher.feed(std::string(300, 'a'), &out));
  EXPECT_EQ(matcher.held(), 100000U);
  EXPECT_TRUE(matcher.feed("c", &out));
  EXPECT_EQ(out.size(), 200000U);
}

// Random texts over two letters, so that partial matches are everywhere.
TEST(StopMatcher, EqualsSearchingTheWholeText) {
  int matches = 0;
  for (uint64_t round = 0; round < 4000; ++round) {
    uint64_t counter = 0;
    const auto below = [&](uint64_t n) {
      return static_cast<size_t>(uniform_double(round, 1, counter++) * static_cast<double>(n));
    };
    const auto word = [&](size_t size) {
      std::string text;
      for (size_t i = 0; i < size; ++i) text += "ab"[below(2)];
      return text;
    };
    Strings stops;
    for (size_t i = below(4); i-- > 0;) stops.push_back(word(below(7)));
    StopMatcher matcher(stops);
    std::string fed;
    std::string out;
    for (int i = 0; i < 12; ++i) {
      const std::string piece = word(below(5));
      const bool hit = matcher.feed(piece, &out);
      fed += piece;

      size_t first = std::string::npos;
      size_t hold = 0;
      for (const std::string& stop : stops) {
        if (stop.empty()) continue;
        first = std::min(first, fed.find(stop));
        for (size_t n = std::min(stop.size() - 1, fed.size()); n > hold; --n) {
          if (fed.ends_with(stop.substr(0, n))) hold = n;
        }
      }
      ASSERT_EQ(hit, first != std::string::npos) << "round " << round;
      ASSERT_EQ(out, fed.substr(0, hit ? first : fed.size() - hold)) << "round " << round;
      if (hit) {
        ++matches;
        break;
      }
      ASSERT_EQ(matcher.held(), hold);
    }
  }
  EXPECT_GT(matches, 1000);  // the rounds do reach what they are about
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Proves where repetitions end: in the token in which a text ends, however tokens cut it, found
// anew for random texts by looking at all of them; and that a followed text and one seen at once
// are the same.
#include "generate/text/dry_breaks.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "generate/fake_world.h"

namespace gen::generate {
namespace {

const Strings kSome{
    "a", "b", "ab", ":", " :\n", "\n", "n:", "\xC3", "\xA9", "aba", "Hum", "an", ""};

size_t unbroken(const FakeTokenizer* tokenizer, const Strings& texts, const Tokens& held) {
  DryBreaks breaks(tokenizer, texts);
  EXPECT_TRUE(breaks.follow(held).ok());
  return breaks.unbroken();
}

// Of all of the text at once, and of the places where tokens end in it.
size_t reference(const FakeTokenizer& tokenizer, const Strings& texts, const Tokens& held) {
  size_t last = 0;  // tokens up to the last break
  std::string all;
  for (size_t i = 0; i < held.size(); ++i) {
    const size_t begin = all.size();
    if (tokenizer.is_control(held[i])) {
      last = i + 1;
      all.clear();
      continue;
    }
    all += tokenizer.spec().tokens[static_cast<size_t>(held[i])];
    for (const std::string& text : texts) {
      for (size_t end = std::max(begin + 1, text.size()); end <= all.size(); ++end) {
        if (all.compare(end - text.size(), text.size(), text) == 0) last = i + 1;
      }
    }
  }
  return held.size() - last;
}

TEST(DryBreaks, AreWhereATextEnds) {
  const FakeTokenizer tokenizer(kSome);
  World world(64, 4, kSome);
  const Strings texts{"\n", "Human:", "\xC3\xA9"};
  const auto after = [&](const Strings& pieces) {
    return unbroken(&tokenizer, texts, world.ids(pieces));
  };
  EXPECT_EQ(after({}), 0U);
  EXPECT_EQ(after({"a", "b"}), 2U);
  EXPECT_EQ(after({"a", "\n", "b", "a"}), 2U);
  EXPECT_EQ(after({"a", "b", " :\n"}), 0U);
  EXPECT_EQ(after({"Hum", "an", ":", "a"}), 1U);
  EXPECT_EQ(after({"Hum", "an", "", ":", "a"}), 1U);
  EXPECT_EQ(after({"Hum", "an", "a", ":", "a"}), 5U);
  EXPECT_EQ(after({"an", ":", "a"}), 3U);
  EXPECT_EQ(after({"\xC3", "\xA9", "a", "b"}), 2U);
  // A control token, and no text goes over it.
  EXPECT_EQ(unbroken(&tokenizer, texts, {2, 1, 3, 3}), 2U);
  EXPECT_EQ(unbroken(&tokenizer, {"ab"}, {2, 1, 3, 3}), 2U);
  EXPECT_EQ(unbroken(&tokenizer, {}, world.ids({"\n", "a"})), 2U);
  EXPECT_EQ(unbroken(nullptr, texts, {1, 5, 5, 900}), 4U);
  DryBreaks breaks(&tokenizer, texts);
  EXPECT_EQ(breaks.follow(Tokens{900}).code(), Code::kOutOfRange);
}

TEST(DryBreaks, EqualLookingAtAllOfATextAndAtOneTokenMore) {
  const FakeTokenizer tokenizer(kSome);
  const auto vocab = static_cast<double>(tokenizer.vocab_size());
  for (uint64_t round = 0; round < 400; ++round) {
    const std::vector<Strings> choices{{"\n", ":", "\"", "*"}, {"aba", "bab:"}, {"Human:"},
                                       {"\xC3\xA9", "abab"},   {"ba", "n:\n"},  {}};
    const Strings texts = choices[round % choices.size()];
    DryBreaks follows(&tokenizer, texts);
    Tokens held;
    for (uint64_t i = 0; i < 50; ++i) {
      // Controls are rare, and few kinds of tokens make many matches.
      int32_t token = static_cast<int32_t>(uniform_double(round, 0, i) * vocab);
      if (token < 2 && i % 5 != 0) token = 2;
      held.push_back(token);
      ASSERT_TRUE(follows.follow(held).ok());
      ASSERT_EQ(follows.unbroken(), reference(tokenizer, texts, held)) << round << ", " << i;
      ASSERT_EQ(follows.unbroken(), unbroken(&tokenizer, texts, held));
    }
  }
}

TEST(DryBreaks, TokensThatAreBreaksByThemselves) {
  const FakeTokenizer tokenizer(kSome);
  World world(64, 4, kSome);
  DryBreaks breaks(&tokenizer, {":", "Human"});
  const auto breaks_alone = [&](const char* piece) {
    return breaks.breaks(world.ids({piece})[0]).value();
  };
  EXPECT_TRUE(breaks_alone(":"));
  EXPECT_TRUE(breaks_alone(" :\n"));
  EXPECT_TRUE(breaks_alone("n:"));
  EXPECT_FALSE(breaks_alone("a"));
  EXPECT_FALSE(breaks_alone("an"));  // though a breaker may end there
  EXPECT_FALSE(breaks_alone(""));
  EXPECT_TRUE(breaks.breaks(FakeTokenizer::kEos).value());
  EXPECT_EQ(breaks.breaks(900).status().code(), Code::kOutOfRange);
  DryBreaks without(nullptr, {":"});
  EXPECT_FALSE(without.breaks(1).value());
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Words per family, written down by hand from the families' rules; and for every family: the words
// are the text, whatever the text.
#include "tokenizer/pretokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tokenizer/vocabularies.h"

namespace gen::tokenizer {
namespace {

using Words = std::vector<std::string>;

class Collector final : public WordSink {
 public:
  Status word(std::string_view text) override {
    words.emplace_back(text);
    return {};
  }
  Words words;
};

Words words_of(std::string_view family, std::string_view text) {
  auto made = Pretokenizer::create(family);
  if (!made.ok()) return {made.status().message()};
  Collector collector;
  const Status status = made->split(text, &collector);
  return status.ok() ? collector.words : Words{status.message()};
}

struct Case {
  const char* family;
  const char* text;
  Words words;
};

TEST(Pretokenizer, FamiliesCutAsTheyDo) {
  const Case cases[] = {
      {"gpt-2", "Hello world", {"Hello", " world"}},
      {"gpt-2", "a   b", {"a", "  ", " b"}},
      {"gpt-2", "a  ", {"a", "  "}},
      {"gpt-2", "a\n\nb", {"a", "\n", "\n", "b"}},
      {"gpt-2", "don't DON'T", {"don", "'t", " DON", "'", "T"}},
      {"gpt-2", "x12345!?", {"x", "12345", "!?"}},
      {"gpt-2", "(f) hi!!\n", {"(", "f", ")", " hi", "!!", "\n"}},
      {"gpt-2",
       "a\xC2\xA0"
       "b",
       {"a", "\xC2\xA0", "b"}},
      // U+180E is no white space, so it joins other signs
      {"gpt-2", "\xE1\xA0\x8E!", {"\xE1\xA0\x8E!"}},
      {"gpt-2",
       "\xC3\xA9t\xC3\xA9 \xE6\x97\xA5\xE6\x9C\xAC",
       {"\xC3\xA9t\xC3\xA9", " \xE6\x97\xA5\xE6\x9C\xAC"}},
      {"starcoder", "x 123", {"x", " ", "1", "2", "3"}},
      {"starcoder", "don't", {"don", "'t"}},
      {"falcon", "x12345", {"x", "123", "45"}},
      {"falcon", "a `b`--c", {"a", " ", "`", "b", "`--", "c"}},
      {"default", "x12345", {"x", "123", "45"}},
      {"default", "a $b", {"a", " ", "$", "b"}},
      {"llama-bpe", "x12345", {"x", "123", "45"}},
      {"llama-bpe", "don't DON'T", {"don", "'t", " DON", "'T"}},
      {"llama-bpe", "a\n\nb", {"a", "\n\n", "b"}},
      {"llama-bpe", "a \n  b", {"a", " \n", " ", " b"}},
      {"llama-bpe", "(f) hi!!\nx", {"(f", ")", " hi", "!!\n", "x"}},
      {"llama-bpe",
       "a\xC2\xA0"
       "b",
       {"a",
        "\xC2\xA0"
        "b"}},
      {"llama-bpe", "  x", {" ", " x"}},
      {"qwen2", "x12345", {"x", "1", "2", "3", "4", "5"}},
      {"qwen2", "it'S  5", {"it", "'S", " ", " ", "5"}},
      {"tekken", "HelloWorld XMLFile", {"Hello", "World", " XMLFile"}},
      {"tekken", "a/b/\n", {"a", "/b", "/\n"}},
      {"gpt-4o", "HelloWorld's 1234", {"Hello", "World's", " ", "123", "4"}},
      {"minimax-m2", "HelloWorld's 1234", {"Hello", "World's", " ", "123", "4"}},
      {"laguna", "don't\n\n  a 12", {"don", "'t", "\n\n", " ", " a", " ", "1", "2"}},
      {"laguna", "a! \nb", {"a", "!", " ", "\n", "b"}},
      {"deepseek-coder", "a b1\n", {"a", " b", "1", "\n"}},
      {"deepseek-v3", "abc1234 d", {"abc", "123", "4", " d"}},
      {"bloom", "ab, c", {"ab", ",", " c"}},
      {"qwen35", "e\xCC\x81t", {"e\xCC\x81t"}},
      {"chameleon", "xIMGIMGABZy  1!?", {"x", "IMGIMGABZ", "y", "  ", "1", "!", "?"}},
      {"jais-2", "a   \n     ", {"a", "   \n", "    ", " "}},
      {"jais-2", "a       b", {"a", "    ", "  ", " b"}},
      {"minicpm5", "ab1234 5", {"ab", "123", "4", " ", "5"}},
      {"ufakzeka", "Ali'nin don't", {"Ali", "'nin", " don", "'t"}},
      {"qwen2", "Ali'dan", {"Ali", "'d", "an"}},
      {"seed-coder", "a!!\nb", {"a", "!!", "\n", "b"}},
      {"exaone-moe", "the cat  sat. On", {"the cat", " ", " sat", ".", " On"}},
      {"exaone-moe", "a!/b", {"a", "!/", "b"}},
      {"granite-embed-multi-97m", "e\xCC\x81Xy's", {"e\xCC\x81", "Xy's"}},
      {"cohere2moe", "12345 1234x", {"12", "345", " ", "123", "4", "x"}},
      {"youtu",
       "aB\xEC\x95\x88\xE4\xBD\xA0 12",
       {"a", "B", "\xEC\x95\x88", "\xE4\xBD\xA0", " ", "1", "2"}},
      {"kimi-k2",
       "aB\xE4\xBD\xA0\xE5\xA5\xBDx's 1234",
       {"a", "B", "\xE4\xBD\xA0\xE5\xA5\xBD", "x's", " ", "123", "4"}},
      // letters without case are none here
      {"deepseek-llm",
       "a \xC3\xA9\xD7\x90 b! 123\n ",
       {"a", " \xC3\xA9", "\xD7\x90", " b", "!", " ", "123", "\n", " "}},
      {"spark2_5", "a!!\n\nb1234", {"a", "!!", "\n", "\n", "b", "1", "2", "3", "4"}},
      {"afmoe", "x1234567 y", {"x", "1", "234", "567", " y"}},
      {"afmoe", "\xE4\xBD\xA0\xE0\xB9\x80z", {"\xE4\xBD\xA0\xE0\xB9\x80", "z"}},
      {"superbpe", "one two 12345, x\xC2\xBD", {"one two ", "12", "345", ", x", "\xC2\xBD"}},
      {"viking", "ab12, c", {"ab", "1", "2", ",", " c"}},
      {"qwen2", "e\xCC\x81t", {"e", "\xCC\x81t"}},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(words_of(one.family, one.text), one.words) << one.family << ": " << one.text;
  }
}

TEST(Pretokenizer, UnknownFamily) {
  const auto made = Pretokenizer::create("nothing");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kUnsupported);
  const std::string message = made.status().message();
  EXPECT_TRUE(message.starts_with(
      "pre-tokenizer 'nothing' is not known; the option pre_tokenizer names another: default, "));
  for (const char* family : {"gpt-2", "llama-bpe", "qwen2", "gpt-4o", "viking, …"}) {
    EXPECT_NE(message.find(family), std::string::npos) << family;
  }
}

constexpr const char* kFamilies[] = {
    "default",    "gpt-2",        "falcon",         "starcoder",   "chameleon",  "llama-bpe",
    "jais-2",     "minicpm5",     "qwen2",          "ufakzeka",    "seed-coder", "qwen35",
    "exaone-moe", "tekken",       "gpt-4o",         "cohere2moe",  "youtu",      "kimi-k2",
    "laguna",     "deepseek-llm", "deepseek-coder", "deepseek-v3", "spark2_5",   "afmoe",
    "superbpe",   "bloom",        "viking"};

TEST(Pretokenizer, WordsAreTheText) {
  std::mt19937 random(5);
  for (const char* family : kFamilies) {
    auto made = Pretokenizer::create(family);
    ASSERT_TRUE(made.ok()) << family << ": " << made.status().message();
    for (int round = 0; round < 200; ++round) {
      const std::string text = test::random_text(&random, random() % 30);
      Collector collector;
      ASSERT_TRUE(made->split(text, &collector).ok());
      std::string joined;
      for (const std::string& word : collector.words) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      EXPECT_EQ(joined, text) << family;
    }
  }
}

// Runs of one kind of character are where a regular expression backtracks.
TEST(Pretokenizer, LongRuns) {
  for (const char* family : kFamilies) {
    auto made = Pretokenizer::create(family);
    ASSERT_TRUE(made.ok());
    for (const char* unit : {" ", "\n", "a", "A", "1", "!", "\xC3\xA9", "\xCC\x81", " \n", "'",
                             "\xE4\xBD\xA0", "aB", "1a"}) {
      std::string text;
      while (text.size() < 40'000) text += unit;
      for (const char* end : {"", "1"}) {
        text += end;
        Collector collector;
        const Status status = made->split(text, &collector);
        ASSERT_TRUE(status.ok()) << family << " on " << unit << ": " << status.message();
        size_t size = 0;
        for (const std::string& word : collector.words) size += word.size();
        EXPECT_EQ(size, text.size());
      }
    }
  }
}

class Refuser final : public WordSink {
 public:
  Status word(std::string_view /*text*/) override {
    return ++calls == 2 ? error(Code::kCancelled, "enough") : Status();
  }
  int calls = 0;
};

TEST(Pretokenizer, StopsAtTheSinksError) {
  auto made = Pretokenizer::create("default");
  ASSERT_TRUE(made.ok());
  Refuser refuser;
  EXPECT_STREQ(made->split("one two three", &refuser).message(), "enough");
  EXPECT_EQ(refuser.calls, 2);
}

}  // namespace
}  // namespace gen::tokenizer

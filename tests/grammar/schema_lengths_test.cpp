// SPDX-License-Identifier: Apache-2.0
// Lengths of strings that have a format or a pattern, too: characters counted while a text is read
// are as a state for each count of them, in every call of a matcher.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

std::shared_ptr<const Grammar> make(const std::string& schema, size_t counted_states,
                                    bool plain = false) {
  SchemaOptions options;
  options.counted_states = counted_states;
  options.style.plain = plain;
  auto made = Grammar::from_json_schema(schema, options);
  EXPECT_TRUE(made.ok()) << schema << ": " << made.status().message();
  return made.ok() ? made.value() : nullptr;
}

bool counts(const Grammar& grammar) { return !grammar.machines().fewest.empty(); }

std::shared_ptr<const Vocabulary> vocabulary() {
  static const std::array<const char*, 22> kPieces = {
      "a",    "b",    "1",    "/",       ":",       ".",      "%2f",      "@",
      "\"",   ", ",   "\\",   "\\u0061", "\\n",     "\\u",    "\xC3\xA9", "\xF0\x9D\x84\x9E",
      "\xF0", "\x9D", "d834", "\\ud834", "\\udd1e", "http://"};
  std::vector<std::string> texts = test::all_bytes();
  std::mt19937 random(5);
  for (int i = 0; i < 700; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 5; n > 0; --n) text += kPieces[random() % kPieces.size()];
    texts.push_back(text);
  }
  for (const size_t n : {8U, 16U, 40U}) texts.emplace_back(n, 'a');
  return test::vocabulary(texts);
}

std::vector<uint64_t> mask_of(const Matcher& matcher) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words(), 0);
  const Status status = matcher.mask(mask);
  EXPECT_TRUE(status.ok()) << status.message();
  return mask;
}

// One walk of both, side by side.
void compare(const std::string& schema, bool plain, const std::shared_ptr<const Vocabulary>& tokens,
             std::mt19937& random) {
  const auto counted = make(schema, 0, plain);
  const auto states = make(schema, SIZE_MAX, plain);
  ASSERT_TRUE(counted != nullptr && states != nullptr);
  ASSERT_TRUE(counts(*counted)) << schema;
  ASSERT_FALSE(counts(*states));
  Matcher one = Matcher::create(counted->over(tokens).value()).value();
  Matcher other = Matcher::create(states->over(tokens).value()).value();
  for (int round = 0; round < gen::test::fewer(12); ++round) {
    one.reset();
    other.reset();
    for (int step = 0; step < 60; ++step) {
      const auto mask = mask_of(one);
      ASSERT_EQ(mask, mask_of(other)) << schema << " at " << one.accepted();
      ASSERT_EQ(one.valid_bytes().words, other.valid_bytes().words) << schema;
      ASSERT_EQ(one.is_complete(), other.is_complete());
      ASSERT_EQ(one.is_finished(), other.is_finished());
      ASSERT_EQ(one.min_bytes(), other.min_bytes()) << schema << " at " << step;
      ASSERT_EQ(one.forced_bytes(20).value(), other.forced_bytes(20).value()) << schema;
      if (step % 4 == 0) {
        std::vector<uint64_t> within(mask.size());
        std::vector<uint64_t> within_other(mask.size());
        // With fewer it would be a search within limits.
        const uint64_t most = one.min_bytes() + random() % 12;
        ASSERT_EQ(one.mask_within(most, within).value(),
                  other.mask_within(most, within_other).value());
        ASSERT_EQ(within, within_other) << schema << ", within " << most;
        const FewestTokens fewest = one.min_tokens(1U << 16U);
        const FewestTokens fewest_other = other.min_tokens(1U << 16U);
        if (fewest.exact && fewest_other.exact) {
          ASSERT_EQ(fewest.tokens, fewest_other.tokens) << schema;
        }
      }
      std::vector<int32_t> open;
      for (int32_t token = 0; token < tokens->size(); ++token) {
        if (test::has(mask, token)) open.push_back(token);
      }
      if (open.empty()) break;
      int32_t token = open[random() % open.size()];
      // Ends are what most texts come to soon.
      for (int more = 0; more < 3 && tokens->bytes(token).find('"') != std::string::npos; ++more) {
        token = open[random() % open.size()];
      }
      if (step % 7 == 3) {  // refused by both, and nothing has changed
        const auto any = static_cast<int32_t>(random() % static_cast<uint32_t>(tokens->size()));
        const bool taken = one.accept_token(any).value();
        ASSERT_EQ(taken, other.accept_token(any).value()) << schema << any;
        if (taken) {
          ASSERT_TRUE(one.rollback(1).ok() && other.rollback(1).ok());
        }
      }
      ASSERT_TRUE(one.accept_token(token).value());
      ASSERT_TRUE(other.accept_token(token).value());
      if (tokens->is_end(token)) break;
      if (random() % 16 == 0) {
        const size_t back = random() % (one.accepted() + 1);
        ASSERT_TRUE(one.rollback(back).ok() && other.rollback(back).ok());
      }
    }
  }
}

TEST(SchemaLengths, CountedCharactersAreAsAStateForEachCount) {
  const auto tokens = vocabulary();
  // Of short tokens most places are far from the limit.
  std::vector<std::string> short_ones = test::all_bytes();
  short_ones.insert(short_ones.end(), {"ab", "a/", "\\u", "\"]", "1.", "bb"});
  const auto few = test::vocabulary(short_ones);
  std::mt19937 random(11);
  gen::test::Thinned thinned(3);
  for (const char* limits : {R"("maxLength": 9)", R"("maxLength": 14, "minLength": 6)",
                             R"("maxLength": 40, "minLength": 1)", R"("maxLength": 60)"}) {
    for (
        const char* what :
        {R"("pattern": "^(z|a\\u0001|bcc|c123|d1234|e12345)x*$")",
         R"("pattern": "é{1,}\\.+|(a\\t{0,}|\\u0001|\\w*[a-c/]([ab]*1+|\"{2,}q*|[ab]+)?)€{0,1}é*")",
         R"("format": "uri")", R"("pattern": "^a[ab/]*b$")", R"("pattern": "^(ab?){3,}1*$")",
         R"("pattern": "^[aé𝄞\\n]+(/|11)[^b]*$")", R"("pattern": "^(aaaa|b1)*$")",
         R"("format": "email")", R"("pattern": "^\\n|b(a|/)c")",
         R"("pattern": "^(?!.*ab).*[/:].*$")"}) {
      if (thinned.skips()) continue;
      const std::string text = std::string(R"({"type": "string", )") + what + ", " + limits + "}";
      for (const bool plain : {false, true}) {
        compare(text, plain, tokens, random);
        compare(text, plain, few, random);
      }
      if (HasFatalFailure()) return;
    }
  }
}

// Several limits of one text at once, and limits within arrays and members.
TEST(SchemaLengths, LimitsSideBySideAndWithinOthers) {
  const auto tokens = vocabulary();
  std::mt19937 random(12);
  const std::string a = R"({"type": "string", "pattern": "^a[ab/]*b?$", "maxLength": 7})";
  const std::string b = R"({"type": "string", "pattern": "^[ab]*[b1]*$", "maxLength": 12})";
  const std::string c = R"({"type": "string", "pattern": "^a[ab/]*b?$", "maxLength": 30})";
  for (
      const std::string& schema :
      {R"({"anyOf": [)" + a + "," + b + "," + c + "]}",
       R"({"type": "array", "items": )" + a + R"(, "maxItems": 3})",
       R"({"type": "array", "prefixItems": [)" + a + "," + c + R"(], "items": )" + b + "}",
       R"({"type": "array", "uniqueItems": true, "items": )" + a + "}",
       R"({"type": "object", "properties": {"a": )" + a + R"(, "b": )" + c +
           R"(}, "additionalProperties": )" + b + "}",
       R"({"type": "object", "properties": {"a": {"anyOf": [)" + a + "," + c +
           R"(, {"const": "ab/ab/ab/ab"}]}}, "required": ["a"], "additionalProperties": false})"}) {
    compare(schema, false, tokens, random);
    if (HasFatalFailure()) return;
  }
}

// What takes too many states otherwise: as pydantic's HttpUrl asks for it.
TEST(SchemaLengths, LongFormatsAreMade) {
  for (const char* schema :
       {R"({"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083})",
        R"({"type": "string", "format": "iri", "maxLength": 65536})",
        R"({"type": "string", "format": "email", "maxLength": 1000000})"}) {
    const auto grammar = make(schema, SchemaOptions().counted_states);
    ASSERT_NE(grammar, nullptr);
    EXPECT_TRUE(counts(*grammar)) << schema;
  }
}

// To the last character, no further: 2,083 of them, the first of two bytes in JSON.
TEST(SchemaLengths, ALongTextEndsAtItsLimit) {
  const auto grammar =
      make(R"({"type": "string", "pattern": "^\\n[a-c]+$", "maxLength": 2083})", 1024);
  ASSERT_TRUE(counts(*grammar));
  const auto tokens = vocabulary();
  Matcher matcher = Matcher::create(grammar->over(tokens).value()).value();
  ASSERT_TRUE(matcher.accept_bytes("\"\\n").value());
  for (int i = 0; i < 2081; ++i)
    ASSERT_TRUE(matcher.accept_bytes(i % 2 == 0 ? "b" : "\\u0061").value());
  EXPECT_EQ(matcher.min_bytes(), 1U);
  EXPECT_TRUE(matcher.fork().accept_bytes("\"").value());
  EXPECT_FALSE(matcher.fork().accept_bytes("aa").value());
  EXPECT_FALSE(matcher.fork().accept_bytes("a\\").value());
  std::vector<uint64_t> mask = mask_of(matcher);
  for (int32_t token = 0; token < tokens->size(); ++token) {
    Matcher other = matcher.fork();
    ASSERT_EQ(test::has(mask, token), other.accept_token(token).value()) << tokens->bytes(token);
  }
  ASSERT_TRUE(matcher.accept_bytes("c").value());
  EXPECT_EQ(matcher.forced_bytes(8).value(), "\"");
  ASSERT_TRUE(matcher.accept_bytes("\"").value());
  EXPECT_TRUE(matcher.is_complete());
}

}  // namespace
}  // namespace gen::grammar

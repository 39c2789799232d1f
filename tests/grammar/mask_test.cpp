// SPDX-License-Identifier: Apache-2.0
// Masks are exact: for random grammars, texts and vocabularies they are what a slow recogniser says
// of every token, what accept_token does, and the same by whatever way a matcher came to its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/matcher/matcher.h"
#include "grammar/slow_grammar.h"
#include "grammar/vocabularies.h"
#include "support/sanitized.h"

namespace gen::grammar {
namespace {

using test::SlowGrammar;
using test::Symbols;

constexpr int kNamed = 2;

std::vector<std::string> random_texts(std::mt19937& random) {
  static const char* const kPieces[] = {"a", "!", ",", "\xC3\xA9", "\xC3", "\xA9", "!!", "d"};
  std::vector<std::string> texts = {"a", "!", ",", "\xC3", "\xA9"};
  for (size_t i = 4 + random() % 20; i > 0; --i) {
    std::string text;
    for (size_t k = 1 + random() % 4; k > 0; --k) text += kPieces[random() % 8];
    texts.push_back(text);
  }
  texts.emplace_back();  // neither bytes nor a name
  return texts;
}

std::vector<uint64_t> mask_of(const Matcher& matcher) {
  std::vector<uint64_t> mask(matcher.grammar().vocabulary().words(), ~uint64_t{0});
  const Status status = matcher.mask(mask);
  EXPECT_TRUE(status.ok()) << status.message();
  return mask;
}

// One grammar, one vocabulary, one walk.
class Walk {
 public:
  Walk(const SlowGrammar& slow, const Grammar& grammar, std::mt19937& random,
       std::shared_ptr<const Vocabulary> vocabulary)
      : slow_(slow),
        random_(random),
        vocabulary_(std::move(vocabulary)),
        matcher_(Matcher::create(grammar.over(vocabulary_).value()).value()) {}

  /// False if the grammar turned out to be too ambiguous for the limits.
  bool run(int steps) {
    for (int step = 0; step < steps; ++step) {
      if (!within_limits()) return false;
      check();
      if (testing::Test::HasFailure() || !go_on()) break;
    }
    if (!testing::Test::HasFailure() && within_limits()) check_ways_back();
    return true;
  }

 private:
  Symbols with(int32_t token) const {
    Symbols text = text_;
    const std::string_view bytes = vocabulary_->bytes(token);
    for (const char c : bytes) text.push_back(static_cast<unsigned char>(c));
    if (bytes.empty()) text.push_back(test::kTokenSymbol + token);
    return text;
  }

  bool within_limits() {
    std::vector<uint64_t> mask(vocabulary_->words());
    const Status status = matcher_.mask(mask);
    EXPECT_TRUE(status.ok() || status.code() == Code::kGrammar);
    return status.ok();
  }

  void check() {
    const std::vector<uint64_t> mask = mask_of(matcher_);
    const int32_t end = vocabulary_->ends()[0];
    const bool member = slow_.ask(text_).member;
    EXPECT_EQ(test::has(mask, end), member);
    EXPECT_EQ(matcher_.is_complete(), member);
    for (int32_t token = 0; token < vocabulary_->size(); ++token) {
      Matcher other = matcher_.fork();
      const auto taken = other.accept_token(token);
      if (!taken.ok()) {
        EXPECT_EQ(taken.status().code(), Code::kGrammar);
        continue;
      }
      EXPECT_EQ(taken.value(), test::has(mask, token)) << "token " << token;
      if (token == end) continue;
      ASSERT_EQ(test::has(mask, token), slow_.ask(with(token)).prefix)
          << "token " << token << " '" << vocabulary_->bytes(token) << "' behind " << text_.size();
    }
    const ByteSet valid = matcher_.valid_bytes();
    for (const char c : std::string("a!,d\xC3\xA9")) {
      const auto byte = static_cast<uint8_t>(c);
      Symbols text = text_;
      text.push_back(byte);
      EXPECT_EQ(valid.has(byte), slow_.ask(text).prefix);
    }
    for (size_t word = 0; word < mask.size(); ++word) {
      const size_t bits = static_cast<size_t>(vocabulary_->size()) - word * 64;
      if (bits < 64) {
        EXPECT_EQ(mask[word] >> bits, 0U);
      }
    }
    masks_.push_back(mask);
  }

  bool go_on() {
    std::vector<int32_t> open;
    for (int32_t token = 0; token < vocabulary_->ends()[0]; ++token) {
      if (test::has(masks_.back(), token)) open.push_back(token);
    }
    if (open.empty()) return false;
    const int32_t token = open[random_() % open.size()];
    Symbols next = with(token);
    if (next.size() > 120) return false;
    const auto taken = matcher_.accept_token(token);
    if (!taken.ok()) {  // a mask may be known where a text takes more than the limits
      EXPECT_EQ(taken.status().code(), Code::kGrammar);
      return false;
    }
    EXPECT_TRUE(taken.value());
    text_ = std::move(next);
    tokens_.push_back(token);
    return true;
  }

  void check_ways_back() {
    const size_t here = matcher_.accepted();
    ASSERT_EQ(here, tokens_.size());
    EXPECT_FALSE(matcher_.rollback(here + 1).ok());
    const size_t back = random_() % (here + 1);
    Matcher other = matcher_.fork();
    ASSERT_TRUE(matcher_.rollback(back).ok());
    EXPECT_EQ(mask_of(matcher_), masks_at(here - back));
    for (size_t i = here - back; i < here; ++i) {
      EXPECT_TRUE(matcher_.accept_token(tokens_[i]).value());
    }
    EXPECT_EQ(mask_of(matcher_), mask_of(other));
    other.reset();
    EXPECT_EQ(mask_of(other), masks_at(0));
  }

  const std::vector<uint64_t>& masks_at(size_t place) {
    if (place == masks_.size()) masks_.push_back(mask_of(matcher_));
    return masks_[place];
  }

  const SlowGrammar& slow_;
  std::mt19937& random_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Matcher matcher_;
  Symbols text_;
  std::vector<int32_t> tokens_;
  std::vector<std::vector<uint64_t>> masks_;
};

void random_walks(uint32_t seed, int rounds, int steps) {
  std::mt19937 random(seed);
  std::vector<std::string> texts;
  std::shared_ptr<const Vocabulary> vocabulary;
  int walked = 0;
  int refused = 0;
  GrammarLimits limits;
  limits.masks.items = 512;
  limits.masks.work = 20'000;
  for (int round = 0; round < rounds; ++round) {
    limits.masks.sets = round % 3 == 0 ? 12 : 4096;  // with few, masks are made step by step
    if (round % 10 == 0) {                           // what one grammar found out serves the next
      texts = random_texts(random);
      vocabulary = test::vocabulary(texts, kNamed);
    }
    const SlowGrammar slow =
        test::RandomGrammar(random, static_cast<int>(texts.size()), kNamed).make();
    const std::string source = slow.gbnf();
    SCOPED_TRACE(source);
    const auto grammar = Grammar::from_gbnf(source, limits);
    ASSERT_EQ(grammar.ok(), slow.ask({}).prefix) << grammar.status().message();
    if (!grammar.ok()) continue;
    Walk walk(slow, *grammar.value(), random, vocabulary);
    if (!walk.run(steps)) ++refused;
    ++walked;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(walked, rounds / 4);
  EXPECT_LE(refused, 2 + walked / 20);
}

// Stretches of the trie that lead back to the same place are taken at once; not where something
// else reads them too. Against single steps, which know nothing of the trie.
TEST(Mask, StretchesThatAreAlikeAreTakenAtOnce) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < 341; ++i) {
    for (const char c : {'!', ',', 'a', ' '}) texts.push_back(texts[i] + c);
  }
  texts.erase(texts.begin());
  const auto vocabulary = test::vocabulary(texts);
  for (const char* source :
       {"root ::= \"!\"* y \"a\"\ny ::= \"!\" y \",\" | \"!\" \",\"",
        "root ::= [! ]* y? \"a\"\ny ::= \" \" y \",\" | \"!,\"",
        "root ::= \"a\" x root? | \"a\"\nx ::= [! ]* | [!]* \",\" x",
        "root ::= ([^,]* \",\" root \",\")? [!]*", "root ::= [! ,]* (\"a\" root | \"\")",
        "root ::= (\"a\" [! ]*){3,40} \",\" [!]*"}) {
    SCOPED_TRACE(source);
    const auto grammar = Grammar::from_gbnf(source);
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    for (const char* before : {"", "!", "a", "a!", "! ", "a! a", "!!,", "a,!", "a!a!a"}) {
      matcher.reset();
      if (!matcher.accept_bytes(before).value()) continue;
      const std::vector<uint64_t> mask = mask_of(matcher);
      for (int32_t token = 0; token < vocabulary->size(); ++token) {
        Matcher other = matcher.fork();
        EXPECT_EQ(other.accept_token(token).value(), test::has(mask, token))
            << before << " + " << vocabulary->bytes(token);
      }
    }
  }
}

// Near both ends of a count, for tokens of several rounds: by arithmetic.
TEST(Mask, CountsAreExactAtTheirEnds) {
  const std::vector<std::string> texts = {"a",  "b",   "ab",   "bca", "d",
                                          "ad", "abd", "caad", "dd",  "da"};
  for (const auto& [least, most] : {std::pair(17, 19), std::pair(18, 18), std::pair(0, 20)}) {
    const auto grammar = Grammar::from_gbnf("root ::= [abc]{" + std::to_string(least) + "," +
                                            std::to_string(most) + "} \"d\"");
    const auto vocabulary = test::vocabulary(texts);
    Matcher matcher = Matcher::create(grammar.value()->over(vocabulary).value()).value();
    for (int count = 0; count <= most; ++count) {
      const std::vector<uint64_t> mask = mask_of(matcher);
      for (size_t token = 0; token < texts.size(); ++token) {
        const auto end = texts[token].find('d');
        const bool ends = end != std::string::npos;
        const int behind = count + static_cast<int>(ends ? end : texts[token].size());
        const bool allowed =
            behind <= most && (!ends || (behind >= least && end + 1 == texts[token].size()));
        EXPECT_EQ(test::has(mask, static_cast<int32_t>(token)), allowed)
            << texts[token] << " behind " << count << " of " << most;
      }
      EXPECT_EQ(matcher.accept_bytes("a").value(), count < most);
    }
  }
}

TEST(Mask, IsWhatASlowRecogniserSays) { random_walks(1, gen::test::kSanitized ? 25 : 1000, 8); }
TEST(Mask, IsSoFarInToo) { random_walks(2, gen::test::kSanitized ? 2 : 40, 40); }

}  // namespace
}  // namespace gen::grammar

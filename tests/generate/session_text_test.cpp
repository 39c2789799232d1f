// SPDX-License-Identifier: Apache-2.0
// Text added to a session piece by piece is the text of the pieces: with a vocabulary that puts a
// space before a text, it does so only where a text starts.
#include <gtest/gtest.h>

#include <random>

#include "generate/fake_world.h"
#include "tokenizer/vocabularies.h"

namespace gen::generate {
namespace {

namespace tok = gen::tokenizer;

// Ids of "_The", "_gold", "en", "_en" and "_cat".
constexpr int32_t kThe = 263;
constexpr int32_t kGold = 267;
constexpr int32_t kEn = 268;
constexpr int32_t kSpaceEn = 269;
constexpr int32_t kCat = 272;

class SessionTextTest : public testing::Test {
 protected:
  SessionTextTest() {
    tok::VocabSpec spec = tok::test::sp_vocab({"_", "a", "Th", "The", "_The", "go", "gol", "gold",
                                               "_gold", "en", "_en", "_c", "at", "_cat", "__"});
    spec.add_bos = true;
    turn_ = tok::test::add_token(&spec, "<turn>", tok::TokenType::kControl);
    tokenizer_ = tok::test::must_create(spec);
    auto model = std::make_shared<FakeModel>(tokenizer_->vocab_size(), 512);
    GeneratorOptions options;
    options.cache_factory = [](std::span<const cache::LayerShape>,
                               int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
      return std::unique_ptr<cache::KvCache>(std::make_unique<FakeCache>(capacity));
    };
    generator_ = std::move(Generator::create(model, tokenizer_, options)).value();
  }
  std::shared_ptr<Session> session() { return std::move(generator_->new_session()).value(); }
  std::string text_of(Session& session) {
    return tok::test::decode(*tokenizer_, std::move(session.tokens()).value());
  }

  int32_t turn_ = 0;
  std::shared_ptr<const tok::Tokenizer> tokenizer_;
  std::shared_ptr<const Generator> generator_;
};

TEST_F(SessionTextTest, AppendedTextGoesOn) {
  const auto session = this->session();
  ASSERT_TRUE(session->append(text("The gold")).ok());
  ASSERT_TRUE(session->append(text("en cat")).ok());
  EXPECT_EQ(text_of(*session), "The golden cat");
  EXPECT_EQ(held(*session), (Tokens{1, kThe, kGold, kEn, kCat}));
  ASSERT_TRUE(session->append(text(" cat")).ok());
  EXPECT_EQ(text_of(*session), "The golden cat cat");
}

TEST_F(SessionTextTest, APromptGoesOn) {
  const auto session = this->session();
  ASSERT_TRUE(session->append(text("The gold")).ok());
  const size_t before = held(*session).size();
  const auto outcome = generate(*session, text("en"), greedy(1));
  ASSERT_TRUE(outcome.status.ok());
  EXPECT_EQ(held(*session)[before], kEn);
  EXPECT_EQ(outcome.result->usage.prompt, static_cast<int32_t>(before) + 1);  // with what was appended
}

TEST_F(SessionTextTest, ScoredTextGoesOn) {
  const auto session = this->session();
  std::vector<float> scores;
  Tokens scored;
  ASSERT_TRUE(session->score(text("en cat"), &scores, &scored).ok());
  EXPECT_EQ(scored, (Tokens{kSpaceEn, kCat}));
  ASSERT_TRUE(session->append(text("The gold")).ok());
  ASSERT_TRUE(session->score(text("en cat"), &scores, &scored).ok());
  EXPECT_EQ(scored, (Tokens{kEn, kCat}));
}

// After control tokens, as after BOS, a text starts as it does within one text.
TEST_F(SessionTextTest, ControlTokensStartATextAnew) {
  for (const Tokens& before : {Tokens{1}, Tokens{turn_}, Tokens{1, turn_}}) {
    const auto session = this->session();
    ASSERT_TRUE(session->append(ids(before)).ok());
    ASSERT_TRUE(session->append(text("The")).ok());
    EXPECT_EQ(held(*session).back(), kThe);
    EXPECT_EQ(text_of(*session), "The");
  }
  const auto whole = session();
  const auto parts = session();
  ASSERT_TRUE(whole->append({.text = "The<turn>The", .tokens = {}, .parse_special = true}).ok());
  for (const char* part : {"The", "<turn>", "The"}) {
    ASSERT_TRUE(parts->append({.text = part, .tokens = {}, .parse_special = true}).ok());
  }
  EXPECT_EQ(held(*whole), held(*parts));
}

TEST_F(SessionTextTest, AnyText) {
  std::mt19937 random(79);
  for (int round = 0; round < 100; ++round) {
    const auto session = this->session();
    std::string all;
    for (int part = 0; part < 5; ++part) {
      const std::string more = tok::test::random_text(&random, random() % 8);
      ASSERT_TRUE(session->append(text(more)).ok());
      all += more;
    }
    ASSERT_EQ(text_of(*session), all);
  }
}

}  // namespace
}  // namespace gen::generate

// SPDX-License-Identifier: Apache-2.0
// Proves everything a session does beside generating, and the options of the generator behind it.
#include "generate/loop/generation.h"
#include "generate/loop/generator.h"
#include "generate/loop/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <tuple>

#include "generate/forward.h"
#include "support/fake_model.h"

namespace gen::generate {
namespace {

using test::FakeCache;
using test::FakeModel;
using test::FakeTokenizer;
using Tokens = std::vector<int32_t>;

const std::vector<std::string> kPieces{"a", "b", "c", "d", "e", "f", "g", "h"};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    tokenizer_ = std::make_shared<FakeTokenizer>(kPieces);
    model_ = std::make_shared<FakeModel>(tokenizer_->vocab_size(), 32);
    options_.prefill_chunk = 4;
    options_.cache_factory = [this](std::span<const cache::LayerShape>,
                                    int32_t capacity) -> Result<std::unique_ptr<cache::KvCache>> {
      ++caches_made_;
      auto made = std::make_unique<FakeCache>(capacity, cache_can_truncate_);
      cache_ = made.get();
      return std::unique_ptr<cache::KvCache>(std::move(made));
    };
  }
  std::shared_ptr<Session> session() {
    if (generator_ == nullptr) {
      generator_ = std::move(Generator::create(model_, tokenizer_, options_)).value();
    }
    return std::move(generator_->new_session()).value();
  }
  static Prompt text(std::string_view words) { return {.text = words, .tokens = {}}; }
  static Tokens held(Session& session) { return std::move(session.tokens()).value(); }
  static Tokens go_on(Session& session, int32_t n) {
    CallParams params;
    params.sampling.temperature = 0.0;
    params.stops.max_new_tokens = n;
    params.stops.ignore_eos = true;
    std::optional<GenResult> result;
    EXPECT_TRUE(session.generate(text(""), params, nullptr, nullptr, &result).ok());
    return result->tokens;
  }
  // What a session that was given these tokens at once says.
  Tokens expected(const Tokens& tokens, int32_t n) {
    FakeCache* const kept = cache_;
    const auto fresh = session();
    EXPECT_TRUE(fresh->append({.text = {}, .tokens = tokens}).ok());
    Tokens said = go_on(*fresh, n);
    cache_ = kept;
    return said;
  }

  std::shared_ptr<FakeTokenizer> tokenizer_;
  std::shared_ptr<FakeModel> model_;
  GeneratorOptions options_;
  std::shared_ptr<const Generator> generator_;
  FakeCache* cache_ = nullptr;
  bool cache_can_truncate_ = true;
  int caches_made_ = 0;
};

TEST_F(SessionTest, AppendEvaluatesAllButTheLast) {
  const auto one = session();
  ASSERT_TRUE(one->append(text("abcdef")).ok());
  EXPECT_EQ(held(*one), (Tokens{0, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(cache_->length(), 6);
  EXPECT_EQ(one->progress(), 1.0F);
  ASSERT_TRUE(one->append(text("gh")).ok());
  EXPECT_EQ(one->length(), 9);
  EXPECT_EQ(cache_->length(), 8);
  ASSERT_TRUE(one->append(text("")).ok());
  EXPECT_EQ(one->length(), 9);
  EXPECT_EQ(go_on(*one, 5), expected({0, 2, 3, 4, 5, 6, 7, 8, 9}, 5));
}

TEST_F(SessionTest, AppendRefusesWhatDoesNotFit) {
  const auto one = session();
  const Tokens many(30, 2);
  ASSERT_TRUE(one->append({.text = {}, .tokens = many}).ok());
  const Tokens three(3, 2);
  const Status status = one->append({.text = {}, .tokens = three});
  EXPECT_EQ(status.code(), Code::kContextFull);
  EXPECT_STREQ(status.message(),
               "the prompt has 3 tokens, the session holds 30, the context only 32");
  const Tokens bad{-1};
  EXPECT_EQ(one->append({.text = {}, .tokens = bad}).code(), Code::kOutOfRange);
  EXPECT_EQ(one->length(), 30);
}

TEST_F(SessionTest, AppendFailsCleanlyAtEveryChunk) {
  for (int chunk = 0; chunk < 3; ++chunk) {
    for (const bool by_cancel : {false, true}) {
      const auto one = session();
      ASSERT_TRUE(one->append(text("ab")).ok());
      const Tokens before = held(*one);
      int countdown = chunk;
      model_->before_forward = [&](const graph::Batch&) {
        if (countdown-- != 0) return Status();
        if (!by_cancel) return error(Code::kDevice, "gone");
        one->cancel();
        return Status();
      };
      const Tokens more{4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7};  // 12 of 13 pending: three chunks
      const Status status = one->append({.text = {}, .tokens = more});
      model_->before_forward = nullptr;
      if (by_cancel) {
        EXPECT_EQ(status.code(), Code::kCancelled);
        EXPECT_EQ(one->length(), std::max(3, 2 + 4 * chunk));
      } else {
        EXPECT_EQ(status.code(), Code::kDevice);
        EXPECT_EQ(held(*one), before);
      }
      const Tokens now = held(*one);
      EXPECT_EQ(go_on(*one, 5), expected(now, 5));  // and the cancel is consumed
    }
  }
}

TEST_F(SessionTest, TruncateToEveryLength) {
  for (const bool can_truncate : {true, false}) {
    cache_can_truncate_ = can_truncate;
    for (int32_t n = 0; n <= 12; ++n) {
      const auto one = session();
      ASSERT_TRUE(one->append(text("abcd")).ok());
      (void)go_on(*one, 6);
      const Tokens all = held(*one);
      ASSERT_EQ(all.size(), 11U);
      ASSERT_TRUE(one->truncate(n).ok());
      const auto left = static_cast<size_t>(std::min(n, 11));
      EXPECT_EQ(held(*one), Tokens(all.begin(), all.begin() + static_cast<int>(left)));
      EXPECT_EQ(one->length(), static_cast<int32_t>(left));
      if (n == 0) continue;
      EXPECT_EQ(go_on(*one, 4), expected({all.begin(), all.begin() + static_cast<int>(left)}, 4));
    }
  }
  const auto one = session();
  EXPECT_EQ(one->truncate(-1).code(), Code::kInvalidArgument);
}

TEST_F(SessionTest, ModelsThatCannotGoBackSaySo) {
  model_->mutable_traits().can_truncate = false;
  model_->stateful = true;
  const auto one = session();
  ASSERT_TRUE(one->append(text("abcd")).ok());
  EXPECT_EQ(one->truncate(2).code(), Code::kUnsupported);
  EXPECT_EQ(one->length(), 5);
  EXPECT_TRUE(one->truncate(9).ok());
  EXPECT_TRUE(one->truncate(0).ok());
  EXPECT_EQ(one->length(), 0);
  ASSERT_TRUE(one->append(text("b")).ok());
  EXPECT_EQ(go_on(*one, 4), expected({0, 3}, 4));
}

TEST_F(SessionTest, ResetIsANewSession) {
  const auto one = session();
  ASSERT_TRUE(one->append(text("abcd")).ok());
  one->cancel();
  ASSERT_TRUE(one->reset().ok());
  EXPECT_EQ(one->length(), 0);
  EXPECT_EQ(one->progress(), 1.0F);
  EXPECT_EQ(cache_->length(), 0);
  ASSERT_TRUE(one->append(text("bc")).ok());  // BOS again, and no cancel left
  EXPECT_EQ(held(*one), (Tokens{0, 3, 4}));
  EXPECT_EQ(go_on(*one, 4), expected({0, 3, 4}, 4));
}

// log p(token | all before it), from the fake model's logits by hand.
float expected_score(const FakeModel& model, const Tokens& all, size_t at) {
  std::vector<float> logits(static_cast<size_t>(model.traits().vocab_size));
  model.write_logits(std::span(all).first(at), logits.data());
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(all[at])]) -
                            std::log(total));
}

TEST_F(SessionTest, ScoreGivesEachTokensLogprobAndChangesNothing) {
  const auto one = session();
  std::vector<float> scores;
  Tokens scored;
  ASSERT_TRUE(one->score(text("abcdefgh"), &scores, &scored).ok());
  EXPECT_EQ(scored, (Tokens{2, 3, 4, 5, 6, 7, 8, 9}));
  ASSERT_EQ(scores.size(), 8U);
  const Tokens with_bos{0, 2, 3, 4, 5, 6, 7, 8, 9};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(scores[i], expected_score(*model_, with_bos, i + 1), 1e-5);
  }
  EXPECT_EQ(one->length(), 0);

  ASSERT_TRUE(one->append(text("ab")).ok());
  (void)go_on(*one, 2);
  const Tokens before = held(*one);
  ASSERT_TRUE(one->score(text("cab"), &scores, nullptr).ok());
  Tokens all = before;
  all.insert(all.end(), {4, 2, 3});
  ASSERT_EQ(scores.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(scores[i], expected_score(*model_, all, before.size() + i), 1e-5);
  }
  EXPECT_EQ(held(*one), before);
  EXPECT_EQ(go_on(*one, 4), expected(before, 4));
}

TEST_F(SessionTest, ScoreWithoutAnythingBefore) {
  const auto one = session();
  std::vector<float> scores;
  const Tokens tokens{5, 6};
  ASSERT_TRUE(one->score({.text = {}, .tokens = tokens}, &scores, nullptr).ok());
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0], 0.0F);
  EXPECT_NEAR(scores[1], expected_score(*model_, tokens, 1), 1e-5);
  ASSERT_TRUE(one->score(text(""), &scores, nullptr).ok());
  EXPECT_TRUE(scores.empty());
}

TEST_F(SessionTest, FailedScoresChangeNothing) {
  const auto one = session();
  ASSERT_TRUE(one->append(text("abc")).ok());
  const Tokens before = held(*one);
  std::vector<float> scores{1.0F};
  model_->spoil_logits = [](std::span<const int32_t> history, float* logits) {
    if (history.size() == 6) logits[2] = std::nanf("");
  };
  const Status status = one->score(text("abcdef"), &scores, nullptr);
  EXPECT_STREQ(status.message(), "row 5, token 2: logit is nan");
  model_->spoil_logits = nullptr;
  model_->before_forward = [&](const graph::Batch&) {
    one->cancel();
    return Status();
  };
  EXPECT_EQ(one->score(text("abcdef"), &scores, nullptr).code(), Code::kCancelled);
  model_->before_forward = nullptr;
  EXPECT_EQ(scores, (std::vector<float>{1.0F}));
  EXPECT_EQ(held(*one), before);
  EXPECT_EQ(go_on(*one, 4), expected(before, 4));
}

// It is the next generating call's, whatever comes before that.
TEST_F(SessionTest, ACancelBetweenTwoCallsStopsNothingButAGeneratingOne) {
  for (const bool cancel_again : {false, true}) {
    const auto one = session();
    std::vector<float> scores;
    one->cancel();
    EXPECT_TRUE(one->append(text("abcd")).ok());
    EXPECT_TRUE(one->score(text("abcdef"), &scores, nullptr).ok());
    if (cancel_again) {  // while an append runs: that one's
      model_->before_forward = [&](const graph::Batch&) {
        one->cancel();
        return Status();
      };
      EXPECT_EQ(one->append(text("ab")).code(), Code::kCancelled);
      model_->before_forward = [&](const graph::Batch&) { return error(Code::kDevice, "gone"); };
      EXPECT_EQ(one->append(text("ab")).code(), Code::kDevice);
      model_->before_forward = nullptr;
    }
    std::optional<GenResult> result;
    EXPECT_EQ(one->generate({}, CallParams(), nullptr, nullptr, &result).code(), Code::kCancelled);
    EXPECT_TRUE(result->tokens.empty());
    const Tokens now = held(*one);
    EXPECT_EQ(go_on(*one, 4), expected(now, 4));  // once
  }
}

TEST_F(SessionTest, RowsBeyondTheTokenizerAreNeverSampled) {
  model_ = std::make_shared<FakeModel>(tokenizer_->vocab_size() + 3, 32);
  model_->next = [this](std::span<const int32_t>) { return tokenizer_->vocab_size() + 1; };
  const auto one = session();
  ASSERT_TRUE(one->append(text("abc")).ok());
  for (const int32_t token : go_on(*one, 8)) EXPECT_LT(token, tokenizer_->vocab_size());
  const Tokens pad{tokenizer_->vocab_size()};
  EXPECT_EQ(one->append({.text = {}, .tokens = pad}).code(), Code::kOutOfRange);
}

TEST_F(SessionTest, CancelFromAnotherThread) {
  const auto one = session();
  std::atomic<int> rows{0};
  std::atomic<bool> looked{false};
  model_->before_forward = [&](const graph::Batch& batch) {
    rows = static_cast<int>(batch.rows());
    while (!looked) std::this_thread::yield();
    return Status();
  };
  // While the model runs the first of two chunks.
  std::thread canceller([&] {
    while (rows == 0) std::this_thread::yield();
    EXPECT_EQ(one->progress(), 0.0F);
    one->cancel();
    looked = true;
  });
  EXPECT_EQ(one->append(text("abcdef")).code(), Code::kCancelled);
  canceller.join();
  EXPECT_LT(rows, 6);
  EXPECT_EQ(one->length(), 0);  // nothing of it has run
  EXPECT_EQ(one->progress(), 1.0F);
  model_->before_forward = nullptr;
  ASSERT_TRUE(one->append(text("ab")).ok());  // it has consumed the cancel
  EXPECT_EQ(go_on(*one, 4), expected({0, 2, 3}, 4));
}

/// A model that could take more at once has no room for it where its layers are split.
TEST_F(SessionTest, ForwardTakesTheRowsThatThereIsRoomFor) {
  FakeModel model(tokenizer_->vocab_size(), 1000);
  int64_t most = 0;
  model.before_forward = [&most](const graph::Batch& batch) -> Status {
    most = std::max(most, batch.rows());
    return {};
  };
  const Tokens tokens(700, 1);
  for (const auto& [accepted, wished, rows] :
       {std::tuple(2048, 0, kDefaultPrefillChunk), std::tuple(2048, 512, 512),
        std::tuple(100, 512, 100)}) {
    model.mutable_traits().max_batch_rows = accepted;
    model.mutable_traits().prompt_rows = wished;
    most = 0;
    TrialSequence sequence = {cache::CacheTrial(std::make_unique<FakeCache>(1000, true))};
    EXPECT_TRUE(forward_one(model, tokens, sequence).ok());
    EXPECT_EQ(most, rows);
  }
}

TEST_F(SessionTest, AModelWithoutLogitsGeneratesNothing) {
  const auto hidden = std::make_shared<FakeModel>(50);
  hidden->mutable_traits().result = 64;
  const auto made = Generator::create(hidden, tokenizer_, {.kv_dtype = "fp32"});
  EXPECT_EQ(made.status().code(), Code::kUnsupported);
  EXPECT_STREQ(made.status().message(), "a model whose rows answer with 64 numbers and no logits");
}

TEST_F(SessionTest, GeneratorOptionsAreChecked) {
  const auto refused = [&](GeneratorOptions options) {
    const auto made = Generator::create(model_, tokenizer_, std::move(options));
    EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
    return std::string(made.status().message());
  };
  EXPECT_EQ(refused({.kv_dtype = "fp7"}),
            "unknown cache kind \"fp7\", known are fp32, fp16, fp8, q4, q3");
  EXPECT_EQ(refused({.kv_dtype = "fp32", .max_seq_len = 33}),
            "max_seq_len 33 outside [0, 32], the model's context");
  EXPECT_EQ(refused({.kv_dtype = "fp32", .max_seq_len = -1}),
            "max_seq_len -1 outside [0, 32], the model's context");
  EXPECT_EQ(refused({.kv_dtype = "fp32", .prefill_chunk = -1}), "prefill_chunk -1 is negative");
  const auto made = std::move(Generator::create(model_, tokenizer_, {.kv_dtype = "fp16"})).value();
  EXPECT_EQ(made->max_seq_len(), 32);
  EXPECT_EQ(made->prefill_chunk(), kDefaultPrefillChunk);
  model_->mutable_traits().prompt_rows = 300;
  for (const auto& [chosen, rows] : {std::pair(0, 300), std::pair(20, 20), std::pair(600, 512)}) {
    const auto of = Generator::create(model_, tokenizer_, {.prefill_chunk = chosen});
    EXPECT_EQ(of.value()->prefill_chunk(), rows);
  }
  model_->mutable_traits().max_batch_rows = 7;
  const auto small = std::move(Generator::create(model_, tokenizer_, {.kv_dtype = "fp16"})).value();
  EXPECT_EQ(small->prefill_chunk(), 7);
}

TEST_F(SessionTest, AGeneratorLivesAsLongAsItsSessions) {
  const auto one = session();
  const std::weak_ptr<const model::Model> model = model_;
  generator_.reset();
  model_.reset();
  ASSERT_TRUE(one->append(text("a")).ok());
  EXPECT_EQ(go_on(*one, 3).size(), 3U);
  EXPECT_FALSE(model.expired());
}

TEST_F(SessionTest, OneShot) {
  (void)session();
  std::optional<GenResult> result;
  CallParams params;
  params.sampling.temperature = 0.0;
  params.stops.max_new_tokens = 5;
  params.stops.ignore_eos = true;
  ASSERT_TRUE(generator_->generate(text("abc"), params, nullptr, nullptr, &result).ok());
  EXPECT_EQ(result->tokens, expected({0, 2, 3, 4}, 5));
  EXPECT_EQ(generator_->generate(text(""), params, nullptr, nullptr, &result).code(),
            Code::kInvalidArgument);
  EXPECT_FALSE(result.has_value());
}

}  // namespace
}  // namespace gen::generate

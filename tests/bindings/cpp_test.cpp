// SPDX-License-Identifier: Apache-2.0
// Proves generate.hpp, as C++17: failures are exceptions with what there was by then, callbacks may
// throw, handles move and free themselves. That results are those of C is bindings_table's
// business.
#include <gtest/gtest.h>

#include <generate/generate.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string model_path() { return GEN_SOURCE_DIR "/examples/demo_model/story.gguf"; }

struct CppHeader : testing::Test {
  static void SetUpTestSuite() { model = new gen::Model(model_path()); }
  static void TearDownTestSuite() {
    delete model;
    model = nullptr;
  }
  static gen::Sampling greedy(int32_t tokens) {
    gen::Sampling sampling;
    sampling.temperature(0).max_new_tokens(tokens);
    return sampling;
  }
  static gen::Model* model;
  gen::Generator generator{*model};
};

gen::Model* CppHeader::model = nullptr;

TEST_F(CppHeader, FailuresNameTheThing) {
  try {
    const gen::Model missing("/no/such/file");
    FAIL();
  } catch (const gen::Error& error) {
    EXPECT_EQ(error.code(), GEN_ERROR_IO);
    EXPECT_STREQ(error.name(), "GEN_ERROR_IO");
    EXPECT_NE(std::string(error.what()).find("/no/such/file"), std::string::npos);
    EXPECT_EQ(error.partial(), nullptr);
  }
  EXPECT_THROW(gen::Sampling().set("no such key", "1"), gen::Error);
  EXPECT_THROW(gen::Options().kv_dtype("fp7"), gen::Error);
}

TEST_F(CppHeader, EveryFormGivesTheSameText) {
  const std::string once(generator.generate("Once upon", greedy(30)).text());
  EXPECT_FALSE(once.empty());
  std::string pieces;
  generator.generate("Once upon", greedy(30),
                     [&](const gen::Token& token) { pieces += token.text; });
  EXPECT_EQ(pieces, once);
  gen::Session session(generator);
  std::string pulled;
  gen::Stream stream = session.stream("Once upon", greedy(30));
  for (const gen::Token& token : stream) pulled += token.text;
  EXPECT_EQ(pulled, once);
  EXPECT_EQ(stream.result().text(), once);
  std::vector<gen::Request> requests;
  for (int i = 0; i < 3; ++i) requests.emplace_back("Once upon", greedy(30));
  for (const gen::Result& result : generator.generate(requests)) EXPECT_EQ(result.text(), once);
}

TEST_F(CppHeader, WhatACallbackThrowsComesOut) {
  gen::Session session(generator);
  int calls = 0;
  const auto take = [&](const gen::Token&) -> bool {
    if (++calls == 3) throw std::string("enough");
    return true;
  };
  EXPECT_THROW(session.generate("Once upon", greedy(30), take), std::string);
  EXPECT_EQ(calls, 3);
  // A callback that says false ends it without an exception.
  const gen::Result result =
      session.generate("", greedy(30), [](const gen::Token& token) { return token.index < 4; });
  EXPECT_EQ(result.finish_reason(), GEN_FINISH_CALLBACK);
  EXPECT_EQ(result.tokens().size(), 5U);
}

TEST_F(CppHeader, ACancelledCallTellsHowFarItCame) {
  gen::Cancel cancel;
  gen::Session session(generator);
  int pieces = 0;
  try {
    session.generate("Once upon", greedy(300).cancel(cancel), [&](const gen::Token&) {
      if (++pieces == 4) cancel.fire();
    });
    FAIL();
  } catch (const gen::Error& error) {
    EXPECT_EQ(error.code(), GEN_ERROR_CANCELLED);
    ASSERT_NE(error.partial(), nullptr);
    EXPECT_EQ(gen_result_finish_reason(error.partial()), GEN_FINISH_CANCELLED);
    size_t n = 0;
    gen_result_tokens(error.partial(), &n);
    EXPECT_EQ(n, 4U);
  }
}

TEST_F(CppHeader, SessionsForkSaveAndMove) {
  gen::Session session(generator);
  session.append("Once upon a time");
  const int32_t length = session.length();
  gen::Session fork = session.fork();
  const std::string text(session.generate("", greedy(10)).text());
  EXPECT_EQ(fork.length(), length);
  EXPECT_EQ(fork.generate("", greedy(10)).text(), text);
  session.truncate(length);
  gen::Session loaded(generator);
  loaded.load(session.save());
  EXPECT_EQ(loaded.tokens(), session.tokens());
  gen::Session moved = std::move(loaded);
  EXPECT_EQ(loaded.get(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.generate("", greedy(10)).text(), text);
  EXPECT_EQ(moved.score(" dog").size(), model->tokenizer().encode(" dog").size());
}

TEST_F(CppHeader, HandlesMayGoInAnyOrder) {
  auto of_its_own = std::make_unique<gen::Model>(model_path());
  auto own_generator = std::make_unique<gen::Generator>(*of_its_own);
  gen::Session session(*own_generator);
  of_its_own.reset();
  own_generator.reset();
  EXPECT_FALSE(session.generate("Once", greedy(5)).text().empty());
}

TEST_F(CppHeader, CachesOfEveryMaker) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  gen::Cache cache = gen::Cache::make(kv_cache_fp16_new, 2, 16);
  cache.update(1, rows.data(), rows.data(), 1, 2, 4);
  EXPECT_EQ(cache.view(1).seq, 2);
  EXPECT_EQ(cache.clone().view(1).k_dim, 4);
  cache.truncate(1);
  EXPECT_EQ(cache.view(1).seq, 1);
  EXPECT_THROW(cache.update(5, rows.data(), rows.data(), 1, 2, 4), gen::Error);
}

TEST_F(CppHeader, AnEmptyViewIsEmptyText) {
  gen::Session session(generator);
  session.append("Once");
  EXPECT_NO_THROW(session.append(std::string_view()));
  EXPECT_EQ(model->tokenizer().encode(std::string_view()), std::vector<int32_t>());
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// Sessions of a model with windows over a pool: they say what sessions say that keep everything,
// take blocks for their windows only, share beginnings, and come back to where a prompt ended.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

using Tokens = std::vector<int32_t>;

class WindowedPool : public testing::Test {
 protected:
  static test::TinyModelSpec windows() {
    test::TinyModelSpec spec;
    spec.window = 20;
    spec.layers = 3;
    spec.local = {1, 0, 1};
    spec.context = 600;
    return spec;
  }
  explicit WindowedPool(const test::TinyModelSpec& spec = windows()) {
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
    bytes_ = tiny.bytes();
    EXPECT_EQ(gen_model_load_memory(bytes_.data(), bytes_.size(), nullptr, &model_, &error_),
              GEN_OK)
        << error_.message;
    EXPECT_EQ(gen_metrics_memory_new(&metrics_, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_new(&sampling_, &error_), GEN_OK);
    for (const auto& [name, value] :
         {std::pair{"temperature", "0"}, {"max_new_tokens", "40"}, {"ignore_eos", "true"}}) {
      EXPECT_EQ(gen_sampling_set(sampling_, name, value, &error_), GEN_OK) << error_.message;
    }
  }
  ~WindowedPool() override {
    gen_sampling_free(sampling_);
    gen_metrics_memory_free(metrics_);
    gen_model_free(model_);
  }
  gen_generator* generator(bool pool, const char* rewind = nullptr) {
    gen_options* options = nullptr;
    gen_generator* made = nullptr;
    EXPECT_EQ(gen_options_new(&options, &error_), GEN_OK);
    EXPECT_EQ(gen_options_set(options, "prefill_chunk", "16", &error_), GEN_OK) << error_.message;
    if (rewind != nullptr) {
      EXPECT_EQ(gen_options_set(options, "window_rewind", rewind, &error_), GEN_OK);
    }
    if (pool) {
      EXPECT_EQ(gen_options_set_paged_kv(options, 4, 16, &error_), GEN_OK);
      EXPECT_EQ(gen_options_set(options, "prefix_cache", "60", &error_), GEN_OK) << error_.message;
      EXPECT_EQ(gen_options_set_metrics(options, gen_metrics_memory_sink(metrics_), &error_),
                GEN_OK);
    }
    EXPECT_EQ(gen_create(model_, options, &made, &error_), GEN_OK) << error_.message;
    gen_options_free(options);
    return made;
  }
  gen_session* session(gen_generator* of) {
    gen_session* made = nullptr;
    EXPECT_EQ(gen_session_new(of, &made, &error_), GEN_OK) << error_.message;
    return made;
  }
  Tokens say(gen_session* session, const Tokens& prompt, int64_t* cached = nullptr) {
    EXPECT_EQ(gen_session_append_tokens(session, prompt.data(), prompt.size(), &error_), GEN_OK)
        << error_.message;
    gen_result* result = nullptr;
    EXPECT_EQ(gen_session_generate(session, "", 0, sampling_, &result, &error_), GEN_OK)
        << error_.message;
    size_t n = 0;
    const int32_t* tokens = gen_result_tokens(result, &n);
    Tokens said(tokens, tokens + n);
    if (cached != nullptr) {
      EXPECT_EQ(gen_result_usage(result, "prompt_cached", cached, &error_), GEN_OK);
    }
    gen_result_free(result);
    return said;
  }
  [[nodiscard]] double metric(const char* name) const {
    return gen_metrics_memory_value(metrics_, name);
  }
  static Tokens numbers(int32_t n) {
    Tokens tokens;
    for (int32_t i = 0; i < n; ++i) tokens.push_back(3 + i * i % 40);
    return tokens;
  }

  std::vector<std::byte> bytes_;  // the model reads it
  gen_error error_ = {};
  gen_model* model_ = nullptr;
  gen_metrics_memory* metrics_ = nullptr;
  gen_sampling* sampling_ = nullptr;
  std::vector<Tokens> said_;
};

TEST_F(WindowedPool, SaysTheSameInFewerBlocks) {
  gen_generator* const full = generator(false, "-1");
  gen_session* session = this->session(full);
  const Tokens first = say(session, numbers(200));
  const Tokens second = say(session, numbers(9));
  gen_session_free(session);
  gen_free(full);

  gen_generator* const pooled = generator(true, "8");
  session = this->session(pooled);
  EXPECT_EQ(say(session, numbers(200)), first);
  EXPECT_EQ(say(session, numbers(9)), second);
  // The prefix cache keeps what the session gave back until somebody wants the blocks.
  EXPECT_GT(metric("cache_window_blocks_used"), 0);
  EXPECT_LT(metric("cache_window_blocks_used"), metric("cache_blocks_used"));
  gen_session* const other = this->session(pooled);
  int64_t cached = 0;
  Tokens longer = numbers(192);
  longer.push_back(7);
  (void)say(other, longer, &cached);
  EXPECT_EQ(cached, 192);
  gen_session_free(other);
  gen_session_free(session);
  gen_free(pooled);
}

// As a chat whose template drops thoughts does.
TEST_F(WindowedPool, ComesBackToTheEndOfAPrompt) {
  for (const char* rewind : {"-1", "0"}) {
    gen_generator* const made = generator(std::string(rewind) == "0", rewind);
    gen_session* const session = this->session(made);
    const Tokens first = say(session, numbers(150));
    ASSERT_EQ(gen_session_truncate(session, 150, &error_), GEN_OK) << error_.message;
    EXPECT_EQ(gen_session_length(session), 150);
    const Tokens again = say(session, {9, 8, 7});
    gen_session_free(session);
    gen_free(made);
    if (said_.empty()) {
      said_ = {first, again};
    } else {
      EXPECT_EQ(first, said_[0]);
      EXPECT_EQ(again, said_[1]);
    }
  }
}

// A block of 16 positions of a layer takes 32 KiB of the pool's megabyte.
class TightPool : public WindowedPool {
 protected:
  static test::TinyModelSpec large() {
    test::TinyModelSpec spec = windows();
    spec.kv_heads = 4;
    spec.head_dim = 64;
    return spec;
  }
  TightPool() : WindowedPool(large()) {}
  gen_generator* tight(bool pool) {
    gen_options* options = nullptr;
    gen_generator* made = nullptr;
    EXPECT_EQ(gen_options_new(&options, &error_), GEN_OK);
    EXPECT_EQ(gen_options_set(options, "prefill_chunk", "128", &error_), GEN_OK);
    EXPECT_EQ(gen_options_set(options, "window_rewind", pool ? "0" : "-1", &error_), GEN_OK);
    if (pool) {
      EXPECT_EQ(gen_options_set(options, "paged_kv", "1", &error_), GEN_OK) << error_.message;
    }
    EXPECT_EQ(gen_create(model_, options, &made, &error_), GEN_OK) << error_.message;
    gen_options_free(options);
    return made;
  }
};

// Steps of one row need fewer blocks for windows than a chunk of 128, so an answer may grow where
// the same text as a prompt would not have been begun.
TEST_F(TightPool, WhatGrewGoesOnAfterItsBlocksWent) {
  EXPECT_EQ(gen_sampling_set(sampling_, "max_new_tokens", "300", &error_), GEN_OK);
  Tokens said[2];
  Tokens rest[2];
  for (const bool pool : {false, true}) {
    gen_generator* const made = tight(pool);
    gen_session* const session = this->session(made);
    said[pool] = say(session, numbers(20));
    EXPECT_EQ(said[pool].size(), 300U);
    gen_session* const other = this->session(made);
    (void)say(other, numbers(10));
    EXPECT_EQ(gen_sampling_set(sampling_, "max_new_tokens", "10", &error_), GEN_OK);
    rest[pool] = say(session, {});
    gen_session_free(other);
    gen_session_free(session);
    gen_free(made);
    EXPECT_EQ(gen_sampling_set(sampling_, "max_new_tokens", "300", &error_), GEN_OK);
  }
  EXPECT_EQ(said[true], said[false]);
  EXPECT_EQ(rest[true], rest[false]);
}

}  // namespace
}  // namespace gen

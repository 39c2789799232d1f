// SPDX-License-Identifier: Apache-2.0
// Caches of sessions with windows, read, copied and used through the C API after most positions of
// some layers are gone: what is there has the bits of a cache that keeps all, the rest is 0, and
// calls that fail in a pool change nothing.
#include <generate/experimental.h>
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

constexpr int32_t kLayers = 6;
constexpr int32_t kWindow = 33;
constexpr int32_t kContext = 4096;
bool is_windowed(int32_t layer) { return layer % 3 != 2; }

std::vector<int32_t> tokens_of(size_t n) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < n; ++i) tokens.push_back(3 + static_cast<int32_t>(i * i % 41));
  return tokens;
}

class WindowReads : public testing::Test {
 protected:
  void SetUp() override {
    test::TinyModelSpec spec;
    spec.architecture = "gemma3";
    spec.window = kWindow;
    spec.layers = kLayers;
    spec.local = {1, 1, 0, 1, 1, 0};
    spec.context = kContext;
    load(spec);
  }
  void load(const test::TinyModelSpec& spec) {
    close();
    gen_model_free(model_);
    model_ = nullptr;
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
    bytes_ = tiny.bytes();
    ASSERT_EQ(gen_model_load_memory(bytes_.data(), bytes_.size(), nullptr, &model_, &error_),
              GEN_OK)
        << error_.message;
  }
  void TearDown() override {
    close();
    gen_model_free(model_);
  }
  /// A generator with "key=value" settings, and a session of it.
  void open(const std::vector<std::pair<const char*, const char*>>& settings) {
    close();
    gen_options* options = nullptr;
    ASSERT_EQ(gen_options_new(&options, &error_), GEN_OK);
    for (const auto& [key, value] : settings) {
      ASSERT_EQ(gen_options_set(options, key, value, &error_), GEN_OK) << error_.message;
    }
    ASSERT_EQ(gen_create(model_, options, &generator_, &error_), GEN_OK) << error_.message;
    gen_options_free(options);
    ASSERT_EQ(gen_session_new(generator_, &session_, &error_), GEN_OK);
  }
  void close() {
    gen_session_free(session_);
    gen_free(generator_);
    session_ = nullptr;
    generator_ = nullptr;
  }
  gen_status append(size_t n) {
    const std::vector<int32_t> tokens = tokens_of(n);
    return gen_session_append_tokens(session_, tokens.data(), tokens.size(), &error_);
  }
  struct Layer {
    int32_t shape[3] = {};
    std::vector<float> k, v;
  };
  Layer read(const kv_cache* cache, int32_t layer) {
    Layer got;
    int32_t v_shape[3] = {};
    EXPECT_EQ(kv_cache_get(cache, layer, nullptr, 0, nullptr, 0, got.shape, v_shape, &error_),
              GEN_OK);
    const auto n = static_cast<size_t>(got.shape[0]) * static_cast<size_t>(got.shape[1]) *
                   static_cast<size_t>(got.shape[2]);
    got.k.assign(n, 7.0F);
    got.v.assign(n, 7.0F);
    EXPECT_EQ(
        kv_cache_get(cache, layer, got.k.data(), n, got.v.data(), n, got.shape, v_shape, &error_),
        GEN_OK)
        << error_.message;
    return got;
  }

  std::vector<std::byte> bytes_;
  gen_model* model_ = nullptr;
  gen_generator* generator_ = nullptr;
  gen_session* session_ = nullptr;
  gen_error error_ = {};
};

/// From `from` on the rows of `all`, and before it the same or 0.
void expect_held(const std::vector<float>& got, const std::vector<float>& all,
                 const int32_t shape[3], int32_t from, int32_t* zeros) {
  ASSERT_EQ(got.size(), all.size());
  const auto dim = static_cast<size_t>(shape[2]);
  for (int32_t head = 0; head < shape[0]; ++head) {
    for (int32_t i = 0; i < shape[1]; ++i) {
      const size_t at =
          (static_cast<size_t>(head) * static_cast<size_t>(shape[1]) + static_cast<size_t>(i)) *
          dim;
      const auto begin = got.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = begin + static_cast<std::ptrdiff_t>(dim);
      const bool same = std::equal(begin, end, all.begin() + static_cast<std::ptrdiff_t>(at));
      const bool none = std::all_of(begin, end, [](float x) { return x == 0.0F; });
      ASSERT_TRUE(same || (i < from && none)) << "head " << head << ", position " << i;
      *zeros += !same && none ? 1 : 0;
    }
  }
}

TEST_F(WindowReads, WhatIsThereHasTheBitsOfAll) {
  constexpr size_t kTokens = 401;
  open({{"window_rewind", "-1"}, {"prefill_chunk", "64"}});
  ASSERT_EQ(append(kTokens), GEN_OK) << error_.message;
  std::vector<Layer> all;
  for (int32_t i = 0; i < kLayers; ++i) all.push_back(read(gen_session_cache(session_), i));
  using Settings = std::vector<std::pair<const char*, const char*>>;
  const Settings forms[] = {{}, {{"paged_kv", "8,16"}}, {{"paged_kv", "8,7"}}};
  for (Settings settings : forms) {
    SCOPED_TRACE(settings.empty() ? "ring" : settings[0].second);
    settings.push_back({"window_rewind", "0"});
    settings.push_back({"prefill_chunk", "64"});
    open(settings);
    ASSERT_EQ(append(kTokens), GEN_OK) << error_.message;
    kv_cache* copy = nullptr;
    ASSERT_EQ(kv_cache_clone(gen_session_cache(session_), &copy, &error_), GEN_OK);
    for (const kv_cache* cache :
         {gen_session_cache(session_), static_cast<const kv_cache*>(copy)}) {
      for (int32_t i = 0; i < kLayers; ++i) {
        SCOPED_TRACE(i);
        const Layer got = read(cache, i);
        const Layer& full = all[static_cast<size_t>(i)];
        const int32_t seen = got.shape[1] - kWindow + 1;
        int32_t zeros = 0;
        expect_held(got.k, full.k, got.shape, is_windowed(i) ? seen : 0, &zeros);
        expect_held(got.v, full.v, got.shape, is_windowed(i) ? seen : 0, &zeros);
        EXPECT_EQ(zeros > 0, is_windowed(i));
      }
    }
    kv_cache_free(copy);
  }
}

// The pool holds a session's blocks, not what it would hold if windows kept all.
TEST_F(WindowReads, WhatAPoolHeldItTakesBack) {
  open({{"paged_kv", "1,16"}, {"window_rewind", "0"}, {"prefill_chunk", "16"}});
  int32_t length = 0;
  while (append(64) == GEN_OK) length = gen_session_length(session_);
  EXPECT_TRUE(std::string(error_.message).find("the pool has room for") != std::string::npos ||
              std::string(error_.message).find("blocks free") != std::string::npos)
      << error_.message;
  ASSERT_EQ(gen_session_length(session_), length);
  ASSERT_GT(length, 500);
  size_t n = 0;
  ASSERT_EQ(gen_session_save_buffer(session_, nullptr, 0, &n, &error_), GEN_OK);
  std::vector<uint8_t> state(n);
  ASSERT_EQ(gen_session_save_buffer(session_, state.data(), n, &n, &error_), GEN_OK);
  // One that is idle gives way.
  gen_session* other = nullptr;
  ASSERT_EQ(gen_session_new(generator_, &other, &error_), GEN_OK);
  ASSERT_EQ(gen_session_load_buffer(other, state.data(), n, &error_), GEN_OK) << error_.message;
  EXPECT_EQ(gen_session_length(other), length);
  gen_session_free(other);
}

// Also what it holds with the blocks of others, which have gaps where nobody sees them.
TEST_F(WindowReads, WhatAPrefixCacheGaveItTakesBack) {
  test::TinyModelSpec spec;
  spec.window = 20;
  spec.layers = 3;
  spec.local = {1, 0, 1};
  spec.context = 600;
  spec.kv_heads = 4;
  spec.head_dim = 64;
  load(spec);
  int tried = 0;
  for (const char* rewind : {"64", "256", "512"}) {
    open({{"paged_kv", "1,16"},
          {"window_rewind", rewind},
          {"window_copies", "3"},
          {"prefill_chunk", "33"},
          {"prefix_cache", "20"}});
    const std::vector<int32_t> text = tokens_of(600);
    size_t first = 0;
    while (gen_session_append_tokens(session_, text.data() + first, 10, &error_) == GEN_OK) {
      first += 10;
    }
    ASSERT_EQ(gen_session_reset(session_, &error_), GEN_OK);
    for (size_t n = first - 60; n < first + 120; n += 20) {
      gen_session* held = nullptr;
      gen_session* loaded = nullptr;
      ASSERT_EQ(gen_session_new(generator_, &held, &error_), GEN_OK);
      ASSERT_EQ(gen_session_new(generator_, &loaded, &error_), GEN_OK);
      if (gen_session_append_tokens(held, text.data(), n, &error_) == GEN_OK) {
        size_t size = 0;
        ASSERT_EQ(gen_session_save_buffer(held, nullptr, 0, &size, &error_), GEN_OK);
        std::vector<uint8_t> state(size);
        ASSERT_EQ(gen_session_save_buffer(held, state.data(), size, &size, &error_), GEN_OK);
        EXPECT_EQ(gen_session_load_buffer(loaded, state.data(), size, &error_), GEN_OK)
            << error_.message << ": " << n << " of " << first << ", rewind " << rewind;
        ++tried;
      }
      gen_session_free(held);
      gen_session_free(loaded);
    }
  }
  EXPECT_GT(tried, 10);
}

TEST_F(WindowReads, AForwardThatFailsLeavesTheCache) {
  open({{"paged_kv", "1,16"}, {"window_rewind", "0"}});
  const auto vocab = static_cast<size_t>(gen_model_config_vocab_size(gen_model_get_config(model_)));
  std::vector<float> expected(vocab);
  std::vector<float> logits(vocab);
  kv_cache* cache = nullptr;
  kv_cache* twin = nullptr;
  ASSERT_EQ(kv_cache_generator_new(generator_, kContext, &cache, &error_), GEN_OK)
      << error_.message;
  const std::vector<int32_t> begin = tokens_of(300);
  ASSERT_EQ(
      gen_model_forward(model_, begin.data(), begin.size(), cache, logits.data(), vocab, &error_),
      GEN_OK)
      << error_.message;
  const std::vector<int32_t> many = tokens_of(kContext - 300);
  EXPECT_EQ(
      gen_model_forward(model_, many.data(), many.size(), cache, logits.data(), vocab, &error_),
      GEN_ERROR_POOL_EXHAUSTED);
  EXPECT_EQ(kv_cache_seq_len(cache), 300);
  ASSERT_EQ(kv_cache_clone(cache, &twin, &error_), GEN_OK);
  kv_cache* fresh = nullptr;
  ASSERT_EQ(kv_cache_new(kLayers, kContext, &fresh, &error_), GEN_OK);
  ASSERT_EQ(
      gen_model_forward(model_, begin.data(), begin.size(), fresh, expected.data(), vocab, &error_),
      GEN_OK);
  const std::vector<int32_t> next = tokens_of(20);
  ASSERT_EQ(
      gen_model_forward(model_, next.data(), next.size(), fresh, expected.data(), vocab, &error_),
      GEN_OK);
  ASSERT_EQ(
      gen_model_forward(model_, next.data(), next.size(), twin, logits.data(), vocab, &error_),
      GEN_OK)
      << error_.message;
  EXPECT_EQ(logits, expected);
  kv_cache_free(fresh);
  kv_cache_free(twin);
  kv_cache_free(cache);
}

// Other caches keep up to a tile less of a window.
TEST_F(WindowReads, StatesGoIntoPoolsOfAnyBlocks) {
  for (const char* from : {"ring", "8,16", "8,10"}) {
    for (const char* to : {"8,10", "8,7", "ring"}) {
      SCOPED_TRACE(std::string(from) + " to " + to);
      using Settings = std::vector<std::pair<const char*, const char*>>;
      const auto settings = [](const char* pool) {
        Settings made{{"window_rewind", "16"}, {"prefill_chunk", "32"}};
        if (std::string(pool) != "ring") made.push_back({"paged_kv", pool});
        return made;
      };
      for (const size_t length : {200U, 217U, 1000U}) {
        open(settings(from));
        ASSERT_EQ(append(length), GEN_OK) << error_.message;
        size_t n = 0;
        ASSERT_EQ(gen_session_save_buffer(session_, nullptr, 0, &n, &error_), GEN_OK);
        std::vector<uint8_t> state(n);
        ASSERT_EQ(gen_session_save_buffer(session_, state.data(), n, &n, &error_), GEN_OK);
        open(settings(to));
        EXPECT_EQ(gen_session_load_buffer(session_, state.data(), n, &error_), GEN_OK)
            << length << ": " << error_.message;
      }
    }
  }
}

}  // namespace
}  // namespace gen

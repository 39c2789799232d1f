// SPDX-License-Identifier: Apache-2.0
// What a model with windows says to caches that cannot keep them, and to those that keep no more.
#include <generate/experimental.h>
#include <generate/generate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/sanitized.h"
#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "counting_allocator.h"
#include "status_record.h"

namespace gen {
namespace {

std::vector<std::byte> file_of(const test::TinyModelSpec& spec) {
  test::TinyModel tiny(spec);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
  return tiny.bytes();
}

TEST(WindowedModel, IsNotPooled) {
  test::TinyModelSpec spec;
  spec.window = 5;
  const std::vector<std::byte> bytes = file_of(spec);  // the model reads it
  gen_error error = {};
  gen_model* model = nullptr;
  ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error), GEN_OK)
      << error.message;
  const gen_model_config* config = gen_model_get_config(model);
  const int32_t layers = gen_model_config_num_layers(config);
  std::vector<float> logits(static_cast<size_t>(gen_model_config_vocab_size(config)), 7.0F);
  const int32_t tokens[] = {3, 4, 5};
  kv_cache* cache = nullptr;
  ASSERT_EQ(kv_cache_compressed_new(layers, 0, 0, 4, &cache, &error), GEN_OK);
  EXPECT_EQ(gen_model_forward(model, tokens, 3, cache, logits.data(), logits.size(), &error),
            GEN_ERROR_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("window"), std::string::npos) << error.message;
  EXPECT_EQ(logits, std::vector<float>(logits.size(), 7.0F));
  EXPECT_EQ(kv_cache_seq_len(cache), 0);
  const uint8_t wants[] = {0, 0, 1};
  EXPECT_EQ(gen_model_forward_batch(model, tokens, nullptr, wants, 3, &cache, 1, logits.data(),
                                    logits.size(), &error),
            GEN_ERROR_UNSUPPORTED);
  gen_profile* profile = nullptr;
  ASSERT_EQ(gen_profile_new(&profile, &error), GEN_OK);
  EXPECT_EQ(gen_model_forward_profiled(model, tokens, nullptr, wants, 3, &cache, 1, logits.data(),
                                       logits.size(), profile, &error),
            GEN_ERROR_UNSUPPORTED);
  gen_profile_free(profile);
  kv_cache_free(cache);
  ASSERT_EQ(kv_cache_new(layers, 64, &cache, &error), GEN_OK);
  EXPECT_EQ(gen_model_forward(model, tokens, 3, cache, logits.data(), logits.size(), &error),
            GEN_OK);
  kv_cache_free(cache);
  gen_options* options = nullptr;
  gen_generator* generator = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set_compressed_kv(options, 4, &error), GEN_OK);
  EXPECT_EQ(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED);
  EXPECT_STREQ(error.message,
               "compressed_kv: layer 0 has a window or chunks, whose entries cannot be averaged");
  gen_draft* draft = nullptr;
  EXPECT_EQ(gen_draft_new(model, nullptr, options, &draft, &error), GEN_ERROR_UNSUPPORTED);
  gen_options_free(options);
  gen_model_free(model);
}

struct Family {
  const char* name;
  int32_t window;
  int32_t chunk;
};

/// A tiny model of a family, as a file, and what an allocator counts of it.
class WindowedFamilies : public testing::TestWithParam<Family> {
 protected:
  static constexpr int32_t kContext = 1200;

  void SetUp() override {
    test::TinyModelSpec spec;
    spec.architecture = GetParam().name;
    spec.window = GetParam().window;
    spec.chunk = GetParam().chunk;
    spec.layers = 6;
    spec.local = {1, 1, 0, 1, 1, 0};
    spec.context = kContext;
    path_ = testing::TempDir() + "/generate_windows_" + std::to_string(getpid()) + ".gguf";
    ASSERT_TRUE(test::write_file(path_, file_of(spec)));
    ASSERT_EQ(gen_options_new(&options_, &error_), GEN_OK);
    set("prefill_chunk", "16");
    set("window_rewind", "8");
  }
  void TearDown() override {
    gen_options_free(options_);
    unlink(path_.c_str());
  }
  void set(const char* key, const char* value) {
    ASSERT_EQ(gen_options_set(options_, key, value, &error_), GEN_OK) << error_.message;
  }
  size_t foretold(const char* key) {
    gen_memory_estimate* estimate = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(gen_estimate_memory(path_.c_str(), nullptr, options_, &estimate, &error_), GEN_OK)
        << error_.message;
    EXPECT_EQ(gen_memory_estimate_get(estimate, key, &bytes, &error_), GEN_OK);
    gen_memory_estimate_free(estimate);
    return bytes;
  }
  /// Of a session that has gone through all of its context, with borders and a long answer at last.
  struct Counted {
    size_t cache = 0;
    size_t rest = 0;  // that is neither this nor weights
    size_t peak = 0;
    std::string kind;
    std::string description;
  };
  /// What kv_cache_describe says of windows after a full context.
  static std::string windows_said() {
    const int32_t window = std::max(GetParam().window, GetParam().chunk);
    const int32_t first = (kContext - window) / 16 * 16;  // the last token is not evaluated
    return "\"windows\":[{\"window\":" + std::to_string(window) +
           ",\"first\":" + std::to_string(first) + ",\"layers\":[0,1,3,4]}]}";
  }
  Counted counted() {
    counting counts = {};
    const gen_allocator table = {sizeof table, &counts, counting_allocate, counting_release};
    gen_model_options* load = nullptr;
    gen_model* model = nullptr;
    gen_generator* generator = nullptr;
    gen_session* session = nullptr;
    EXPECT_EQ(gen_model_options_new(&load, &error_), GEN_OK);
    EXPECT_EQ(gen_model_options_set_allocator(load, &table, &error_), GEN_OK);
    EXPECT_EQ(gen_model_load(path_.c_str(), load, &model, &error_), GEN_OK) << error_.message;
    gen_model_options_free(load);
    EXPECT_EQ(gen_create(model, options_, &generator, &error_), GEN_OK) << error_.message;
    const size_t weights = counts.live;
    EXPECT_EQ(gen_session_new(generator, &session, &error_), GEN_OK) << error_.message;
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 97; ++i) prompt.push_back(3 + i * i % 40);
    gen_sampling* sampling = nullptr;
    EXPECT_EQ(gen_sampling_new(&sampling, &error_), GEN_OK);
    EXPECT_EQ(gen_sampling_set(sampling, "ignore_eos", "1", &error_), GEN_OK);
    for (int32_t left = kContext; left > 0; left -= 100) {
      const bool last = left == 400;
      EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, last ? 303 : 3, &error_), GEN_OK);
      EXPECT_EQ(gen_session_append_tokens(session, prompt.data(), prompt.size(), &error_), GEN_OK);
      gen_result* result = nullptr;
      EXPECT_EQ(gen_session_generate(session, "", 0, sampling, &result, &error_), GEN_OK)
          << error_.message;
      gen_result_free(result);
      if (last) break;
    }
    EXPECT_EQ(gen_session_length(session), kContext);
    gen_sampling_free(sampling);
    Counted made;
    const kv_cache* const cache = gen_session_cache(session);
    made.kind = kv_cache_kind(cache);
    size_t n = 0;
    EXPECT_EQ(kv_cache_describe(cache, nullptr, 0, &n, &error_), GEN_OK);
    made.description.resize(n + 1);
    EXPECT_EQ(kv_cache_describe(cache, made.description.data(), n, &n, &error_),
              GEN_ERROR_OUT_OF_RANGE);
    EXPECT_EQ(kv_cache_describe(cache, made.description.data(), n + 1, &n, &error_), GEN_OK);
    made.description.resize(n);
    EXPECT_EQ(kv_cache_memory_bytes(cache, &made.cache, nullptr, nullptr, &error_), GEN_OK);
    made.rest = counts.live - weights - made.cache;
    made.peak = counts.peak;
    gen_session_free(session);
    gen_free(generator);
    gen_model_free(model);
    EXPECT_EQ(counts.live, 0U);
    return made;
  }

  std::string path_;
  gen_options* options_ = nullptr;
  gen_error error_ = {};
};

INSTANTIATE_TEST_SUITE_P(Families, WindowedFamilies,
                         testing::Values(Family{"gemma2", 40, 0}, Family{"gemma3", 33, 0},
                                         Family{"gemma4", 64, 0}, Family{"gpt-oss", 17, 0},
                                         Family{"cohere2", 100, 0}, Family{"olmo2", 32, 0},
                                         Family{"llama", 0, 64}),
                         [](const auto& each) {
                           std::string name = each.param.name;
                           if (name == "gpt-oss") name = "gptoss";
                           return name;
                         });

TEST_P(WindowedFamilies, TakeWhatIsForetold) {
  set("window_rewind", "-1");
  const Counted full = counted();
  EXPECT_EQ(foretold("cache"), full.cache);
  EXPECT_EQ(full.kind, "fp32");
  EXPECT_TRUE(full.description.ends_with("\"windows\":[]}")) << full.description;
  set("window_rewind", "8");
  size_t before = 0;
  for (const char* copies : {"0", "1", "2", "3"}) {
    if (test::kSanitized && (*copies == '1' || *copies == '3')) continue;
    SCOPED_TRACE(copies);
    set("window_copies", copies);
    const Counted windowed = counted();
    EXPECT_EQ(foretold("cache"), windowed.cache);
    const auto workspace = static_cast<double>(windowed.rest);
    EXPECT_NEAR(static_cast<double>(foretold("workspace")), workspace, 0.02 * workspace + 4096);
    EXPECT_EQ(windowed.kind, "window");
    EXPECT_TRUE(windowed.description.ends_with(windows_said())) << windowed.description;
    EXPECT_LT(windowed.cache, full.cache);
    EXPECT_GT(windowed.cache, before);
    before = windowed.cache;
  }
}

// In a pool a session takes blocks as it grows, and gives some back.
TEST_P(WindowedFamilies, TakeNoMoreOfAPoolThanForetold) {
  const auto workspace = static_cast<double>(foretold("workspace"));
  set("paged_kv", "64,16");
  set("window_rewind", "-1");
  const Counted full = counted();
  EXPECT_EQ(foretold("cache"), full.cache);
  EXPECT_EQ(full.kind, "paged");
  set("window_rewind", "8");
  for (const char* copies : {"0", "1", "3"}) {
    if (test::kSanitized && *copies == '1') continue;
    SCOPED_TRACE(copies);
    set("window_copies", copies);
    const Counted windowed = counted();
    EXPECT_LT(windowed.cache, full.cache);
    EXPECT_GE(foretold("cache"), windowed.cache);
    EXPECT_TRUE(windowed.description.ends_with(windows_said())) << windowed.description;
    // What is left free in the pool, and what a prefix cache holds of it, is no workspace.
    for (const char* prefixes : {"0", "100"}) {
      set("prefix_cache", prefixes);
      EXPECT_NEAR(static_cast<double>(foretold("workspace")), workspace, 0.02 * workspace + 4096);
      const auto peak = static_cast<double>(counted().peak);
      EXPECT_GE(static_cast<double>(foretold("peak")), peak - 4096);
      EXPECT_LE(static_cast<double>(foretold("peak")), 1.1 * peak + (1 << 20));
    }
    set("prefix_cache", "0");
  }
}

// The table of docs/caches.md, from tiny models with layers of these shapes: keys and values that
// take two bytes each, by the formula.
struct Shape {
  const char* name;
  int32_t layers;
  int32_t every;  // the last of so many has no window
  int32_t window;
  uint32_t heads;  // of layers with a window
  int32_t dim;
  uint32_t other_heads;
  int32_t other_dim;
  int64_t ring;  // positions
  int64_t copies;
};

TEST(WindowedModel, TakesWhatTheTableSays) {
  const Shape shapes[] = {{"gemma3", 34, 6, 1024, 4, 256, 4, 256, 1664, 2816},
                          {"gemma4", 60, 6, 1024, 16, 256, 4, 512, 1664, 2816},
                          {"gpt-oss", 24, 2, 128, 8, 64, 8, 64, 656, 800}};
  gen_error error = {};
  gen_options* options = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set(options, "kv_dtype", "fp16", &error), GEN_OK);
  for (const Shape& shape : shapes) {
    test::TinyModelSpec spec;
    spec.architecture = shape.name;
    spec.layers = shape.layers;
    spec.context = 131072;
    spec.window = shape.window;
    spec.hidden = 32;
    spec.feed_forward = 32;
    spec.expert_width = 32;
    spec.heads = 16;
    spec.head_dim = shape.other_dim;
    if (shape.dim != shape.other_dim) spec.local_head_dim = shape.dim;
    int64_t local = 0;
    int64_t global = 0;
    for (int32_t i = 0; i < shape.layers; ++i) {
      const bool windowed = (i + 1) % shape.every != 0;
      spec.local.push_back(windowed ? 1 : 0);
      spec.layer_kv_heads.push_back(windowed ? shape.heads : shape.other_heads);
      const int64_t bytes = 2 * 2 * static_cast<int64_t>(spec.layer_kv_heads.back()) *
                            (windowed ? shape.dim : shape.other_dim);
      (windowed ? local : global) += bytes;
    }
    const std::string path =
        testing::TempDir() + "/generate_shape_" + std::to_string(getpid()) + ".gguf";
    ASSERT_TRUE(test::write_file(path, file_of(spec)));
    for (const char* context : {"32768", "131072"}) {
      SCOPED_TRACE(std::string(shape.name) + " " + context);
      gen_model_options* load = nullptr;
      ASSERT_EQ(gen_model_options_new(&load, &error), GEN_OK);
      ASSERT_EQ(gen_model_options_set(load, "max_seq_len", context, &error), GEN_OK);
      const int64_t positions = std::stoll(context);
      const auto foretold = [&](const char* rewind, const char* copies) {
        gen_memory_estimate* estimate = nullptr;
        size_t bytes = 0;
        EXPECT_EQ(gen_options_set(options, "window_rewind", rewind, &error), GEN_OK);
        EXPECT_EQ(gen_options_set(options, "window_copies", copies, &error), GEN_OK);
        EXPECT_EQ(gen_estimate_memory(path.c_str(), load, options, &estimate, &error), GEN_OK)
            << error.message;
        EXPECT_EQ(gen_memory_estimate_get(estimate, "cache", &bytes, &error), GEN_OK);
        gen_memory_estimate_free(estimate);
        return static_cast<int64_t>(bytes);
      };
      EXPECT_EQ(foretold("-1", "2"), (local + global) * positions);
      EXPECT_EQ(foretold("256", "0"), local * shape.ring + global * positions);
      EXPECT_EQ(foretold("256", "2"), local * (shape.ring + shape.copies) + global * positions);
      gen_model_options_free(load);
    }
    unlink(path.c_str());
  }
  gen_options_free(options);
}

// With window_rewind a session keeps little more than the windows, and says the same.
TEST(WindowedModel, SessionsMayKeepOnlyTheWindow) {
  test::TinyModelSpec spec;
  spec.window = 5;
  spec.layers = 3;
  spec.local = {1, 0, 1};
  spec.context = 600;
  const std::vector<std::byte> bytes = file_of(spec);  // the model reads it
  gen_error error = {};
  gen_model* model = nullptr;
  ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error), GEN_OK)
      << error.message;
  gen_options* options = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set(options, "prefill_chunk", "16", &error), GEN_OK) << error.message;
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set(sampling, "temperature", "0", &error), GEN_OK) << error.message;
  ASSERT_EQ(gen_sampling_set(sampling, "max_new_tokens", "80", &error), GEN_OK) << error.message;
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 70; ++i) prompt.push_back(3 + i * i % 40);
  std::vector<std::vector<int32_t>> said;
  std::vector<std::vector<uint8_t>> states;
  for (const char* rewind : {"-1", "8"}) {
    ASSERT_EQ(gen_options_set(options, "window_rewind", rewind, &error), GEN_OK) << error.message;
    gen_generator* generator = nullptr;
    gen_session* session = nullptr;
    ASSERT_EQ(gen_create(model, options, &generator, &error), GEN_OK) << error.message;
    ASSERT_EQ(gen_session_new(generator, &session, &error), GEN_OK);
    // Twice: a cut far back is evaluated again.
    for (int turn = 0; turn < 2; ++turn) {
      ASSERT_EQ(gen_session_append_tokens(session, prompt.data(), prompt.size(), &error), GEN_OK);
      gen_result* result = nullptr;
      ASSERT_EQ(gen_session_generate(session, "", 0, sampling, &result, &error), GEN_OK)
          << error.message;
      size_t n = 0;
      const int32_t* tokens = gen_result_tokens(result, &n);
      said.emplace_back(tokens, tokens + n);
      gen_result_free(result);
      ASSERT_EQ(gen_session_truncate(session, 30, &error), GEN_OK) << error.message;
    }
    ASSERT_EQ(gen_session_append_tokens(session, prompt.data(), prompt.size(), &error), GEN_OK);
    size_t bytes_of_state = 0;
    ASSERT_EQ(gen_session_save_buffer(session, nullptr, 0, &bytes_of_state, &error), GEN_OK);
    states.emplace_back(bytes_of_state);
    ASSERT_EQ(gen_session_save_buffer(session, states.back().data(), bytes_of_state,
                                      &bytes_of_state, &error),
              GEN_OK);
    gen_session_free(session);
    // A state of everything is one of the windows, not the other way round.
    ASSERT_EQ(gen_session_new(generator, &session, &error), GEN_OK);
    EXPECT_EQ(gen_session_load_buffer(session, states[0].data(), states[0].size(), &error), GEN_OK)
        << error.message;
    gen_session_free(session);
    gen_free(generator);
  }
  EXPECT_GT(said[0].size(), 20U);
  EXPECT_EQ(said[2], said[0]);
  EXPECT_EQ(said[3], said[1]);
  EXPECT_LT(states[1].size(), states[0].size());
  ASSERT_EQ(gen_options_set(options, "window_rewind", "-1", &error), GEN_OK);
  gen_generator* generator = nullptr;
  gen_session* session = nullptr;
  ASSERT_EQ(gen_create(model, options, &generator, &error), GEN_OK);
  ASSERT_EQ(gen_session_new(generator, &session, &error), GEN_OK);
  EXPECT_EQ(gen_session_load_buffer(session, states[1].data(), states[1].size(), &error),
            GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("lacks the first"), std::string::npos) << error.message;
  EXPECT_EQ(gen_session_length(session), 0);
  gen_session_free(session);
  gen_free(generator);
  generator = nullptr;
  ASSERT_EQ(gen_options_set(options, "window_rewind", "0", &error), GEN_OK);
  ASSERT_EQ(gen_options_set(options, "tiered_kv", "4", &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_create(model, options, &generator, &error), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("window_rewind"), std::string::npos) << error.message;
  // What nobody has set is no reason.
  gen_options* unset = nullptr;
  ASSERT_EQ(gen_options_new(&unset, &error), GEN_OK);
  ASSERT_EQ(gen_options_set(unset, "tiered_kv", "4", &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_create(model, unset, &generator, &error), GEN_OK) << error.message;
  gen_free(generator);
  generator = nullptr;
  gen_options_free(unset);
  EXPECT_EQ(gen_options_set(options, "window_rewind", "-2", &error), GEN_ERROR_INVALID_ARGUMENT);
  gen_sampling_free(sampling);
  gen_options_free(options);
  gen_model_free(model);
}

}  // namespace
}  // namespace gen

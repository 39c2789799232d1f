// SPDX-License-Identifier: Apache-2.0
// What a model with windows says to caches that cannot keep them, and to those that keep no more.
#include <generate/experimental.h>
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

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
  gen_draft* draft = nullptr;
  EXPECT_EQ(gen_draft_new(model, nullptr, options, &draft, &error), GEN_ERROR_UNSUPPORTED);
  gen_options_free(options);
  gen_model_free(model);
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
  ASSERT_EQ(gen_options_set_paged_kv(options, 4, 16, &error), GEN_OK);
  EXPECT_EQ(gen_create(model, options, &generator, &error), GEN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("window_rewind"), std::string::npos) << error.message;
  EXPECT_EQ(gen_options_set(options, "window_rewind", "-2", &error), GEN_ERROR_INVALID_ARGUMENT);
  gen_sampling_free(sampling);
  gen_options_free(options);
  gen_model_free(model);
}

}  // namespace
}  // namespace gen

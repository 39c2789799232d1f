// SPDX-License-Identifier: Apache-2.0
// What a model with windows says to caches that cannot keep them.
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

TEST(WindowedModel, IsNotPooled) {
  test::TinyModelSpec spec;
  spec.window = 5;
  test::TinyModel tiny(spec);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab));
  const std::vector<std::byte> bytes = tiny.bytes();
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

}  // namespace
}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// Tokens that a model's file excludes (tokenizer.ggml.suppress_tokens) are not generated, by any
// way, unless a call has a bias for them; logits of forward passes keep them.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

gen_model* model_without(const std::vector<int32_t>& suppressed) {
  test::TinyModelSpec spec;
  test::TinyModel tiny(spec);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab))
      .set_array("tokenizer.ggml.suppress_tokens", suppressed);
  const std::vector<std::byte> bytes = tiny.bytes();
  gen_error error = {};
  gen_model* model = nullptr;
  EXPECT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error), GEN_OK)
      << error.message;
  return model;
}

/// 24 tokens at a temperature, `bias` for each of `biased`.
std::vector<int32_t> generated(gen_model* model, double temperature, const char* drafts,
                               const std::vector<int32_t>& biased = {}, float bias = 0.0F) {
  gen_error error = {};
  gen_options* options = nullptr;
  gen_generator* generator = nullptr;
  gen_sampling* sampling = nullptr;
  gen_result* result = nullptr;
  EXPECT_EQ(gen_options_new(&options, &error), GEN_OK);
  EXPECT_EQ(gen_options_set(options, "prompt_lookup", drafts, &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_create(model, options, &generator, &error), GEN_OK) << error.message;
  EXPECT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  EXPECT_EQ(gen_sampling_set_temperature(sampling, temperature, &error), GEN_OK);
  EXPECT_EQ(gen_sampling_set_max_new_tokens(sampling, 24, &error), GEN_OK);
  for (const int32_t token : biased) {
    EXPECT_EQ(gen_sampling_set_logit_bias(sampling, token, bias, &error), GEN_OK);
  }
  EXPECT_EQ(gen_generate(generator, "abab", GEN_NUL_TERMINATED, sampling, &result, &error), GEN_OK)
      << error.message;
  size_t n = 0;
  const int32_t* const tokens = gen_result_tokens(result, &n);
  std::vector<int32_t> all(tokens, tokens + n);
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_options_free(options);
  return all;
}

bool have_any(const std::vector<int32_t>& tokens, const std::vector<int32_t>& of) {
  return std::any_of(tokens.begin(), tokens.end(), [&](int32_t token) {
    return std::find(of.begin(), of.end(), token) != of.end();
  });
}

TEST(SuppressedTokens, AreNotGenerated) {
  gen_model* const plain = model_without({});
  std::vector<int32_t> suppressed = generated(plain, 0.0, "0");
  ASSERT_FALSE(suppressed.empty());
  std::sort(suppressed.begin(), suppressed.end());
  suppressed.erase(std::unique(suppressed.begin(), suppressed.end()), suppressed.end());
  gen_model* const model = model_without(suppressed);
  for (const double temperature : {0.0, 3.0}) {
    for (const char* drafts : {"0", "2,4"}) {
      const auto tokens = generated(model, temperature, drafts);
      EXPECT_EQ(tokens.size(), 24U);
      EXPECT_FALSE(have_any(tokens, suppressed)) << temperature << drafts;
    }
  }
  EXPECT_EQ(generated(plain, 0.0, "0", suppressed, -INFINITY), generated(model, 0.0, "0"));
  EXPECT_TRUE(have_any(generated(model, 0.0, "0", suppressed, 1.0F), suppressed));
  // The model itself has all logits.
  gen_error error = {};
  std::vector<float> logits[2];
  for (const bool without : {false, true}) {
    gen_model* const of = without ? model : plain;
    const gen_model_config* const config = gen_model_get_config(of);
    logits[without ? 1 : 0].resize(static_cast<size_t>(gen_model_config_vocab_size(config)));
    kv_cache* cache = nullptr;
    ASSERT_EQ(kv_cache_new(gen_model_config_num_cache_layers(config), 8, &cache, &error), GEN_OK);
    const int32_t token = 2;
    auto& row = logits[without ? 1 : 0];
    EXPECT_EQ(gen_model_forward(of, &token, 1, cache, row.data(), row.size(), &error), GEN_OK);
    kv_cache_free(cache);
  }
  EXPECT_EQ(logits[0], logits[1]);
  gen_model_free(model);
  gen_model_free(plain);
}

TEST(SuppressedTokens, OutsideTheVocabularyAreRefused) {
  test::TinyModelSpec spec;
  for (const int32_t id : {-1, spec.vocab}) {
    test::TinyModel tiny(spec);
    test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(spec.vocab))
        .set_array<int32_t>("tokenizer.ggml.suppress_tokens", {3, id});
    const std::vector<std::byte> bytes = tiny.bytes();
    gen_error error = {};
    gen_model* model = nullptr;
    EXPECT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error),
              GEN_ERROR_FORMAT);
    EXPECT_EQ(std::string(error.message), "metadata 'tokenizer.ggml.suppress_tokens': token " +
                                              std::to_string(id) + " outside vocabulary of " +
                                              std::to_string(spec.vocab));
  }
}

}  // namespace
}  // namespace gen

// SPDX-License-Identifier: Apache-2.0
// gen_draft at the edges of vocabularies and contexts.
#include <generate/generate.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/tiny_model.h"
#include "support/tiny_vocabulary.h"

#include "status_record.h"

namespace gen {
namespace {

constexpr int32_t kTokens = 50;
constexpr int32_t kPadding = 30;
constexpr int32_t kContext = 64;

/// Random weights, and a vocabulary whose last tokens are padding.
gen_model* model_with(int32_t padding, uint32_t seed) {
  constexpr int32_t kNormal = 1;
  constexpr int32_t kUnused = 5;
  test::TinyModelSpec spec;
  spec.vocab = kTokens + padding;
  spec.context = kContext;
  spec.seed = seed;
  test::TinyModel tiny(spec);
  std::vector<std::string> pieces = test::tiny_pieces(kTokens);
  std::vector<int32_t> types(static_cast<size_t>(kTokens), kNormal);
  for (int32_t i = 0; i < padding; ++i) {
    pieces.push_back("[PAD" + std::to_string(i) + "]");
    types.push_back(kUnused);
  }
  test::set_tiny_vocabulary(&tiny.writer(), pieces).set_array("tokenizer.ggml.token_type", types);
  const std::vector<std::byte> bytes = tiny.bytes();
  gen_error error = {};
  gen_model* model = nullptr;
  EXPECT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &model, &error), GEN_OK)
      << error.message;
  return model;
}

// What the draft model says alone is padding at many places; for a target it ends there.
TEST(DraftEdges, GuessesNoPaddingThatTheTargetLacks) {
  gen_error error = {};
  gen_model* model = model_with(kPadding, 1);
  gen_model* target = model_with(0, 2);
  gen_draft* alone = nullptr;
  gen_draft* drafts = nullptr;
  ASSERT_EQ(gen_draft_new(model, nullptr, nullptr, &alone, &error), GEN_OK) << error.message;
  ASSERT_EQ(gen_draft_new(model, target, nullptr, &drafts, &error), GEN_OK) << error.message;
  int32_t cut = 0;
  for (int32_t first = 0; first < kTokens; ++first) {
    constexpr int32_t kLength = 6;
    const int32_t text[] = {first, 3, first};
    int32_t all[kLength];
    int32_t some[kLength];
    size_t n_all = 0;
    size_t n = 0;
    ASSERT_EQ(gen_draft_generate(alone, text, 3, kLength, all, nullptr, kLength, &n_all, &error),
              GEN_OK);
    ASSERT_EQ(gen_draft_generate(drafts, text, 3, kLength, some, nullptr, kLength, &n, &error),
              GEN_OK);
    ASSERT_LE(n, n_all);
    EXPECT_TRUE(n == n_all || all[n] >= kTokens) << n;
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(some[i], all[i]);
      EXPECT_LT(some[i], kTokens);
    }
    cut += static_cast<int32_t>(n < n_all);
    double rate = -1;
    EXPECT_EQ(gen_draft_acceptance_rate(drafts, text, 3, kLength, &rate, &error), GEN_OK)
        << error.message;
  }
  EXPECT_GT(cut, 5);
  gen_draft_free(alone);
  gen_draft_free(drafts);
  gen_model_free(model);
  gen_model_free(target);
}

// One text holds padding that the draft model lacks; the texts beside it have their guesses.
TEST(DraftEdges, ATokenThatTheDraftLacksCostsOthersNothing) {
  gen_error error = {};
  gen_model* model = model_with(0, 1);
  gen_model* target = model_with(kPadding, 2);
  gen_options* options = nullptr;
  gen_generator* generator = nullptr;
  gen_sampling* sampling = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set(options, "draft_policy", "always", &error), GEN_OK);
  ASSERT_EQ(gen_options_set_speculative_draft(options, model, 3, &error), GEN_OK);
  ASSERT_EQ(gen_create(target, options, &generator, &error), GEN_OK) << error.message;
  ASSERT_EQ(gen_sampling_new(&sampling, &error), GEN_OK);
  ASSERT_EQ(gen_sampling_set_max_new_tokens(sampling, 20, &error), GEN_OK);
  for (int32_t token = kTokens; token < kTokens + kPadding; ++token) {  // never drawn
    ASSERT_EQ(gen_sampling_set_logit_bias(sampling, token, -INFINITY, &error), GEN_OK);
  }
  const int32_t prompts[2][3] = {{3, kTokens + 2, 4}, {3, 5, 4}};
  gen_request* requests[2] = {};
  gen_result* results[2] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(gen_request_new(&requests[i], &error), GEN_OK);
    ASSERT_EQ(gen_request_set_prompt_tokens(requests[i], prompts[i], 3, &error), GEN_OK);
    ASSERT_EQ(gen_request_set_sampling(requests[i], sampling, &error), GEN_OK);
  }
  ASSERT_EQ(gen_batch_generate(generator, requests, 2, results, &error), GEN_OK) << error.message;
  for (int i = 0; i < 2; ++i) {
    int64_t drafted = -1;
    size_t said = 0;
    gen_result_tokens(results[i], &said);
    EXPECT_EQ(said, 20U);
    EXPECT_EQ(gen_result_usage(results[i], "drafted", &drafted, &error), GEN_OK);
    EXPECT_EQ(drafted > 20, i == 1) << drafted;
    gen_result_free(results[i]);
    gen_request_free(requests[i]);
  }
  gen_sampling_free(sampling);
  gen_options_free(options);
  gen_free(generator);
  gen_model_free(model);
  gen_model_free(target);
}

// Neither such a model nor its first layers, whichever way they are to draft; it may be a target.
TEST(DraftEdges, ARecurrentModelOnlyJudges) {
  gen_error error = {};
  test::TinyModelSpec spec;
  spec.architecture = "qwen35";
  spec.layers = 4;
  spec.vocab = kTokens;
  spec.context = kContext;
  test::TinyModel tiny(spec);
  test::set_tiny_vocabulary(&tiny.writer(), test::tiny_pieces(kTokens));
  const std::vector<std::byte> bytes = tiny.bytes();
  gen_model* recurrent = nullptr;
  ASSERT_EQ(gen_model_load_memory(bytes.data(), bytes.size(), nullptr, &recurrent, &error), GEN_OK);
  gen_model* plain = model_with(0, 1);
  gen_draft* drafts = nullptr;
  const auto refused = [&](gen_status status) {
    EXPECT_EQ(status, GEN_ERROR_UNSUPPORTED);
    EXPECT_NE(std::string(error.message).find("qwen35 has a state that cannot go back"),
              std::string::npos)
        << error.message;
    EXPECT_EQ(drafts, nullptr);
  };
  refused(gen_draft_new(recurrent, plain, nullptr, &drafts, &error));
  refused(gen_draft_new(recurrent, nullptr, nullptr, &drafts, &error));
  refused(gen_draft_new_self(recurrent, 2, nullptr, &drafts, &error));
  gen_options* options = nullptr;
  gen_generator* generator = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set(options, "self_draft", "2", &error), GEN_OK);
  refused(gen_create(recurrent, options, &generator, &error));
  ASSERT_EQ(gen_options_set(options, "self_draft", "0", &error), GEN_OK);
  ASSERT_EQ(gen_options_set_speculative_draft(options, recurrent, 3, &error), GEN_OK);
  refused(gen_create(plain, options, &generator, &error));
  gen_options_free(options);
  ASSERT_EQ(gen_draft_new(plain, recurrent, nullptr, &drafts, &error), GEN_OK) << error.message;
  double rate = -1;
  const int32_t text[] = {3, 4, 5};
  EXPECT_EQ(gen_draft_acceptance_rate(drafts, text, 3, 4, &rate, &error), GEN_OK) << error.message;
  EXPECT_GE(rate, 0.0);
  gen_draft_free(drafts);
  gen_model_free(plain);
  gen_model_free(recurrent);
}

// Whatever was asked before: a context that shifts would have room for it then.
TEST(DraftEdges, RefusesATextThatDoesNotFit) {
  gen_error error = {};
  gen_model* model = model_with(0, 1);
  gen_options* options = nullptr;
  gen_draft* drafts = nullptr;
  ASSERT_EQ(gen_options_new(&options, &error), GEN_OK);
  ASSERT_EQ(gen_options_set_context_policy(options, "shift", 2, &error), GEN_OK);
  ASSERT_EQ(gen_draft_new(model, model, options, &drafts, &error), GEN_OK) << error.message;
  gen_options_free(options);
  std::vector<int32_t> text(static_cast<size_t>(kContext) + 1);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i * i % kTokens);
  int32_t guesses[4];
  int32_t accepted = 0;
  int32_t correction = 0;
  size_t n = 0;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(
        gen_draft_generate(drafts, text.data(), text.size(), 4, guesses, nullptr, 4, &n, &error),
        GEN_ERROR_CONTEXT_FULL);
    EXPECT_EQ(gen_draft_verify(drafts, text.data(), text.size(), nullptr, 0, &accepted, &correction,
                               &error),
              GEN_ERROR_CONTEXT_FULL);
    // Two more tokens fill the context.
    const size_t most = static_cast<size_t>(kContext) - 2;
    EXPECT_EQ(gen_draft_generate(drafts, text.data(), most, 4, guesses, nullptr, 4, &n, &error),
              GEN_OK);
    EXPECT_EQ(n, 2U);
    EXPECT_EQ(
        gen_draft_verify(drafts, text.data(), most, guesses, n, &accepted, &correction, &error),
        GEN_OK);
    EXPECT_EQ(accepted, 2);
    EXPECT_EQ(correction, -1);
  }
  gen_draft_free(drafts);
  gen_model_free(model);
}

}  // namespace
}  // namespace gen

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the C tests of drafts: generators that always draft, their outputs, and custom
 * models. */
#ifndef GENERATE_TESTS_DRAFT_CALLS_H
#define GENERATE_TESTS_DRAFT_CALLS_H

#include "toy_model.h"

#define STORY_MODEL GEN_TEST_SOURCE_DIR "/examples/demo_model/story.gguf"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char kPrompt[] = "Once upon a time there was a dog. The dog ran. The dog ran. The dog";

static inline int64_t usage(const gen_result* result, const char* key) {
  int64_t value = -1;
  assert_ok(gen_result_usage(result, key, &value, &error), error);
  return value;
}

static inline gen_generator* generator_with(const gen_model* model, gen_options* options) {
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  return generator;
}

/* With all that drafters have, whatever it costs: how much that is depends on no clock. */
static inline gen_options* options_new(void) {
  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  return options;
}

static inline gen_result* said_by(gen_generator* generator, const gen_sampling* sampling) {
  gen_result* result = NULL;
  assert_ok(gen_generate(generator, kPrompt, strlen(kPrompt), sampling, &result, &error), error);
  return result;
}

static inline void assert_same(const gen_result* got, const gen_result* want) {
  size_t n = 0, m = 0;
  const int32_t* tokens = gen_result_tokens(got, &n);
  const int32_t* wanted = gen_result_tokens(want, &m);
  assert_int_equal(n, m);
  assert_memory_equal(tokens, wanted, n * sizeof *tokens);
  const float* logprobs = gen_result_logprobs(got, &n);
  assert_memory_equal(logprobs, gen_result_logprobs(want, &m), n * sizeof *logprobs);
  assert_string_equal(gen_result_text(got, NULL), gen_result_text(want, NULL));
  assert_int_equal(gen_result_finish_reason(got), gen_result_finish_reason(want));
}

static inline gen_model* toy_of(struct toy* toy, gen_forward* forward, int32_t vocab,
                                int goes_back) {
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  memset(forward, 0, sizeof *forward);
  forward->struct_size = sizeof *forward;
  forward->user = toy;
  forward->forward = toy_forward;
  toy->stateless = goes_back;
  if (!goes_back) {
    forward->state_new = toy_state_new;
    forward->state_free = toy_state_free;
  }
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, vocab, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, TOY_CONTEXT, &error), error);
  assert_ok(gen_model_new_custom(forward, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

#endif

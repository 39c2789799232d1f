/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the C tests of heads from files: the bundled model with its heads, and without. */
#ifndef GENERATE_TESTS_EAGLE_CALLS_H
#define GENERATE_TESTS_EAGLE_CALLS_H

#include "draft_calls.h"

#define EAGLE3 GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle3.gguf"
#define EAGLE_MLP GEN_TEST_SOURCE_DIR "/examples/demo_model/eagle.gguf"
#define NOWHERE "/no/such/head.gguf"

static const char* const kHeads[] = {EAGLE3, EAGLE_MLP};
enum { HEADS = 2 };
static gen_model* model;
static gen_generator* plain;
static gen_generator* drafting[HEADS];

static inline gen_generator* generator_of(const char* path) {
  gen_options* options = options_new();
  assert_ok(gen_options_set_eagle(options, path, &error), error);
  return generator_with(model, options);
}

static inline int begin(void** state) {
  (void)state;
  assert_ok(gen_model_load(STORY_MODEL, NULL, &model, &error), error);
  plain = generator_with(model, NULL);
  for (int i = 0; i < HEADS; ++i) drafting[i] = generator_of(kHeads[i]);
  return 0;
}
static inline int end(void** state) {
  (void)state;
  gen_free(plain);
  for (int i = 0; i < HEADS; ++i) gen_free(drafting[i]);
  gen_model_free(model);
  return 0;
}

static inline gen_sampling* settings(int32_t tokens, double temperature) {
  gen_sampling* sampling = greedy(tokens);
  assert_ok(gen_sampling_set_temperature(sampling, temperature, &error), error);
  assert_ok(gen_sampling_set_logprobs(sampling, 2, &error), error);
  return sampling;
}

static inline void assert_enabled(const gen_generator* generator, int enabled, const char* path) {
  char text[512];
  size_t n = 0;
  assert_int_equal(gen_generator_eagle_enabled(generator), enabled);
  assert_ok(gen_generator_eagle_path(generator, NULL, 0, &n, &error), error);
  assert_int_equal(n, strlen(path));
  assert_ok(gen_generator_eagle_path(generator, text, sizeof text, &n, &error), error);
  assert_string_equal(text, path);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a token of a pulled stream costs from C, over a model that does nothing: what the same program in another language takes
 * above it is that binding's own cost. Prints nanoseconds for each token, the least of several runs.
 *   bindings_cost <story.gguf> [tokens]
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <generate/generate.h>

extern const gen_forward test_model_nothing;

static gen_error error;

static void check(gen_status status) {
  if (status == GEN_OK) return;
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  const int32_t tokens = argc > 2 ? atoi(argv[2]) : 20000;
  gen_model *story, *model;
  gen_model_config *config;
  gen_generator *generator;
  gen_sampling *sampling;
  check(gen_model_load(argv[1], NULL, &story, &error));
  check(gen_model_config_new(&config, &error));
  check(gen_model_config_set_vocab_size(config, 4096, &error));
  check(gen_model_config_set_max_seq_len(config, 1 << 20, &error));
  check(gen_model_new_custom(&test_model_nothing, config, gen_model_tokenizer(story), &model, &error));
  check(gen_create(model, NULL, &generator, &error));
  check(gen_sampling_new(&sampling, &error));
  check(gen_sampling_set_temperature(sampling, 0, &error));
  check(gen_sampling_set_max_new_tokens(sampling, tokens, &error));
  double best = 0;
  for (int run = 0; run < 5; ++run) {
    gen_session *session;
    gen_stream *stream;
    check(gen_session_new(generator, &session, &error));
    check(gen_stream_open(session, "a", 1, sampling, &stream, &error));
    const gen_token *token;
    check(gen_stream_next(stream, &token, &error));
    const double begin = now();
    int32_t n = 0;
    for (;;) {
      check(gen_stream_next(stream, &token, &error));
      if (token == NULL) break;
      ++n;
    }
    const double each = (now() - begin) / n;
    if (run == 0 || each < best) best = each;
    gen_stream_close(stream);
    gen_session_free(session);
  }
  printf("C: %.0f ns a token\n", best);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_model_config_free(config);
  gen_model_free(model);
  gen_model_free(story);
  return 0;
}

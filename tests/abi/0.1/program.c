/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of the time of generate.h beside it, which it is compiled with; it must run with every later library of the same
 * soname. Uses what depends on sizes and numbers: tables, views, statuses, events.
 *   program <story.gguf>
 */
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: %s\n", __LINE__, error.message);  \
      exit(1);                                                    \
    }                                                             \
  } while (0)

static gen_error error;
static double counted;

static gen_status count_up(void *user, const gen_forward_batch *batch, float *logits, float *features, gen_error *err) {
  (void)features;
  (void)err;
  *(int *)user += 1;
  for (int32_t row = 0; row < batch->n_rows; ++row) {
    if (!batch->wants_logits[row]) continue;
    memset(logits, 0, 10 * sizeof *logits);
    logits[(batch->tokens[row] + 1) % 10] = 1;
    logits += 10;
  }
  return GEN_OK;
}

static void count(void *user, const char *name, double value) {
  (void)user;
  if (strcmp(name, "completion_tokens") == 0) counted += value;
}

static int see(void *user, const gen_token *token) {
  char *text = user;
  if (token->text_len > 0) strncat(text, token->text, token->text_len);
  return 0;
}

int main(int argc, char **argv) {
  gen_model *model;
  gen_options *options;
  gen_generator *generator;
  gen_session *session;
  gen_sampling *sampling;
  gen_result *result, *results[2];
  CHECK(argc == 2 && gen_abi_version() == GEN_ABI_VERSION);
  CHECK(gen_model_load("/no/such/file", NULL, &model, &error) == GEN_ERROR_IO && error.code == GEN_ERROR_IO);
  CHECK(gen_model_load(argv[1], NULL, &model, &error) == GEN_OK);
  const gen_metrics_sink sink = {.struct_size = sizeof sink, .counter_add = count};
  CHECK(gen_options_new(&options, &error) == GEN_OK);
  CHECK(gen_options_set_metrics(options, &sink, &error) == GEN_OK);
  CHECK(gen_options_set_kv_dtype(options, "fp16", &error) == GEN_OK);
  CHECK(gen_create(model, options, &generator, &error) == GEN_OK);
  CHECK(gen_sampling_new(&sampling, &error) == GEN_OK);
  CHECK(gen_sampling_set_temperature(sampling, 0, &error) == GEN_OK);
  CHECK(gen_sampling_set_max_new_tokens(sampling, 12, &error) == GEN_OK);

  char pieces[1000] = "";
  CHECK(gen_generate_stream(generator, "Once upon a time", GEN_NUL_TERMINATED, sampling, see, pieces, &result, &error) ==
        GEN_OK);
  size_t n;
  CHECK(strcmp(gen_result_text(result, &n), pieces) == 0 && n == strlen(pieces) && n > 0);
  CHECK(gen_result_finish_reason(result) == GEN_FINISH_LENGTH && counted == 12);
  gen_result_free(result);

  gen_stream *stream;
  const gen_token *token;
  char pulled[1000] = "";
  CHECK(gen_session_new(generator, &session, &error) == GEN_OK);
  CHECK(gen_stream_open(session, "Once upon a time", 16, sampling, &stream, &error) == GEN_OK);
  for (;;) {
    CHECK(gen_stream_next(stream, &token, &error) == GEN_OK);
    if (token == NULL) break;
    see(pulled, token);
  }
  CHECK(strcmp(pulled, pieces) == 0);
  CHECK(gen_session_append(session, "x", 1, &error) == GEN_ERROR_BUSY);
  gen_stream_close(stream);

  gen_request *request;
  CHECK(gen_request_new(&request, &error) == GEN_OK);
  CHECK(gen_request_set_prompt(request, "Once upon a time", 16, &error) == GEN_OK);
  CHECK(gen_request_set_sampling(request, sampling, &error) == GEN_OK);
  const gen_request *const both[] = {request, request};
  CHECK(gen_batch_generate(generator, both, 2, results, &error) == GEN_OK);
  for (int i = 0; i < 2; ++i) {
    CHECK(strcmp(gen_result_text(results[i], NULL), pieces) == 0);
    gen_result_free(results[i]);
  }
  gen_request_free(request);
  gen_session_free(session);
  gen_free(generator);

  int calls = 0;
  gen_model_config *config;
  const gen_forward forward = {.struct_size = sizeof forward, .user = &calls, .forward = count_up};
  const int32_t begin[] = {0, 3};
  gen_model *own;
  CHECK(gen_model_config_new(&config, &error) == GEN_OK);
  CHECK(gen_model_config_set_vocab_size(config, 10, &error) == GEN_OK);
  CHECK(gen_model_config_set_max_seq_len(config, 64, &error) == GEN_OK);
  CHECK(gen_model_new_custom(&forward, config, NULL, &own, &error) == GEN_OK);
  CHECK(gen_create(own, NULL, &generator, &error) == GEN_OK);
  CHECK(gen_session_new(generator, &session, &error) == GEN_OK);
  CHECK(gen_session_append_tokens(session, begin, 2, &error) == GEN_OK);
  CHECK(gen_session_generate(session, "", 0, sampling, &result, &error) == GEN_OK);
  const int32_t *said = gen_result_tokens(result, &n);
  CHECK(n == 12 && said[0] == 4 && said[11] == 5 && calls > 0);
  gen_result_free(result);

  kv_cache *cache;
  const float rows[] = {1, 2, 3, 4};
  kv_cache_span span = {.struct_size = sizeof span};
  CHECK(kv_cache_new(1, 8, &cache, &error) == GEN_OK);
  CHECK(kv_cache_update(cache, 0, rows, rows, 1, 2, 2, &error) == GEN_OK);
  CHECK(kv_cache_view(cache, 0, &span, &error) == GEN_OK);
  CHECK(span.type == KV_CACHE_TYPE_F32 && span.seq == 2 && span.k_dim == 2 && memcmp(span.k, rows, sizeof rows) == 0);
  kv_cache_free(cache);

  gen_session_free(session);
  gen_free(generator);
  gen_model_free(own);
  gen_model_config_free(config);
  gen_sampling_free(sampling);
  gen_options_free(options);
  gen_model_free(model);
  return 0;
}

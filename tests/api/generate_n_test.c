/* SPDX-License-Identifier: Apache-2.0 */
/* gen_generate_n beside gen_generate with each seed, and the alternatives in pieces. */
#include "api_test.h"

#define N GEN_NUL_TERMINATED
#define MOST 8

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static gen_sampling* lively(int32_t logprobs) {
  gen_sampling* sampling = greedy(14);
  assert_ok(gen_sampling_set_temperature(sampling, 1.3, &error), error);
  assert_ok(gen_sampling_set_seed(sampling, 40, &error), error);
  assert_ok(gen_sampling_set_logprobs(sampling, logprobs, &error), error);
  return sampling;
}

/* Each text by a call of its own, and the mean log-probability of its tokens. */
static void alone(gen_generator* generator, const char* prompt, char texts[MOST][256],
                  double means[MOST]) {
  for (int i = 0; i < MOST; ++i) {
    gen_sampling* sampling = lively(0);
    gen_result* result = NULL;
    assert_ok(gen_sampling_set_seed(sampling, 40 + (uint64_t)i, &error), error);
    assert_ok(gen_generate(generator, prompt, N, sampling, &result, &error), error);
    snprintf(texts[i], 256, "%s", gen_result_text(result, NULL));
    size_t n = 0;
    const float* logprobs = gen_result_logprobs(result, &n);
    means[i] = 0;
    for (size_t t = 0; t < n; ++t) means[i] += (double)logprobs[t] / (double)n;
    gen_result_free(result);
    gen_sampling_free(sampling);
  }
}

static void texts_are_those_of_each_seed(void** state) {
  (void)state;
  static const char* const kinds[][2] = {
      {"kv_dtype", "fp32"}, {"kv_dtype", "q4"}, {"paged_kv", "8,4"}};
  gen_model* model = load_draft();
  for (size_t kind = 0; kind < 3; ++kind) {
    gen_options* options = NULL;
    gen_generator* generator = NULL;
    assert_ok(gen_options_new(&options, &error), error);
    assert_ok(gen_options_set(options, kinds[kind][0], kinds[kind][1], &error), error);
    assert_ok(gen_create(model, options, &generator, &error), error);
    char texts[MOST][256];
    double means[MOST];
    gen_result* results[MOST];
    alone(generator, "Once upon a time there was", texts, means);
    gen_sampling* sampling = lively(-1);
    assert_ok(
        gen_generate_n(generator, "Once upon a time there was", N, sampling, 4, 4, results, &error),
        error);
    int distinct = 0;
    int64_t prompt = 0;
    for (int i = 0; i < 4; ++i) {
      size_t n = 0;
      assert_string_equal(gen_result_text(results[i], NULL), texts[i]);
      assert_null(gen_result_error(results[i]));
      gen_result_logprobs(results[i], &n);
      assert_int_equal(n, 0);
      assert_ok(gen_result_usage(results[i], "prompt", &prompt, &error), error);
      assert_true(prompt > 5);
      distinct += i > 0 && strcmp(texts[i], texts[0]) != 0;
      gen_result_free(results[i]);
    }
    assert_true(distinct > 0);

    /* The best three of all, by their own log-probabilities. */
    for (int asked = -1; asked < 3; asked += 3) {
      assert_ok(gen_sampling_set_logprobs(sampling, asked, &error), error);
      assert_ok(gen_generate_n(generator, "Once upon a time there was", N, sampling, 3, MOST,
                               results, &error),
                error);
      int taken[MOST] = {0};
      for (int i = 0; i < 3; ++i) {
        int best = -1;
        for (int j = 0; j < MOST; ++j) {
          if (!taken[j] && (best < 0 || means[j] > means[best])) best = j;
        }
        taken[best] = 1;
        assert_string_equal(gen_result_text(results[i], NULL), texts[best]);
        size_t n = 0;
        gen_result_logprobs(results[i], &n);
        assert_int_equal(n > 0, asked >= 0);
        gen_result_free(results[i]);
      }
    }
    gen_sampling_free(sampling);
    gen_free(generator);
    gen_options_free(options);
  }
  gen_model_free(model);
}

static gen_status fault;

static gen_status say_five(void* user, const gen_forward_batch* batch, float* logits,
                           float* features, gen_error* e) {
  (void)user;
  (void)features;
  (void)e;
  for (int32_t i = 0; i < batch->n_logits * 4096; ++i) logits[i] = (float)(i % 4096 == 5);
  return fault;
}

static void what_is_refused(void** state) {
  (void)state;
  gen_model* file = load_draft();
  gen_generator* generator = NULL;
  assert_ok(gen_create(file, NULL, &generator, &error), error);
  gen_result* results[MOST] = {NULL};
  gen_sampling* sampling = greedy(3);
  const int32_t wrong[][2] = {{0, 1}, {-1, 4}, {3, 2}, {1, 129}, {1, -1}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    results[0] = (gen_result*)&error;
    assert_fails(
        gen_generate_n(generator, "Once", N, sampling, wrong[i][0], wrong[i][1], results, &error),
        bad, "best_of", error);
    if (wrong[i][0] > 0) assert_null(results[0]);
  }
  assert_fails(gen_generate_n(NULL, "Once", N, sampling, 1, 1, results, &error), bad, "generator",
               error);
  assert_fails(gen_generate_n(generator, "Once", N, sampling, 1, 1, NULL, &error), bad, "results",
               error);
  assert_fails(gen_generate_n(generator, NULL, 3, sampling, 1, 1, results, &error), bad, "prompt",
               error);
  assert_fails(gen_generate_n(generator, "a\xff", 2, sampling, 1, 1, results, &error),
               GEN_ERROR_TOKENIZER, "1", error);
  char* const much = malloc(60001);
  assert_non_null(much);
  for (int i = 0; i < 60000; i += 3) memcpy(much + i, "ox ", 4);
  assert_fails(gen_generate_n(generator, much, N, sampling, 1, 1, results, &error),
               GEN_ERROR_CONTEXT_FULL, "context", error);
  free(much);
  gen_cancel* cancel = NULL;
  assert_ok(gen_cancel_new(&cancel, &error), error);
  gen_cancel_fire(cancel);
  assert_ok(gen_sampling_set_cancel(sampling, cancel, &error), error);
  assert_fails(gen_generate_n(generator, "Once upon", N, sampling, 2, 2, results, &error),
               GEN_ERROR_CANCELLED, "cancel", error);
  assert_ok(gen_sampling_set_cancel(sampling, NULL, &error), error);
  gen_cancel_free(cancel);
  /* Nothing to go on from is said by each result, as in a batch. */
  assert_ok(gen_generate_n(generator, "", 0, sampling, 2, 2, results, &error), error);
  for (int i = 0; i < 2; ++i) {
    assert_non_null(gen_result_error(results[i]));
    gen_result_free(results[i]);
  }
  gen_free(generator);

  static const gen_status statuses[] = {GEN_ERROR_MODEL, GEN_ERROR_IO, GEN_ERROR_FORMAT,
                                        GEN_ERROR_POOL_EXHAUSTED};
  const gen_forward table = {.struct_size = sizeof table, .forward = say_five};
  gen_model_config* config = NULL;
  gen_model* own = NULL;
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, 4096, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, 400, &error), error);
  assert_ok(gen_model_new_custom(&table, config, gen_model_tokenizer(file), &own, &error), error);
  assert_ok(gen_create(own, NULL, &generator, &error), error);
  for (size_t i = 0; i < 4; ++i) {
    fault = statuses[i];
    assert_fails(gen_generate_n(generator, "Once upon a time", N, sampling, 2, 3, results, &error),
                 fault, "", error);
    assert_null(results[0]);
  }
  fault = GEN_OK;
  assert_ok(gen_generate_n(generator, "Once upon a time", N, sampling, 2, 3, results, &error),
            error);
  assert_string_equal(gen_result_text(results[0], NULL), gen_result_text(results[1], NULL));
  for (int i = 0; i < 2; ++i) gen_result_free(results[i]);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_model_free(own);
  gen_model_config_free(config);
  gen_model_free(file);
}

/* --- alternatives beside each piece */

typedef struct {
  int32_t ids[256];
  float logprobs[256];
  size_t n;
} Seen;

static int note(void* user, const gen_token* token) {
  Seen* seen = user;
  assert_true(token->struct_size >= sizeof *token);
  for (int32_t i = 0; i < token->top_count; ++i) {
    seen->ids[seen->n] = token->top[i].id;
    seen->logprobs[seen->n++] = token->top[i].logprob;
  }
  if (token->done) assert_int_equal(token->top_count, 0);
  return 0;
}

static void pieces_have_alternatives(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, NULL, &generator, &error), error);
  for (int32_t asked = -1; asked < 4; ++asked) {
    gen_sampling* sampling = lively(asked);
    gen_result* result = NULL;
    Seen seen = {.n = 0};
    assert_ok(gen_generate_stream(generator, "Once", 4, sampling, note, &seen, &result, &error),
              error);
    size_t tokens = 0;
    gen_result_tokens(result, &tokens);
    assert_int_equal(seen.n, asked > 0 ? tokens * (size_t)asked : 0);
    for (size_t i = 0; i < seen.n; ++i) {
      const int32_t* ids = NULL;
      const float* logprobs = NULL;
      const size_t at = i / (size_t)asked;
      assert_int_equal(gen_result_top_logprobs(result, at, &ids, &logprobs), asked);
      assert_int_equal(seen.ids[i], ids[i % (size_t)asked]);
      assert_true(seen.logprobs[i] == logprobs[i % (size_t)asked]);
    }
    gen_result_free(result);
    gen_sampling_free(sampling);
  }
  gen_free(generator);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_those_of_each_seed),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(pieces_have_alternatives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

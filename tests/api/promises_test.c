/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises of the headers that are about more than one function: what options do not go together,
 * results that nobody wants, flags that are freed early, sizes that are asked for before anything
 * runs.
 */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char kText[] = "Once upon a time there was a little girl";

/* `settings`: keys and values in turn, ended by NULL. */
static gen_status create(const char* const* settings, gen_generator** out) {
  gen_model* model = load_draft();
  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  for (; *settings != NULL; settings += 2) {
    assert_ok(gen_options_set(options, settings[0], settings[1], &error), error);
  }
  const gen_status status = gen_create(model, options, out, &error);
  gen_options_free(options);
  gen_model_free(model);
  return status;
}

/* Options that do not go together are refused by name, and in pairs that do they are not. */
static void options_that_exclude_each_other(void** state) {
  (void)state;
  static const struct {
    const char* settings[7];
    const char* named[2];
  } pairs[] = {
      {{"compressed_kv", "8", "kv_dtype", "fp16", NULL}, {"compressed_kv", "kv_dtype"}},
      {{"compressed_kv", "8", "kv_key_form", "hadamard", NULL}, {"compressed_kv", "kv_dtype"}},
      {{"compressed_kv", "8", "paged_kv", "8", NULL}, {"compressed_kv", "paged_kv"}},
      {{"compressed_kv", "8", "tiered_kv", "64", NULL}, {"compressed_kv", "tiered_kv"}},
      {{"paged_kv", "8", "tiered_kv", "64", NULL}, {"paged_kv", "tiered_kv"}},
      {{"prefix_cache", "8", NULL}, {"prefix_cache", "paged_kv"}},
      {{"prefix_cache", "8", "compressed_kv", "8", NULL}, {"prefix_cache", "paged_kv"}},
      {{"prefix_cache", "8", "tiered_kv", "64", NULL}, {"prefix_cache", "paged_kv"}},
      {{"context_policy", "shift,1000000", NULL}, {"context_policy", "1000000"}},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    gen_generator* generator = (gen_generator*)&error;
    assert_fails(create(pairs[i].settings, &generator), bad, pairs[i].named[0], error);
    assert_non_null(strstr(error.message, pairs[i].named[1]));
    assert_null(generator);
  }
  static const char* const good[][7] = {
      {"paged_kv", "8", "kv_dtype", "q4", "prefix_cache", "8", NULL},
      {"tiered_kv", "64", "kv_dtype", "fp16", NULL},
      {"compressed_kv", "8", "kv_key_form", "best", "context_policy", "shift", NULL},
      {"paged_kv", "8", "kv_dtype", "q4", "kv_key_form", "hadamard", NULL},
      {"fairness", "0", "max_batch", "3", "max_queue", "4", NULL},
      {"state_snapshot_every", "0", "state_snapshot_budget", "0", NULL},
      {"state_snapshot_budget", "2147483647", NULL},
  };
  for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
    gen_generator* generator = NULL;
    assert_ok(create(good[i], &generator), error);
    gen_free(generator);
  }
}

static void threads_of_ones_own_or_a_pool(void** state) {
  (void)state;
  gen_model_options* options = NULL;
  gen_thread_pool* pool = NULL;
  gen_model* model = (gen_model*)&error;
  assert_ok(gen_model_options_new(&options, &error), error);
  assert_ok(gen_thread_pool_new(2, NULL, 0, &pool, &error), error);
  assert_ok(gen_model_options_set_threads(options, 3, &error), error);
  assert_ok(gen_model_options_set_thread_pool(options, pool, &error), error);
  assert_fails(gen_model_load(DRAFT_MODEL, options, &model, &error), bad,
               "threads 3 and a thread_pool", error);
  assert_null(model);
  assert_ok(gen_model_options_set_thread_pool(options, NULL, &error), error);
  assert_ok(gen_model_load(DRAFT_MODEL, options, &model, &error), error);
  gen_model_free(model);
  gen_model_options_free(options);
  gen_thread_pool_free(pool);
}

/* A call whose result nobody wants does what it does otherwise. */
static void results_may_be_left_out(void** state) {
  gen_generator* generator = *state;
  gen_sampling* sampling = greedy(7);
  gen_session* session = NULL;
  gen_session* other = NULL;
  gen_result* result = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_new(generator, &other, &error), error);
  assert_ok(gen_session_generate(session, kText, GEN_NUL_TERMINATED, sampling, NULL, &error),
            error);
  assert_ok(gen_session_generate(other, kText, GEN_NUL_TERMINATED, sampling, &result, &error),
            error);
  int32_t tokens[2][100];
  size_t n[2];
  assert_ok(gen_session_tokens(session, tokens[0], 100, &n[0], &error), error);
  assert_ok(gen_session_tokens(other, tokens[1], 100, &n[1], &error), error);
  assert_int_equal(n[0], n[1]);
  assert_memory_equal(tokens[0], tokens[1], n[0] * sizeof(int32_t));
  assert_ok(gen_generate(generator, kText, GEN_NUL_TERMINATED, sampling, NULL, &error), error);
  gen_session_cancel(session);
  assert_fails(gen_session_generate(session, "", 0, sampling, NULL, &error), GEN_ERROR_CANCELLED,
               "cancelled", error);
  assert_fails(gen_generate(generator, "", 0, sampling, NULL, &error), bad, "no tokens", error);
  gen_result_free(result);
  gen_session_free(session);
  gen_session_free(other);
  gen_sampling_free(sampling);
}

/* Settings keep a flag that they were given, raised or not. */
static void flags_may_be_freed_early(void** state) {
  for (int raised = 0; raised < 2; ++raised) {
    gen_cancel* cancel = NULL;
    gen_session* session = NULL;
    gen_sampling* sampling = greedy(3);
    assert_ok(gen_cancel_new(&cancel, &error), error);
    assert_ok(gen_session_new(*state, &session, &error), error);
    assert_ok(gen_sampling_set_cancel(sampling, cancel, &error), error);
    assert_ok(gen_session_set_cancel(session, cancel, &error), error);
    if (raised) gen_cancel_fire(cancel);
    gen_cancel_free(cancel);
    const gen_status wanted = raised ? GEN_ERROR_CANCELLED : GEN_OK;
    assert_int_equal(gen_generate(*state, kText, GEN_NUL_TERMINATED, sampling, NULL, NULL), wanted);
    assert_int_equal(gen_session_append(session, kText, GEN_NUL_TERMINATED, NULL), wanted);
    gen_sampling_free(sampling);
    gen_session_free(session);
  }
}

/* Asking how many scores there will be, and a buffer too small for them, run nothing. */
static void sizes_of_scores_need_no_pass(void** state) {
  (void)state;
  gen_metrics_memory* memory = NULL;
  gen_model* model = load_draft();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  assert_ok(gen_metrics_memory_new(&memory, &error), error);
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_metrics(options, gen_metrics_memory_sink(memory), &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  for (int filled = 0; filled < 2; ++filled) {
    const double before = gen_metrics_memory_value(memory, "steps");
    float scores[100];
    size_t asked = 0;
    size_t n = 0;
    assert_ok(gen_session_score(session, kText, GEN_NUL_TERMINATED, NULL, 0, &asked, &error),
              error);
    assert_true(asked > 5 && asked < 100);
    assert_fails(
        gen_session_score(session, kText, GEN_NUL_TERMINATED, scores, asked - 1, &n, &error),
        GEN_ERROR_OUT_OF_RANGE, "do not fit", error);
    assert_int_equal(n, asked);
    assert_fails(gen_session_score(session, "\xff", 1, NULL, 0, &n, &error), GEN_ERROR_TOKENIZER,
                 "byte", error);
    assert_int_equal(n, 0);
    assert_true(gen_metrics_memory_value(memory, "steps") == before);
    assert_ok(gen_session_score(session, kText, GEN_NUL_TERMINATED, scores, asked, &n, &error),
              error);
    assert_int_equal(n, asked);
    assert_true(gen_metrics_memory_value(memory, "steps") > before);
    assert_ok(gen_session_append(session, "A puppy", GEN_NUL_TERMINATED, &error), error);
  }
  gen_session_free(session);
  gen_free(generator);
  gen_options_free(options);
  gen_model_free(model);
  gen_metrics_memory_free(memory);
}

static int make(void** state) {
  const char* const none[] = {NULL};
  gen_generator* generator = NULL;
  if (create(none, &generator) != GEN_OK) return -1;
  *state = generator;
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_that_exclude_each_other),
      cmocka_unit_test(threads_of_ones_own_or_a_pool),
      cmocka_unit_test(results_may_be_left_out),
      cmocka_unit_test(flags_may_be_freed_early),
      cmocka_unit_test(sizes_of_scores_need_no_pass),
  };
  return cmocka_run_group_tests(tests, make, free_draft_generator);
}

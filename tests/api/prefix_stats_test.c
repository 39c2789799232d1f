/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a generator's prefix cache, which must be those of results and metrics; clearing
 * it; and fairness, the bound of what priorities may do. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char kText[] = "Once upon a time there was a little girl who lived by the sea.";

static int64_t stat(const gen_generator* generator, const char* key) {
  int64_t value = -1;
  assert_ok(gen_generator_prefix_stats(generator, key, &value, &error), error);
  return value;
}

/* `settings`: keys and values in turn, ended by NULL. */
static gen_generator* make(const char* const* settings, const gen_metrics_sink* sink) {
  gen_model* model = load_draft();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  for (; *settings != NULL; settings += 2) {
    assert_ok(gen_options_set(options, settings[0], settings[1], &error), error);
  }
  assert_ok(gen_options_set_metrics(options, sink, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  gen_model_free(model);
  return generator;
}

/* Continues the text; how many tokens of it were there already. */
static int64_t cached(gen_generator* generator, const char* text) {
  gen_sampling* sampling = greedy(8);
  gen_result* result = NULL;
  int64_t value = -1;
  assert_ok(gen_generate(generator, text, GEN_NUL_TERMINATED, sampling, &result, &error), error);
  assert_ok(gen_result_usage(result, "prompt_cached", &value, &error), error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  return value;
}

static void numbers_are_those_of_results(void** state) {
  (void)state;
  gen_metrics_memory* memory = NULL;
  assert_ok(gen_metrics_memory_new(&memory, &error), error);
  const char* const settings[] = {"paged_kv", "8,4", "prefix_cache", "64", NULL};
  gen_generator* generator = make(settings, gen_metrics_memory_sink(memory));
  static const char* const keys[] = {"lookups", "hits", "tokens", "blocks", "evictions"};
  for (int i = 0; i < 5; ++i) assert_int_equal(stat(generator, keys[i]), 0);

  assert_int_equal(cached(generator, kText), 0);
  assert_int_equal(stat(generator, "lookups"), 1);
  assert_int_equal(stat(generator, "hits"), 0);
  const int64_t blocks = stat(generator, "blocks");
  assert_true(blocks > 0 && blocks <= 64);
  const int64_t found = cached(generator, kText);
  assert_true(found > 0);
  assert_int_equal(stat(generator, "lookups"), 2);
  assert_int_equal(stat(generator, "hits"), 1);
  assert_int_equal(stat(generator, "tokens"), found);
  assert_int_equal(stat(generator, "evictions"), 0);

  /* Cleared: nothing is found again, and nothing counts as evicted; a session keeps what it has. */
  gen_session* session = NULL;
  assert_ok(gen_session_new(generator, &session, &error), error);
  assert_ok(gen_session_append(session, kText, GEN_NUL_TERMINATED, &error), error);
  const int64_t hits = stat(generator, "hits");
  const int64_t tokens = stat(generator, "tokens");
  assert_ok(gen_generator_prefix_clear(generator, &error), error);
  assert_int_equal(stat(generator, "blocks"), 0);
  assert_int_equal(stat(generator, "evictions"), 0);
  assert_int_equal(cached(generator, kText), 0);
  assert_int_equal(stat(generator, "hits"), hits);
  assert_int_equal(stat(generator, "tokens"), tokens);
  assert_ok(gen_generator_prefix_clear(generator, &error), error);
  assert_ok(gen_generator_prefix_clear(generator, &error), error);
  gen_sampling* sampling = greedy(8);
  gen_result* from_session = NULL;
  gen_result* fresh = NULL;
  assert_ok(gen_session_generate(session, "", 0, sampling, &from_session, &error), error);
  assert_ok(gen_generate(generator, kText, GEN_NUL_TERMINATED, sampling, &fresh, &error), error);
  assert_string_equal(gen_result_text(from_session, NULL), gen_result_text(fresh, NULL));
  gen_result_free(from_session);
  gen_result_free(fresh);
  gen_session_free(session);
  gen_sampling_free(sampling);

  assert_int_equal(stat(generator, "lookups"),
                   (int64_t)gen_metrics_memory_value(memory, "prefix_lookups"));
  assert_int_equal(stat(generator, "hits"),
                   (int64_t)gen_metrics_memory_value(memory, "prefix_hits"));
  assert_int_equal(stat(generator, "tokens"),
                   (int64_t)gen_metrics_memory_value(memory, "prompt_cached_tokens"));
  gen_free(generator);
  gen_metrics_memory_free(memory);
}

static void evictions_are_counted(void** state) {
  (void)state;
  const char* const settings[] = {"paged_kv", "8,4", "prefix_cache", "2", NULL};
  gen_generator* generator = make(settings, NULL);
  cached(generator, kText);
  cached(generator, "Where is the puppy that ran away from home on a rainy day?");
  assert_int_equal(stat(generator, "blocks"), 2);
  assert_true(stat(generator, "evictions") > 0);
  gen_free(generator);
}

static void what_is_refused(void** state) {
  (void)state;
  const char* const none[] = {"paged_kv", "8,4", NULL};
  const char* const some[] = {"paged_kv", "8,4", "prefix_cache", "8", NULL};
  gen_generator* without = make(none, NULL);
  gen_generator* with = make(some, NULL);
  int64_t value = 7;
  assert_fails(gen_generator_prefix_stats(without, "hits", &value, &error), GEN_ERROR_STATE,
               "prefix_cache", error);
  assert_int_equal(value, 0);
  assert_fails(gen_generator_prefix_stats(with, "hit", &value, &error), bad,
               "\"hit\" (lookups, hits, tokens", error);
  assert_fails(gen_generator_prefix_stats(with, NULL, &value, &error), bad, "key", error);
  assert_fails(gen_generator_prefix_stats(with, "hits", NULL, &error), bad, "value", error);
  assert_fails(gen_generator_prefix_stats(NULL, "hits", &value, &error), bad, "generator", error);
  assert_fails(gen_generator_prefix_clear(without, &error), GEN_ERROR_STATE, "prefix_cache", error);
  assert_fails(gen_generator_prefix_clear(NULL, &error), bad, "generator", error);
  gen_free(with);
  gen_free(without);
}

/* --- fairness
 * -------------------------------------------------------------------------------------- */

static const char kLong[] =
    "Once upon a time there was a little girl who lived by the sea. She had a small dog and a red "
    "ball. Every day they "
    "went to the park to play with the other children, and the sun was warm.";

struct order {
  int n;
  size_t indices[200];
};

static int note(void* user, size_t index, const gen_token* token) {
  struct order* order = user;
  (void)token;
  if (order->n < 200) order->indices[order->n++] = index;
  return 0;
}

/*
 * Two prompts of `*steps` chunks each, of which a step runs one; request 0 has no priority, request
 * 1 has, and says a token a step once its prompt is through. How many pieces 1 had before 0's
 * first.
 */
static int before_the_first(const char* fairness, int* steps) {
  const char* const settings[] = {"prefill_chunk", "2", "fairness", fairness, NULL};
  gen_generator* generator = make(settings, NULL);
  gen_sampling* sampling = greedy(60);
  assert_ok(gen_sampling_set_ignore_eos(sampling, 1, &error), error);
  gen_request* requests[2];
  gen_result* results[2];
  for (int i = 0; i < 2; ++i) {
    assert_ok(gen_request_new(&requests[i], &error), error);
    assert_ok(gen_request_set_prompt(requests[i], kLong, GEN_NUL_TERMINATED, &error), error);
    assert_ok(gen_request_set_sampling(requests[i], sampling, &error), error);
    assert_ok(gen_request_set_priority(requests[i], i, &error), error);
  }
  struct order order = {0};
  assert_ok(gen_batch_generate_stream(generator, (const gen_request* const*)requests, 2, note,
                                      &order, results, &error),
            error);
  assert_string_equal(gen_result_text(results[0], NULL), gen_result_text(results[1], NULL));
  int64_t prompt = 0;
  assert_ok(gen_result_usage(results[0], "prompt", &prompt, &error), error);
  *steps = (int)prompt / 2;
  int before = 0;
  while (before < order.n && order.indices[before] != 0) ++before;
  for (int i = 0; i < 2; ++i) {
    gen_request_free(requests[i]);
    gen_result_free(results[i]);
  }
  gen_sampling_free(sampling);
  gen_free(generator);
  return before;
}

/* Left out f times, the other's prompt runs every f + 1 steps: when 1's is through, a share of 1 /
 * f of it is. */
static void fairness_bounds_what_priority_does(void** state) {
  (void)state;
  int steps = 0;
  const int all = before_the_first("1000", &steps);
  assert_true(steps >= 20);
  assert_in_range(all, steps - 2, steps + 2);
  const int bounds[] = {1, 2, 4, 10};
  for (int i = 0; i < 4; ++i) {
    char text[8];
    snprintf(text, sizeof text, "%d", bounds[i]);
    const int before = before_the_first(text, &steps);
    const int wanted = steps - steps / bounds[i];
    assert_in_range(before + 10, wanted + 10 - 3, wanted + 10 + 3);
  }
  assert_in_range(before_the_first("0", &steps), 0, 3); /* in turns */

  gen_options* options = NULL;
  char described[8192];
  size_t n = 0;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_describe(options, described, sizeof described, &n, &error), error);
  assert_non_null(strstr(described, "\"key\":\"fairness\""));
  assert_non_null(
      strstr(described,
             "\"key\":\"fairness\",\"type\":\"int\",\"range\":\"0 and up\",\"default\":\"16\","));
  assert_ok(gen_options_set_fairness(options, 12345, &error), error);
  assert_ok(gen_options_set_fairness(options, INT32_MAX, &error), error);
  assert_ok(gen_options_set_fairness(options, 4321, &error), error);
  assert_fails(gen_options_set_fairness(options, -1, &error), bad, "-1", error);
  assert_fails(gen_options_set(options, "fairness", "-1", &error), bad, "-1", error);
  assert_fails(gen_options_set(options, "fairness", "99999999999", &error), bad, "99999999999",
               error);
  assert_fails(gen_options_set_fairness(NULL, 1, &error), bad, "options", error);
  assert_ok(gen_options_describe(options, described, sizeof described, &n, &error), error);
  assert_non_null(strstr(described, "\"value\":\"4321\""));
  gen_options_free(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_those_of_results),
      cmocka_unit_test(evictions_are_counted),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(fairness_bounds_what_priority_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

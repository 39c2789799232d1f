/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h: what a generator tells a sink, against what its results say and what a toy model was
 * asked; the collector, its JSON, and tables that are none. */
#include "toy_model.h"

#include <pthread.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const int32_t prompt[] = {3, 14, 15, 9, 26, 5, 35};
enum { PROMPT = sizeof prompt / sizeof prompt[0] };

static gen_metrics_memory* new_memory(void) {
  gen_metrics_memory* memory = NULL;
  assert_ok(gen_metrics_memory_new(&memory, &error), error);
  return memory;
}

/* A generator over a toy that tells a collector. */
static gen_generator* told(struct toy* toy, const gen_metrics_sink* sink) {
  const gen_forward table = toy_table(toy);
  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_prefill_chunk(options, 3, &error), error);
  assert_ok(gen_options_set_metrics(options, sink, &error), error);
  gen_generator* generator = toy_generator(&table, options);
  gen_options_free(options);
  return generator;
}

static gen_status say(gen_session* session, int32_t n) {
  gen_sampling* sampling = greedy(n);
  gen_result* result = NULL;
  const gen_status status = gen_session_generate(session, "", 0, sampling, &result, &error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  return status;
}

static double value(const gen_metrics_memory* memory, const char* name) {
  return gen_metrics_memory_value(memory, name);
}

static void assert_value(const gen_metrics_memory* memory, const char* name, double wanted) {
  const double found = value(memory, name);
  if (found != wanted) fail_msg("%s is %g, not %g", name, found, wanted);
}

static void tokens_and_steps_are_counted(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  gen_metrics_memory* memory = new_memory();
  gen_generator* generator = told(&toy, gen_metrics_memory_sink(memory));
  gen_session* session = open_session(generator);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  assert_value(memory, "prompt_tokens", PROMPT);
  assert_value(memory, "steps", 2); /* all but the last token, three at a time */
  assert_value(memory, "requests", 0);
  assert_ok(say(session, 10), error);
  assert_ok(say(session, 1), error);
  assert_value(memory, "requests", 2);
  assert_value(memory, "prompt_tokens", PROMPT);
  assert_value(memory, "prompt_cached_tokens", 0);
  assert_value(memory, "completion_tokens", 11);
  assert_value(memory, "finished_length", 2);
  assert_value(memory, "first_token_seconds.count", 2);
  assert_value(memory, "inter_token_seconds.count", 9);
  assert_value(memory, "tokens_per_second.count", 1);
  assert_true(value(memory, "first_token_seconds.sum") > 0);
  assert_true(value(memory, "tokens_per_second.sum") > 0);
  assert_value(memory, "steps", toy.calls);
  assert_value(memory, "step_seconds.count", toy.calls);
  assert_value(memory, "queue_wait_seconds.count", toy.calls);
  assert_value(memory, "batch_rows.sum", toy.rows);
  assert_value(memory, "batch_sequences.sum", toy.calls);
  assert_value(memory, "steps_failed", 0);
  assert_value(memory, "queue_length", 0);
  assert_value(memory, "no such name", 0);
  assert_value(memory, "batch_rows.mean", 0);
  gen_session_free(session);
  gen_free(generator);
  gen_metrics_memory_free(memory);
}

static void ends_are_counted_by_kind(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  gen_metrics_memory* memory = new_memory();
  gen_generator* generator = told(&toy, gen_metrics_memory_sink(memory));
  gen_session* session = open_session(generator);
  assert_int_equal(say(session, 4), bad); /* there is nothing to go on from */
  assert_value(memory, "errors_invalid_argument", 1);
  assert_value(memory, "requests", 0);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  const struct {
    gen_status status;
    const char* name;
  } failures[] = {{GEN_ERROR_DEVICE, "errors_device"},
                  {GEN_ERROR_IO, "errors_io"},
                  {GEN_ERROR_OUT_OF_MEMORY, "errors_out_of_memory"},
                  {99, "errors_model"}};
  for (int i = 0; i < 4; ++i) {
    toy.fault = TOY_STATUS;
    toy.at = toy.calls + i;
    toy.status = failures[i].status;
    assert_int_not_equal(say(session, 8), GEN_OK);
    assert_value(memory, failures[i].name, 1);
    assert_value(memory, "finished_error", i + 1);
    assert_value(memory, "steps_failed", i + 1);
  }
  assert_value(memory, "completion_tokens", 0 + 1 + 2 + 3);
  toy.at = toy.calls;
  toy.status = GEN_ERROR_IO;
  assert_int_equal(gen_session_append_tokens(session, prompt, 3, &error), GEN_ERROR_IO);
  assert_value(memory, "errors_io", 2);
  toy.fault = TOY_GOOD;

  gen_session_cancel(session);
  assert_int_equal(say(session, 8), GEN_ERROR_CANCELLED);
  assert_value(memory, "finished_cancelled", 1);
  gen_stream* stream = NULL;
  gen_sampling* sampling = greedy(8);
  assert_ok(gen_stream_open(session, "", 0, sampling, &stream, &error), error);
  gen_stream_close(stream);
  assert_value(memory, "finished_cancelled", 2);
  assert_value(memory, "errors_cancelled", 0);
  int32_t outside = TOY_VOCAB;
  assert_int_equal(gen_session_append_tokens(session, &outside, 1, &error), GEN_ERROR_OUT_OF_RANGE);
  assert_ok(gen_sampling_add_stop_token(sampling, TOY_VOCAB, &error), error);
  gen_result* result = NULL;
  assert_int_equal(gen_session_generate(session, "", 0, sampling, &result, &error),
                   GEN_ERROR_OUT_OF_RANGE);
  assert_value(memory, "errors_out_of_range", 2);
  assert_value(memory, "requests", 6);
  gen_sampling_free(sampling);
  gen_session_free(session);
  gen_free(generator);
  gen_metrics_memory_free(memory);
}

enum { THREADS = 16, CALLS = 12, TOKENS = 9 };

static void* talk(void* argument) {
  gen_session* session = open_session(argument);
  for (int i = 0; i < CALLS; ++i) {
    gen_error own;
    assert_ok(gen_session_append_tokens(session, prompt, 2, &own), own);
    gen_sampling* sampling = greedy(TOKENS);
    gen_result* result = NULL;
    assert_ok(gen_session_generate(session, "", 0, sampling, &result, &own), own);
    gen_result_free(result);
    gen_sampling_free(sampling);
  }
  gen_session_free(session);
  return NULL;
}

static void threads_are_counted_exactly(void** state) {
  (void)state;
  struct toy toy = {.at = -1};
  gen_metrics_memory* memory = new_memory();
  gen_generator* generator = told(&toy, gen_metrics_memory_sink(memory));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, talk, generator), 0);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  assert_value(memory, "requests", THREADS * CALLS);
  assert_value(memory, "finished_length", THREADS * CALLS);
  assert_value(memory, "prompt_tokens", THREADS * CALLS * 2);
  assert_value(memory, "completion_tokens", THREADS * CALLS * TOKENS);
  assert_value(memory, "inter_token_seconds.count", THREADS * CALLS * (TOKENS - 1));
  assert_value(memory, "steps", toy.calls);
  assert_value(memory, "batch_rows.sum", toy.rows);
  assert_value(memory, "batch_sequences.sum", value(memory, "queue_wait_seconds.count"));
  assert_true(value(memory, "batch_sequences.sum") >= toy.calls);
  gen_free(generator);
  gen_metrics_memory_free(memory);
}

/* A pool's blocks, of 16 positions each. */
static void blocks_are_measured(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_metrics_memory* memory = new_memory();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_paged_kv(options, 4, 16, &error), error);
  assert_ok(gen_options_set_metrics(options, gen_metrics_memory_sink(memory), &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  gen_session* session = open_session(generator);
  int32_t tokens[41];
  for (int i = 0; i < 41; ++i) tokens[i] = 100 + i;
  assert_ok(gen_session_append_tokens(session, tokens, 41, &error), error);
  assert_value(memory, "cache_blocks_used", 3); /* of 40 positions */
  assert_value(memory, "cache_fragmentation", 1 - 40.0 / 48);
  const double unused = value(memory, "cache_blocks_free");
  assert_true(unused > 0);
  assert_ok(gen_session_append_tokens(session, tokens, 17, &error), error);
  assert_value(memory, "cache_blocks_used", 4);
  assert_value(memory, "cache_blocks_free", unused - 1);
  gen_session_free(session);
  gen_free(generator);
  gen_metrics_memory_free(memory);
  gen_model_free(model);
}

/* A second session with the same prompt takes all of its full blocks but what it must run. */
static void prefixes_are_counted(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_metrics_memory* memory = new_memory();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_paged_kv(options, 4, 16, &error), error);
  assert_ok(gen_options_set_prefix_cache(options, 5, &error), error);
  assert_ok(gen_options_set_metrics(options, gen_metrics_memory_sink(memory), &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  int32_t tokens[65];
  for (int i = 0; i < 65; ++i) tokens[i] = 100 + i;
  for (int turn = 0; turn < 3; ++turn) { /* 64 positions, four blocks */
    gen_session* session = open_session(generator);
    assert_ok(gen_session_append_tokens(session, tokens, 65, &error), error);
    assert_value(memory, "prefix_lookups", turn + 1);
    assert_value(memory, "prefix_hits", turn);
    assert_value(memory, "prompt_cached_tokens", 64 * turn);
    gen_session_free(session);
  }
  assert_value(memory, "prompt_tokens", 3 * 65);
  assert_value(memory, "prefix_evictions", 0);
  gen_session* session = open_session(generator);
  for (int i = 0; i < 33; ++i)
    tokens[i] = 300 + i; /* two blocks of another text, and room for one */
  assert_ok(gen_session_append_tokens(session, tokens, 33, &error), error);
  assert_ok(say(session, 2), error);
  assert_value(memory, "prefix_hits", 2);
  assert_value(memory, "prefix_evictions", 1);
  gen_session_free(session);
  gen_free(generator);
  gen_metrics_memory_free(memory);
  gen_model_free(model);
}

/* A sink with one function is told one kind of metric. */
struct counts {
  atomic_int counters, gauges, histograms;
  atomic_int wrong;
};
static void count_counter(void* user, const char* name, double by) {
  struct counts* counts = user;
  counts->wrong += strlen(name) == 0 || !(by >= 0);
  ++counts->counters;
}
static void count_gauge(void* user, const char* name, double now) {
  struct counts* counts = user;
  counts->wrong += strlen(name) == 0 || !(now >= 0);
  ++counts->gauges;
}
static void count_histogram(void* user, const char* name, double one) {
  struct counts* counts = user;
  counts->wrong += strlen(name) == 0 || !(one >= 0);
  ++counts->histograms;
}

static void members_may_be_missing(void** state) {
  (void)state;
  for (int which = 0; which < 8; ++which) {
    struct toy toy = {.at = -1};
    struct counts counts = {.wrong = 0};
    gen_metrics_sink sink = {.struct_size = sizeof sink, .user = &counts};
    if (which & 1) sink.counter_add = count_counter;
    if (which & 2) sink.gauge_set = count_gauge;
    if (which & 4) sink.histogram_observe = count_histogram;
    gen_generator* generator = told(&toy, &sink);
    gen_session* session = open_session(generator);
    assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
    assert_ok(say(session, 5), error);
    assert_int_equal(counts.wrong, 0);
    assert_int_equal(counts.counters > 0, (which & 1) != 0);
    assert_int_equal(counts.gauges > 0, (which & 2) != 0);
    assert_int_equal(counts.histograms > 0, (which & 4) != 0);
    gen_session_free(session);
    gen_free(generator);
  }
}

static void bad_tables(void** state) {
  (void)state;
  gen_options* options = NULL;
  gen_metrics_sink sink = {.struct_size = sizeof sink};
  assert_ok(gen_options_new(&options, &error), error);
  assert_fails(gen_options_set_metrics(NULL, &sink, &error), bad, "NULL", error);
  for (uint32_t size = 0; size < sizeof sink; ++size) {
    sink.struct_size = size;
    assert_fails(gen_options_set_metrics(options, &sink, &error), bad, "struct_size", error);
  }
  sink.struct_size = sizeof sink + 64; /* of a later version */
  assert_ok(gen_options_set_metrics(options, &sink, &error), error);
  assert_ok(gen_options_set_metrics(options, NULL, &error), error);
  gen_options_free(options);
  assert_fails(gen_metrics_memory_new(NULL, &error), bad, "NULL", error);
  gen_metrics_memory_free(NULL);
  assert_null(gen_metrics_memory_sink(NULL));
  assert_true(gen_metrics_memory_value(NULL, "steps") == 0);
  gen_metrics_memory* memory = new_memory();
  assert_true(gen_metrics_memory_value(memory, NULL) == 0);
  size_t n = 1;
  char small[4];
  assert_fails(gen_metrics_memory_snapshot(NULL, NULL, 0, &n, &error), bad, "NULL", error);
  assert_int_equal(n, 0);
  assert_fails(gen_metrics_memory_snapshot(memory, small, sizeof small, NULL, &error), bad, "NULL",
               error);
  assert_fails(gen_metrics_memory_snapshot(memory, small, sizeof small, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "4", error);
  assert_fails(gen_metrics_describe(small, sizeof small, NULL, &error), bad, "NULL", error);
  assert_fails(gen_metrics_describe(small, sizeof small, &n, &error), GEN_ERROR_OUT_OF_RANGE, "4",
               error);
  gen_metrics_memory_free(memory);
}

static void the_snapshot_is_json(void** state) {
  (void)state;
  gen_metrics_memory* memory = new_memory();
  char text[4000];
  size_t n = 0;
  assert_ok(gen_metrics_memory_snapshot(memory, text, sizeof text, &n, &error), error);
  assert_string_equal(text, "{\"counters\":{},\"gauges\":{},\"histograms\":{}}");
  const gen_metrics_sink* sink = gen_metrics_memory_sink(memory);
  assert_int_equal(sink->struct_size, sizeof *sink);
  sink->counter_add(sink->user, "b", 2);
  sink->counter_add(sink->user, "a \"quoted\"", 0.25);
  sink->counter_add(sink->user, "b", 1);
  sink->counter_add(sink->user, NULL, 1);
  sink->gauge_set(sink->user, "g", 5);
  sink->gauge_set(sink->user, "g", -1.5);
  sink->gauge_set(sink->user, "i", INFINITY);
  sink->gauge_set(sink->user, NULL, 1);
  sink->histogram_observe(sink->user, "rows", 3);
  sink->histogram_observe(sink->user, "rows", 1);
  sink->histogram_observe(sink->user, "rows", 5000);
  sink->histogram_observe(sink->user, NULL, 1);
  assert_ok(gen_metrics_memory_snapshot(memory, NULL, 0, &n, &error), error);
  assert_ok(gen_metrics_memory_snapshot(memory, text, n + 1, &n, &error), error);
  assert_int_equal(strlen(text), n);
  assert_string_equal(
      text,
      "{\"counters\":{\"a \\\"quoted\\\"\":0.25,\"b\":3},\"gauges\":{\"g\":-1.5,\"i\":null},"
      "\"histograms\":{\"rows\":{\"count\":3,\"sum\":5004,\"buckets\":[{\"le\":1,\"count\":1},"
      "{\"le\":2,\"count\":1},{\"le\":4,\"count\":2},{\"le\":8,\"count\":2},{\"le\":16,\"count\":2}"
      ","
      "{\"le\":32,\"count\":2},{\"le\":64,\"count\":2},{\"le\":128,\"count\":2},{\"le\":256,"
      "\"count\":2},"
      "{\"le\":512,\"count\":2},{\"le\":1024,\"count\":2},{\"le\":2048,\"count\":2},"
      "{\"le\":4096,\"count\":2},{\"le\":null,\"count\":3}]}}}");
  gen_metrics_memory_free(memory);
}

/* Every name that the header tells of is described, with its kind; and the collector outlives its
 * handle. */
static void names_are_described(void** state) {
  (void)state;
  static const char* names[] = {"counter:requests",
                                "counter:prompt_tokens",
                                "counter:prompt_cached_tokens",
                                "counter:completion_tokens",
                                "counter:finished_stop_token",
                                "counter:finished_stop_string",
                                "counter:finished_length",
                                "counter:finished_context_full",
                                "counter:finished_grammar_complete",
                                "counter:finished_grammar_dead_end",
                                "counter:finished_cancelled",
                                "counter:finished_callback",
                                "counter:finished_error",
                                "counter:errors_model",
                                "counter:errors_out_of_memory",
                                "counter:errors_busy",
                                "counter:errors_internal",
                                "counter:steps",
                                "counter:steps_failed",
                                "counter:prefix_lookups",
                                "counter:prefix_hits",
                                "counter:prefix_evictions",
                                "counter:preemptions",
                                "counter:drafted_tokens",
                                "counter:accepted_tokens",
                                "counter:drafts_failed",
                                "counter:rows_again",
                                "gauge:queue_length",
                                "gauge:cache_blocks_used",
                                "gauge:cache_blocks_free",
                                "gauge:cache_fragmentation",
                                "gauge:cache_window_blocks_used",
                                "gauge:cache_window_fragmentation",
                                "gauge:speculative_acceptance_rate",
                                "histogram:first_token_seconds",
                                "histogram:inter_token_seconds",
                                "histogram:tokens_per_second",
                                "histogram:queue_wait_seconds",
                                "histogram:step_seconds",
                                "histogram:batch_sequences",
                                "histogram:batch_rows"};
  size_t n = 0;
  assert_ok(gen_metrics_describe(NULL, 0, &n, &error), error);
  char* text = malloc(n + 1);
  assert_ok(gen_metrics_describe(text, n + 1, &n, &error), error);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    const char* name = strchr(names[i], ':') + 1;
    char part[100];
    snprintf(part, sizeof part, "{\"name\":\"%s\",\"kind\":\"%.*s\",\"help\":\"", name,
             (int)(name - names[i] - 1), names[i]);
    if (strstr(text, part) == NULL) fail_msg("%s is not described", names[i]);
  }
  assert_non_null(strstr(text, "\"buckets\":[1,2,4,8,16,32,64,128,256,512,1024,2048,4096]"));
  free(text);

  struct toy toy = {.at = -1};
  gen_metrics_memory* memory = new_memory();
  gen_generator* generator = told(&toy, gen_metrics_memory_sink(memory));
  gen_session* session = open_session(generator);
  gen_metrics_memory_free(memory);
  assert_ok(gen_session_append_tokens(session, prompt, PROMPT, &error), error);
  gen_free(generator);
  assert_ok(say(session, 5), error);
  gen_session_free(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tokens_and_steps_are_counted),
      cmocka_unit_test(ends_are_counted_by_kind),
      cmocka_unit_test(threads_are_counted_exactly),
      cmocka_unit_test(blocks_are_measured),
      cmocka_unit_test(prefixes_are_counted),
      cmocka_unit_test(members_may_be_missing),
      cmocka_unit_test(bad_tables),
      cmocka_unit_test(the_snapshot_is_json),
      cmocka_unit_test(names_are_described),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

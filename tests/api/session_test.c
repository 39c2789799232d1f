/* SPDX-License-Identifier: Apache-2.0 */
/* session.h: growing, cutting, scoring, busy, cancel from a signal handler, many sessions on many
 * threads. */
#include "api_test.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static gen_session* open_session(gen_generator* g) {
  gen_session* session = NULL;
  assert_ok(gen_session_new(g, &session, &error), error);
  return session;
}

static size_t tokens_of(const gen_session* session, int32_t* ids, size_t capacity) {
  size_t n = 0;
  assert_ok(gen_session_tokens(session, ids, capacity, &n, &error), error);
  return n;
}

static void turns_continue(void** state) {
  gen_session* s = open_session(*state);
  gen_sampling* sampling = greedy(6);
  gen_result* result = NULL;
  assert_int_equal(gen_session_length(s), 0);
  assert_ok(gen_session_generate(s, "Once upon", 9, sampling, &result, &error), error);
  gen_result_free(result);
  const int32_t first = gen_session_length(s);
  int32_t before[64];
  const size_t n = tokens_of(s, before, 64);
  assert_int_equal(n, first);
  assert_int_equal(before[0], 1); /* begin of sequence, once */
  assert_ok(gen_session_generate(s, " and", 4, sampling, &result, &error), error);
  gen_result_free(result);
  int32_t after[64];
  const size_t m = tokens_of(s, after, 64);
  assert_true(m > n);
  assert_memory_equal(before, after, n * sizeof(int32_t));
  for (size_t i = 1; i < m; ++i) assert_int_not_equal(after[i], 1);
  /* An empty prompt goes on from there. */
  assert_ok(gen_session_generate(s, "", 0, sampling, &result, &error), error);
  gen_result_free(result);
  assert_true(gen_session_length(s) > (int32_t)m);
  gen_sampling_free(sampling);
  gen_session_free(s);
}

/* Text goes on from text, also when it is scored; after a special token it starts anew. */
static void text_goes_on(void** state) {
  gen_session* s = open_session(*state);
  gen_model* model = load_draft();
  const gen_tokenizer* t = gen_model_tokenizer(model);
  int32_t ids[64];
  char text[64];
  size_t n = 0;
  assert_ok(gen_session_append(s, "The gold", 8, &error), error);
  const int32_t end = gen_session_length(s);
  size_t scored = 0;
  assert_ok(gen_session_score(s, "en cat", 6, NULL, 0, &scored, &error), error);
  assert_ok(gen_session_append(s, "en cat", 6, &error), error);
  size_t count = tokens_of(s, ids, 64);
  assert_int_equal(count, (size_t)end + scored);
  assert_ok(gen_tokenizer_decode(t, ids, count, text, sizeof text, &n, &error), error);
  assert_string_equal(text, "The golden cat");

  const int32_t turn = gen_tokenizer_special(t, GEN_SPECIAL_EOT);
  assert_ok(gen_session_append_tokens(s, &turn, 1, &error), error);
  const int32_t from = gen_session_length(s);
  assert_ok(gen_session_append(s, "The", 3, &error), error);
  count = tokens_of(s, ids, 64);
  int32_t anew[8];
  assert_ok(gen_tokenizer_encode(t, "The", 3, 0, anew, 8, &n, &error), error);
  assert_int_equal(count, (size_t)from + n);
  assert_memory_equal(ids + from, anew, n * sizeof(int32_t));
  assert_ok(gen_tokenizer_decode(t, ids, count, text, sizeof text, &n, &error), error);
  assert_string_equal(text, "The golden catThe");
  gen_model_free(model);
  gen_session_free(s);
}

/* By the option parse_special texts of special tokens are those tokens, in every call that takes a
 * text; as it comes, they are text. */
static void special_tokens_of_prompts(void** state) {
  static const char text[] = "The end.<|im_end|>";
  gen_model* model = load_draft();
  const gen_tokenizer* t = gen_model_tokenizer(model);
  const int32_t turn = gen_tokenizer_special(t, GEN_SPECIAL_EOT);
  gen_sampling* sampling = greedy(1);
  size_t lengths[2] = {0};
  for (int parses = 0; parses < 2; ++parses) {
    gen_options* o = NULL;
    gen_generator* g = *state;
    assert_ok(gen_options_new(&o, &error), error);
    if (parses) {
      assert_ok(gen_options_set(o, "parse_special", "1", &error), error);
      assert_ok(gen_create(model, o, &g, &error), error);
    }
    gen_options_free(o);
    const uint32_t flags = GEN_ENCODE_ADD_BOS | (parses ? GEN_ENCODE_PARSE_SPECIAL : 0);
    int32_t want[64];
    int32_t ids[64];
    size_t n = 0;
    assert_ok(gen_tokenizer_encode(t, text, sizeof text - 1, flags, want, 64, &n, &error), error);
    lengths[parses] = n;
    assert_int_equal(want[n - 1] == turn, parses);

    gen_session* s = open_session(g);
    gen_result* result = NULL;
    size_t scored = 0;
    assert_ok(gen_session_score(s, text, sizeof text - 1, NULL, 0, &scored, &error), error);
    assert_int_equal(scored + 1, n); /* begin-of-sequence has no score */
    assert_ok(gen_session_append(s, text, sizeof text - 1, &error), error);
    assert_int_equal(tokens_of(s, ids, 64), n);
    assert_memory_equal(ids, want, n * sizeof *ids);
    assert_ok(gen_session_reset(s, &error), error);
    assert_ok(gen_session_generate(s, text, sizeof text - 1, sampling, &result, &error), error);
    assert_true(tokens_of(s, ids, 64) >= n);
    assert_memory_equal(ids, want, n * sizeof *ids);
    gen_result_free(result);
    gen_session_free(s);

    int64_t prompt = 0;
    assert_ok(gen_generate(g, text, sizeof text - 1, sampling, &result, &error), error);
    assert_ok(gen_result_usage(result, "prompt", &prompt, &error), error);
    assert_int_equal(prompt, n);
    gen_result_free(result);
    gen_request* request = NULL;
    assert_ok(gen_request_new(&request, &error), error);
    assert_ok(gen_request_set_prompt(request, text, sizeof text - 1, &error), error);
    assert_ok(gen_request_set_sampling(request, sampling, &error), error);
    const gen_request* const requests[] = {request};
    assert_ok(gen_batch_generate(g, requests, 1, &result, &error), error);
    assert_ok(gen_result_usage(result, "prompt", &prompt, &error), error);
    assert_int_equal(prompt, n);
    gen_result_free(result);
    gen_request_free(request);
    if (parses) gen_free(g);
  }
  assert_true(lengths[1] < lengths[0]);
  gen_sampling_free(sampling);
  gen_model_free(model);
}

/* Splitting a prompt into appends, and resetting, give the text of one call. */
static void append_equals_one_prompt(void** state) {
  gen_session* s = open_session(*state);
  gen_sampling* sampling = greedy(12);
  gen_result* result = NULL;
  int32_t ids[64];
  const gen_model* model = NULL;
  (void)model;
  assert_ok(gen_session_append(s, "Once upon a time", 16, &error), error);
  const size_t n = tokens_of(s, ids, 64);
  assert_ok(gen_session_generate(s, "", 0, sampling, &result, &error), error);
  char* text = strdup(gen_result_text(result, NULL));
  gen_result_free(result);

  assert_ok(gen_session_reset(s, &error), error);
  assert_int_equal(gen_session_length(s), 0);
  for (size_t i = 0; i < n; ++i) assert_ok(gen_session_append_tokens(s, ids + i, 1, &error), error);
  assert_ok(gen_session_generate(s, "", 0, sampling, &result, &error), error);
  assert_string_equal(gen_result_text(result, NULL), text);
  gen_result_free(result);

  assert_ok(gen_session_truncate(s, (int32_t)n, &error), error);
  assert_int_equal(gen_session_length(s), (int32_t)n);
  assert_ok(gen_session_generate(s, "", 0, sampling, &result, &error), error);
  assert_string_equal(gen_result_text(result, NULL), text);
  gen_result_free(result);

  assert_ok(gen_session_reset(s, &error), error);
  assert_ok(gen_session_generate(s, "Once upon a time", 16, sampling, &result, &error), error);
  assert_string_equal(gen_result_text(result, NULL), text);
  gen_result_free(result);
  free(text);
  gen_sampling_free(sampling);
  gen_session_free(s);
}

static void failed_calls_change_nothing(void** state) {
  gen_session* s = open_session(*state);
  gen_result* result = NULL;
  size_t count = 0;
  assert_fails(gen_session_generate(s, "", 0, NULL, &result, &error), bad, "", error);
  assert_ok(gen_session_append(s, "Once upon", 9, &error), error);
  int32_t before[16];
  const size_t n = tokens_of(s, before, 16);

  assert_fails(gen_session_append(s, "\xc0", 1, &error), GEN_ERROR_TOKENIZER, "0", error);
  assert_fails(gen_session_append(s, NULL, 1, &error), bad, "text", error);
  const int32_t outside[] = {5, 4096};
  assert_fails(gen_session_append_tokens(s, outside, 2, &error), GEN_ERROR_OUT_OF_RANGE, "4096",
               error);
  assert_fails(gen_session_append_tokens(s, NULL, 2, &error), bad, "tokens", error);
  int32_t* many = calloc(2000, sizeof(int32_t));
  assert_fails(gen_session_append_tokens(s, many, 2000, &error), GEN_ERROR_CONTEXT_FULL, "1024",
               error);
  free(many);
  assert_fails(gen_session_truncate(s, -1, &error), bad, "-1", error);
  assert_fails(gen_session_generate(s, "\xff", 1, NULL, &result, &error), GEN_ERROR_TOKENIZER, "0",
               error);
  assert_null(result);
  assert_fails(gen_session_tokens(s, before, n - 1, &count, &error), GEN_ERROR_OUT_OF_RANGE,
               "do not fit", error);
  assert_int_equal(count, n);
  assert_ok(gen_session_append(s, "", 0, &error), error);
  assert_ok(gen_session_append_tokens(s, NULL, 0, &error), error);
  assert_ok(gen_session_truncate(s, 1000, &error), error);
  int32_t after[16];
  assert_int_equal(tokens_of(s, after, 16), n);
  assert_memory_equal(before, after, n * sizeof(int32_t));
  gen_session_free(s);
}

/* Against the formula: log-softmax of the logits of a plain forward pass over the same tokens. */
static void score_is_the_log_probability(void** state) {
  gen_session* s = open_session(*state);
  assert_ok(gen_session_append(s, "Once upon a time", 16, &error), error);
  const int32_t held = gen_session_length(s);
  float values[64];
  size_t n = 0;
  assert_ok(gen_session_score(s, ", there was", 11, NULL, 0, &n, &error), error);
  assert_true(n > 1 && n < 64);
  assert_fails(gen_session_score(s, ", there was", 11, values, n - 1, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "do not fit", error);
  assert_fails(gen_session_score(s, NULL, 7, values, 64, &n, &error), bad, "text", error);
  assert_ok(gen_session_score(s, ", there was", 11, values, 64, &n, &error), error);
  assert_int_equal(gen_session_length(s), held);

  int32_t ids[64];
  assert_ok(gen_session_append(s, ", there was", 11, &error), error);
  const size_t all = tokens_of(s, ids, 64);
  assert_int_equal(all, (size_t)held + n);
  enum { kVocab = 4096 };
  gen_model* model = load_draft();
  kv_cache* cache = NULL;
  float* logits = malloc(sizeof(float) * all * kVocab);
  const int32_t layers = gen_model_config_num_layers(gen_model_get_config(model));
  assert_ok(kv_cache_new(layers, 64, &cache, &error), error);
  assert_ok(
      gen_model_forward_batch(model, ids, NULL, NULL, all, &cache, 1, logits, all * kVocab, &error),
      error);
  for (size_t i = 0; i < n; ++i) {
    const float* row = logits + ((size_t)held + i - 1) * kVocab;
    double sum = 0;
    for (int j = 0; j < kVocab; ++j) sum += exp((double)row[j]);
    const double expected = (double)row[ids[(size_t)held + i]] - log(sum);
    assert_true(fabs((double)values[i] - expected) < 1e-4);
  }
  free(logits);
  kv_cache_free(cache);
  gen_model_free(model);
  gen_session_free(s);
}

static void null_objects(void** state) {
  gen_generator* g = *state;
  gen_session* s = (gen_session*)&error;
  gen_result* result = NULL;
  size_t n = 0;
  assert_fails(gen_session_new(NULL, &s, &error), bad, "generator", error);
  assert_null(s);
  assert_int_equal(gen_session_new(g, NULL, NULL), bad);
  assert_int_equal(gen_session_generate(NULL, "a", 1, NULL, &result, NULL), bad);
  assert_int_equal(gen_session_append(NULL, "a", 1, NULL), bad);
  assert_int_equal(gen_session_append_tokens(NULL, NULL, 0, NULL), bad);
  assert_int_equal(gen_session_score(NULL, "a", 1, NULL, 0, &n, NULL), bad);
  assert_int_equal(gen_session_tokens(NULL, NULL, 0, &n, NULL), bad);
  assert_int_equal(gen_session_truncate(NULL, 0, NULL), bad);
  assert_int_equal(gen_session_reset(NULL, NULL), bad);
  assert_int_equal(gen_session_length(NULL), 0);
  assert_true(gen_session_progress(NULL) == 0);
  assert_null(gen_session_cache(NULL));
  gen_session_cancel(NULL);
  gen_session_free(NULL);
}

static gen_status inner_status;

static int enter_again(void* user, const gen_token* token) {
  (void)token;
  gen_error inner;
  inner_status = gen_session_append(user, "x", 1, &inner);
  return 1;
}

static void entering_twice_is_busy(void** state) {
  gen_session* s = open_session(*state);
  gen_sampling* sampling = greedy(5);
  inner_status = GEN_OK;
  assert_int_equal(
      gen_session_generate_stream(s, "Once", 4, sampling, enter_again, s, NULL, &error),
      GEN_ERROR_CANCELLED);
  assert_int_equal(inner_status, GEN_ERROR_BUSY);
  assert_ok(gen_session_append(s, "x", 1, &error), error);
  gen_sampling_free(sampling);
  gen_session_free(s);
}

/* A flag of the caller's ends what takes no sampling, and only while it is set. */
static void appends_and_scores_have_a_cancel_too(void** state) {
  gen_session* s = open_session(*state);
  gen_cancel* cancel = NULL;
  float scores[8];
  size_t n = 0;
  assert_ok(gen_cancel_new(&cancel, &error), error);
  assert_ok(gen_session_append(s, "Once upon a time", 16, &error), error);
  const int32_t length = gen_session_length(s);
  assert_ok(gen_session_set_cancel(s, cancel, &error), error);
  assert_ok(gen_session_append(s, " a dog", 6, &error), error);
  assert_ok(gen_session_truncate(s, length, &error), error);
  gen_cancel_fire(cancel);
  assert_fails(gen_session_append(s, " came and went", 14, &error), GEN_ERROR_CANCELLED,
               "cancelled", error);
  /* Nothing of a single token is run before it is needed. */
  gen_session* empty = open_session(*state);
  const int32_t one[] = {7};
  assert_ok(gen_session_set_cancel(empty, cancel, &error), error);
  assert_fails(gen_session_append_tokens(empty, one, 1, &error), GEN_ERROR_CANCELLED, "cancelled",
               error);
  assert_int_equal(gen_session_length(empty), 0);
  gen_session_free(empty);
  assert_fails(gen_session_score(s, " came", 5, scores, 8, &n, &error), GEN_ERROR_CANCELLED,
               "cancelled", error);
  gen_sampling* sampling = greedy(3);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(s, "", 0, sampling, &result, &error), error); /* has its own */
  gen_result_free(result);
  gen_stream* stream = NULL;
  assert_ok(gen_stream_open(s, "", 0, sampling, &stream, &error), error);
  assert_fails(gen_session_set_cancel(s, NULL, &error), GEN_ERROR_BUSY, "session", error);
  gen_stream_close(stream);
  assert_ok(gen_session_set_cancel(s, NULL, &error), error);
  assert_ok(gen_session_append(s, " came and went", 14, &error), error);
  assert_ok(gen_session_set_cancel(s, cancel, &error), error);
  gen_cancel_reset(cancel);
  gen_cancel_free(cancel); /* the session keeps what it needs */
  assert_ok(gen_session_append(s, " again", 6, &error), error);
  assert_int_equal(gen_session_set_cancel(NULL, NULL, NULL), bad);
  gen_sampling_free(sampling);
  gen_session_free(s);
}

static gen_session* signalled;

static void on_alarm(int signal_number) {
  (void)signal_number;
  gen_session_cancel(signalled);
}

static int raise_alarm(void* user, const gen_token* token) {
  (void)token;
  if (++*(int*)user == 3) raise(SIGALRM);
  return 0;
}

static void a_signal_handler_may_cancel(void** state) {
  signalled = open_session(*state);
  gen_sampling* sampling = greedy(100);
  gen_result* result = NULL;
  int pieces = 0;
  signal(SIGALRM, on_alarm);
  assert_int_equal(gen_session_generate_stream(signalled, "Once upon", 9, sampling, raise_alarm,
                                               &pieces, &result, &error),
                   GEN_ERROR_CANCELLED);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CANCELLED);
  size_t n = 0;
  gen_result_tokens(result, &n);
  assert_true(n >= 3 && n < 100);
  gen_result_free(result);
  /* The cancel was consumed: the session goes on. */
  assert_ok(gen_session_generate(signalled, "", 0, sampling, &result, &error), error);
  gen_result_free(result);
  /* A cancel before the call is kept for it; a reset clears it. */
  gen_session_cancel(signalled);
  assert_int_equal(gen_session_generate(signalled, "", 0, sampling, &result, &error),
                   GEN_ERROR_CANCELLED);
  gen_result_free(result);
  gen_session_cancel(signalled);
  assert_ok(gen_session_reset(signalled, &error), error);
  assert_ok(gen_session_generate(signalled, "Once", 4, sampling, &result, &error), error);
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session_free(signalled);
}

typedef struct {
  gen_generator* generator;
  int index;
  char text[2048];
} Job;

static void run_job(Job* job) {
  gen_error own;
  gen_session* s = NULL;
  gen_sampling* sampling = NULL;
  gen_result* result = NULL;
  if (gen_session_new(job->generator, &s, &own) != GEN_OK) return;
  gen_sampling_new(&sampling, &own);
  gen_sampling_set_max_new_tokens(sampling, 24, &own);
  gen_sampling_set_seed(sampling, (uint64_t)job->index, &own);
  char prompt[64];
  snprintf(prompt, sizeof prompt, "Story number %d is about", job->index);
  if (gen_session_generate(s, prompt, GEN_NUL_TERMINATED, sampling, &result, &own) == GEN_OK) {
    snprintf(job->text, sizeof job->text, "%s", gen_result_text(result, NULL));
  }
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session_free(s);
}

static void* run_thread(void* job) {
  run_job(job);
  return NULL;
}

static void threads_give_what_they_give_alone(void** state) {
  enum { kJobs = 6 };
  static Job alone[kJobs];
  static Job together[kJobs];
  pthread_t threads[kJobs];
  for (int i = 0; i < kJobs; ++i) {
    alone[i] = (Job){*state, i, ""};
    run_job(&alone[i]);
    assert_true(strlen(alone[i].text) > 0);
  }
  for (int i = 0; i < kJobs; ++i) {
    together[i] = (Job){*state, i, ""};
    assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &together[i]), 0);
  }
  for (int i = 0; i < kJobs; ++i) {
    pthread_join(threads[i], NULL);
    assert_string_equal(together[i].text, alone[i].text);
  }
}

static void the_cache_is_lent_for_reading(void** state) {
  gen_session* s = open_session(*state);
  const kv_cache* cache = gen_session_cache(s);
  assert_non_null(cache);
  assert_int_equal(kv_cache_seq_len(cache), 0);
  gen_sampling* sampling = greedy(4);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(s, "Once upon a time", 16, sampling, &result, &error), error);
  gen_result_free(result);
  assert_true(kv_cache_seq_len(cache) > 0);
  assert_true(kv_cache_seq_len(cache) <= gen_session_length(s));
  gen_sampling_free(sampling);
  gen_session_free(s);
}

static void handles_may_be_freed_in_any_order(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* g = NULL;
  assert_ok(gen_create(model, NULL, &g, &error), error);
  gen_session* s = open_session(g);
  gen_free(g);
  gen_model_free(model);
  gen_sampling* sampling = greedy(4);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(s, "Once", 4, sampling, &result, &error), error);
  gen_session_free(s);
  assert_non_null(gen_result_text(result, NULL));
  gen_result_free(result);
  gen_sampling_free(sampling);
}

/* With a context of 48: it ends there, or goes on without the oldest tokens. */
static void a_full_context_stops_or_shifts(void** state) {
  (void)state;
  gen_model_options* small = NULL;
  assert_ok(gen_model_options_new(&small, &error), error);
  assert_ok(gen_model_options_set_max_seq_len(small, 48, &error), error);
  gen_model* model = NULL;
  assert_ok(gen_model_load(DRAFT_MODEL, small, &model, &error), error);
  gen_model_options_free(small);
  gen_sampling* sampling = greedy(150);
  assert_ok(gen_sampling_set_ignore_eos(sampling, 1, &error), error);
  static const char* const kinds[] = {"fp32", "q4"}; /* keys that can be turned, and others */
  for (size_t kind = 0; kind < 2; ++kind) {
    for (int shift = 0; shift < 2; ++shift) {
      gen_options* options = NULL;
      assert_ok(gen_options_new(&options, &error), error);
      assert_ok(gen_options_set_kv_dtype(options, kinds[kind], &error), error);
      if (shift) assert_ok(gen_options_set_context_policy(options, "shift", 8, &error), error);
      gen_generator* g = NULL;
      assert_ok(gen_create(model, options, &g, &error), error);
      gen_session* s = open_session(g);
      gen_result* result = NULL;
      assert_ok(gen_session_generate(s, "Once upon a time", GEN_NUL_TERMINATED, sampling, &result,
                                     &error),
                error);
      int64_t completion = 0, dropped = 0, prompt = 0;
      assert_ok(gen_result_usage(result, "completion", &completion, &error), error);
      assert_ok(gen_result_usage(result, "dropped", &dropped, &error), error);
      assert_ok(gen_result_usage(result, "prompt", &prompt, &error), error);
      assert_int_equal(gen_result_finish_reason(result),
                       shift ? GEN_FINISH_LENGTH : GEN_FINISH_CONTEXT_FULL);
      assert_int_equal(completion, shift ? 150 : 48 - prompt);
      assert_int_equal(gen_session_length(s), prompt + completion - dropped);
      if (shift) assert_in_range(gen_session_length(s), 8 + 20, 48);
      if (!shift) assert_int_equal(dropped, 0);
      gen_result_free(result);
      gen_session_free(s);
      gen_free(g);
      assert_ok(gen_options_set_context_policy(options, "shift", 47, &error), error);
      assert_fails(gen_create(model, options, &g, &error), GEN_ERROR_INVALID_ARGUMENT, "keeps 47",
                   error);
      gen_options_free(options);
    }
  }
  gen_sampling_free(sampling);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(turns_continue),
      cmocka_unit_test(text_goes_on),
      cmocka_unit_test(special_tokens_of_prompts),
      cmocka_unit_test(append_equals_one_prompt),
      cmocka_unit_test(failed_calls_change_nothing),
      cmocka_unit_test(score_is_the_log_probability),
      cmocka_unit_test(null_objects),
      cmocka_unit_test(entering_twice_is_busy),
      cmocka_unit_test(appends_and_scores_have_a_cancel_too),
      cmocka_unit_test(a_signal_handler_may_cancel),
      cmocka_unit_test(threads_give_what_they_give_alone),
      cmocka_unit_test(the_cache_is_lent_for_reading),
      cmocka_unit_test(handles_may_be_freed_in_any_order),
      cmocka_unit_test(a_full_context_stops_or_shifts),
  };
  return cmocka_run_group_tests(tests, make_draft_generator, free_draft_generator);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h: a batch gives each request what it gets alone; failures, stops and deadlines stay with
 * their request. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

enum { kRequests = 6 };

static const char* const kPrompts[kRequests] = {
    "Once upon a time", "The",     "A puppy and a duck went to look for",
    "Where is",         "One day", "\"Hello\", said",
};

/* A request of its own kind: lengths, seeds and temperatures differ. */
static gen_request* request_of(int i) {
  gen_request* request = NULL;
  gen_sampling* sampling = greedy(8 + 5 * i);
  assert_ok(gen_sampling_set_temperature(sampling, i % 2 == 0 ? 0.8 : 0, &error), error);
  assert_ok(gen_sampling_set_seed(sampling, (uint64_t)i, &error), error);
  if (i == 3) assert_ok(gen_sampling_add_stop_string(sampling, "e", 1, &error), error);
  assert_ok(gen_request_new(&request, &error), error);
  assert_ok(gen_request_set_prompt(request, kPrompts[i], GEN_NUL_TERMINATED, &error), error);
  assert_ok(gen_request_set_sampling(request, sampling, &error), error);
  gen_sampling_free(sampling);
  return request;
}

static gen_result* alone(gen_generator* generator, int i) {
  gen_result* result = NULL;
  gen_request* request = request_of(i);
  assert_ok(gen_batch_generate(generator, (const gen_request* const*)&request, 1, &result, &error),
            error);
  assert_null(gen_result_error(result));
  gen_request_free(request);
  return result;
}

struct Seen {
  char text[kRequests][2048];
  int done[kRequests];
  int finish[kRequests];
  int stop_at; /* index to stop, or -1 */
};

static int see(void* user, size_t index, const gen_token* token) {
  struct Seen* seen = user;
  assert_true(index < kRequests);
  assert_false(seen->done[index]);
  strcat(seen->text[index], token->text);
  seen->done[index] += token->done;
  if (token->done) seen->finish[index] = token->finish_reason;
  return (int)index == seen->stop_at && token->index == 3 ? 77 : 0;
}

static void each_gets_what_it_gets_alone(void** state) {
  gen_request* requests[kRequests];
  gen_result* results[kRequests];
  for (int i = 0; i < kRequests; ++i) requests[i] = request_of(i);
  struct Seen seen;
  memset(&seen, 0, sizeof(seen));
  seen.stop_at = -1;
  assert_ok(gen_batch_generate_stream(*state, (const gen_request* const*)requests, kRequests, see,
                                      &seen, results, &error),
            error);
  for (int i = 0; i < kRequests; ++i) {
    gen_result* own = alone(*state, i);
    assert_null(gen_result_error(results[i]));
    assert_string_equal(gen_result_text(results[i], NULL), gen_result_text(own, NULL));
    assert_string_equal(seen.text[i], gen_result_text(own, NULL));
    assert_int_equal(seen.done[i], 1);
    assert_int_equal(gen_result_finish_reason(results[i]), gen_result_finish_reason(own));
    assert_int_equal(seen.finish[i], gen_result_finish_reason(own));
    gen_result* plain = NULL;
    if (i == 1) {
      gen_sampling* sampling = greedy(13);
      assert_ok(gen_generate(*state, kPrompts[i], GEN_NUL_TERMINATED, sampling, &plain, &error),
                error);
      assert_string_equal(gen_result_text(plain, NULL), gen_result_text(own, NULL));
      gen_sampling_free(sampling);
    }
    gen_result_free(plain);
    gen_result_free(own);
    gen_result_free(results[i]);
    gen_request_free(requests[i]);
  }
}

static void failures_stay_with_their_request(void** state) {
  gen_request* requests[kRequests];
  gen_result* results[kRequests];
  for (int i = 0; i < kRequests; ++i) requests[i] = request_of(i);
  assert_ok(gen_request_set_prompt(requests[2], "", 0, &error), error);
  assert_ok(gen_request_set_prompt(requests[5], "\xff", 1, &error), error);
  const int32_t far = 1 << 30;
  assert_ok(gen_request_set_prompt_tokens(requests[0], &far, 1, &error), error);
  struct Seen seen;
  memset(&seen, 0, sizeof(seen));
  seen.stop_at = 4;
  assert_ok(gen_batch_generate_stream(*state, (const gen_request* const*)requests, kRequests, see,
                                      &seen, results, &error),
            error);
  const int expected[kRequests] = {GEN_ERROR_OUT_OF_RANGE, GEN_OK, bad, GEN_OK, GEN_ERROR_CANCELLED,
                                   GEN_ERROR_TOKENIZER};
  for (int i = 0; i < kRequests; ++i) {
    const gen_error* failure = gen_result_error(results[i]);
    assert_int_equal(failure != NULL ? failure->code : GEN_OK, expected[i]);
    assert_int_equal(seen.done[i], i == 4 ? 0 : 1);
    if (expected[i] == GEN_OK) {
      gen_result* own = alone(*state, i);
      assert_string_equal(gen_result_text(results[i], NULL), gen_result_text(own, NULL));
      gen_result_free(own);
    }
  }
  assert_int_equal(gen_result_user_code(results[4]), 77);
  assert_int_equal(gen_result_finish_reason(results[4]), GEN_FINISH_CALLBACK);
  size_t kept = 0;
  gen_result_tokens(results[4], &kept);
  assert_int_equal(kept, 4);
  for (int i = 0; i < kRequests; ++i) {
    gen_result_free(results[i]);
    gen_request_free(requests[i]);
  }
}

static void a_deadline_ends_a_request(void** state) {
  gen_request* requests[2] = {request_of(1), request_of(1)};
  gen_result* results[2];
  gen_sampling* endless = greedy(100000);
  assert_ok(gen_sampling_set_ignore_eos(endless, 1, &error), error);
  assert_ok(gen_request_set_sampling(requests[0], endless, &error), error);
  assert_ok(gen_request_set_deadline_ms(requests[0], 1, &error), error);
  assert_ok(gen_request_set_priority(requests[0], -5, &error), error);
  assert_ok(gen_batch_generate(*state, (const gen_request* const*)requests, 2, results, &error),
            error);
  const gen_error* failure = gen_result_error(results[0]);
  assert_non_null(failure);
  assert_int_equal(failure->code, GEN_ERROR_CANCELLED);
  assert_non_null(strstr(failure->message, "deadline"));
  assert_int_equal(gen_result_finish_reason(results[0]), GEN_FINISH_CANCELLED);
  assert_null(gen_result_error(results[1]));
  for (int i = 0; i < 2; ++i) {
    gen_result_free(results[i]);
    gen_request_free(requests[i]);
  }
  gen_sampling_free(endless);
}

static void a_full_queue_is_busy(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  gen_sampling* sampling = greedy(4);
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_max_batch(options, 1, &error), error);
  assert_ok(gen_options_set_max_queue(options, 1, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_session* sessions[3];
  gen_stream* streams[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) assert_ok(gen_session_new(generator, &sessions[i], &error), error);
  for (int i = 0; i < 2; ++i) {
    assert_ok(gen_stream_open(sessions[i], "One", 3, sampling, &streams[i], &error), error);
  }
  assert_fails(gen_stream_open(sessions[2], "One", 3, sampling, &streams[2], &error),
               GEN_ERROR_BUSY, "queue", error);
  assert_null(streams[2]);
  assert_int_equal(gen_session_length(sessions[2]), 0);
  /* At its end a stream makes room, not only when it is closed. */
  for (const gen_token* token = NULL;;) {
    assert_ok(gen_stream_next(streams[0], &token, &error), error);
    if (token == NULL) break;
  }
  assert_ok(gen_stream_open(sessions[2], "One", 3, sampling, &streams[2], &error), error);
  /* More requests than the queue takes wait for those of the same call. */
  gen_stream_close(streams[1]);
  gen_stream_close(streams[2]);
  gen_request* requests[kRequests];
  gen_result* results[kRequests];
  for (int i = 0; i < kRequests; ++i) requests[i] = request_of(i);
  assert_ok(gen_batch_generate(generator, (const gen_request* const*)requests, kRequests, results,
                               &error),
            error);
  for (int i = 0; i < kRequests; ++i) {
    assert_null(gen_result_error(results[i]));
    gen_result_free(results[i]);
    gen_request_free(requests[i]);
  }
  gen_stream_close(streams[0]);
  for (int i = 0; i < 3; ++i) gen_session_free(sessions[i]);
  gen_sampling_free(sampling);
  gen_free(generator);
  gen_options_free(options);
  gen_model_free(model);
}

static void bad_input(void** state) {
  gen_request* request = (gen_request*)&error;
  assert_fails(gen_request_new(NULL, &error), bad, "out", error);
  assert_ok(gen_request_new(&request, &error), error);
  assert_fails(gen_request_set_prompt(NULL, "a", 1, &error), bad, "request", error);
  assert_fails(gen_request_set_prompt(request, NULL, 1, &error), bad, "prompt", error);
  assert_fails(gen_request_set_prompt_tokens(NULL, NULL, 0, &error), bad, "request", error);
  assert_fails(gen_request_set_prompt_tokens(request, NULL, 0, &error), bad, "tokens", error);
  const int32_t token = 1;
  assert_fails(gen_request_set_prompt_tokens(request, &token, 0, &error), bad, "no tokens", error);
  assert_fails(gen_request_set_sampling(NULL, NULL, &error), bad, "request", error);
  assert_ok(gen_request_set_sampling(request, NULL, &error), error);
  assert_fails(gen_request_set_priority(NULL, 0, &error), bad, "request", error);
  assert_fails(gen_request_set_deadline_ms(NULL, 0, &error), bad, "request", error);
  assert_fails(gen_request_set_deadline_ms(request, -1, &error), bad, "-1", error);
  assert_ok(gen_request_set_deadline_ms(request, INT64_MAX, &error), error);

  gen_request* requests[2] = {request, NULL};
  gen_result* results[2] = {(gen_result*)&error, (gen_result*)&error};
  const gen_request* const* given = (const gen_request* const*)requests;
  assert_fails(gen_batch_generate(*state, given, 2, results, &error), bad, "request 1 of 2", error);
  assert_null(results[0]);
  assert_null(results[1]);
  assert_fails(gen_batch_generate(NULL, given, 1, results, &error), bad, "generator", error);
  assert_fails(gen_batch_generate(*state, NULL, 1, results, &error), bad, "requests", error);
  assert_fails(gen_batch_generate(*state, given, 1, NULL, &error), bad, "results", error);
  assert_ok(gen_batch_generate(*state, NULL, 0, NULL, &error), error);
  assert_fails(gen_batch_generate_stream(*state, given, 1, NULL, NULL, results, &error), bad,
               "callback", error);
  gen_request_free(request);
  gen_request_free(NULL);

  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_fails(gen_options_set_max_batch(options, 0, &error), bad, "[1, 512]", error);
  assert_fails(gen_options_set_max_batch(options, 513, &error), bad, "[1, 512]", error);
  assert_fails(gen_options_set_max_batch(NULL, 1, &error), bad, "options", error);
  assert_fails(gen_options_set_max_queue(options, -1, &error), bad, "-1", error);
  assert_fails(gen_options_set_max_queue(NULL, 1, &error), bad, "options", error);
  assert_fails(gen_options_set_state_snapshot_every(options, -1, &error), bad, "-1", error);
  assert_fails(gen_options_set_state_snapshot_every(NULL, 1, &error), bad, "options", error);
  assert_fails(gen_options_set_state_snapshot_budget(options, -2, &error), bad, "-2", error);
  assert_fails(gen_options_set_state_snapshot_budget(NULL, 1, &error), bad, "options", error);
  assert_ok(gen_options_set_state_snapshot_every(options, 64, &error), error);
  assert_ok(gen_options_set_state_snapshot_budget(options, -1, &error), error);
  assert_ok(gen_options_set(options, "max_batch", "8", &error), error);
  assert_ok(gen_options_set(options, "max_queue", "2147483647", &error), error);
  assert_fails(gen_options_set(options, "max_queue", "x", &error), bad, "x", error);
  gen_options_free(options);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_gets_what_it_gets_alone, make_draft_generator,
                                      free_draft_generator),
      cmocka_unit_test_setup_teardown(failures_stay_with_their_request, make_draft_generator,
                                      free_draft_generator),
      cmocka_unit_test_setup_teardown(a_deadline_ends_a_request, make_draft_generator,
                                      free_draft_generator),
      cmocka_unit_test(a_full_queue_is_busy),
      cmocka_unit_test_setup_teardown(bad_input, make_draft_generator, free_draft_generator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

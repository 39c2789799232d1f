/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h: the pull form gives what the callback form gives; order of calls; busy sessions. */
#include "api_test.h"

static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;

static void pieces_make_the_text(void** state) {
  gen_session* s = NULL;
  gen_stream* stream = NULL;
  gen_sampling* sampling = greedy(20);
  gen_result* whole = NULL;
  assert_ok(gen_generate(*state, "Once upon a time", 16, sampling, &whole, &error), error);
  assert_ok(gen_session_new(*state, &s, &error), error);
  assert_ok(gen_stream_open(s, "Once upon a time", 16, sampling, &stream, &error), error);

  gen_result* early = (gen_result*)&error;
  assert_fails(gen_stream_result(stream, &early, &error), GEN_ERROR_STATE, "end", error);
  assert_null(early);
  char text[2048] = "";
  int pieces = 0;
  int done = 0;
  int64_t prompt = 0;
  assert_ok(gen_result_usage(whole, "prompt", &prompt, &error), error);
  assert_int_equal(gen_session_length(s), prompt);
  for (;;) {
    const gen_token* token = NULL;
    assert_ok(gen_stream_next(stream, &token, &error), error);
    if (token == NULL) break;
    assert_false(done);
    strcat(text, token->text);
    if (!token->done) assert_int_equal(token->index, pieces++);
    done = token->done;
    if (done) assert_int_equal(token->finish_reason, GEN_FINISH_LENGTH);
    /* The session is in use, but cancel's and progress' neighbours answer. */
    assert_fails(gen_session_append(s, "x", 1, &error), GEN_ERROR_BUSY, "in use", error);
    /* The prompt has been run; the newest token is in the session when its piece is. */
    assert_true(gen_session_progress(s) == 1.0);
    assert_int_equal(gen_session_length(s), prompt + pieces);
  }
  assert_true(done);
  assert_int_equal(pieces, 20);
  assert_string_equal(text, gen_result_text(whole, NULL));
  const gen_token* after = (const gen_token*)&error;
  assert_ok(gen_stream_next(stream, &after, &error), error);
  assert_null(after);
  gen_result* result = NULL;
  gen_result* second = NULL;
  assert_ok(gen_stream_result(stream, &result, &error), error);
  assert_ok(gen_stream_result(stream, &second, &error), error);
  assert_string_equal(gen_result_text(result, NULL), text);
  assert_string_equal(gen_result_text(second, NULL), text);
  gen_stream_close(stream);
  gen_result_free(result);
  gen_result_free(second);
  gen_result_free(whole);
  assert_ok(gen_session_append(s, "x", 1, &error), error);
  gen_session_free(s);
  gen_sampling_free(sampling);
}

/* Those that the result tells of at its end, at each piece. */
static void alternatives_come_with_pieces(void** state) {
  gen_session* s = NULL;
  gen_stream* stream = NULL;
  gen_result* whole = NULL;
  const int32_t* ids = (const int32_t*)&error;
  const float* values = (const float*)&error;
  for (int32_t count = -1; count <= 5; count += 3) { /* -1, 2, 5 */
    gen_sampling* sampling = greedy(9);
    assert_ok(gen_sampling_set_temperature(sampling, 1, &error), error);
    assert_ok(gen_sampling_set_logprobs(sampling, count, &error), error);
    assert_ok(gen_generate(*state, "Once upon", 9, sampling, &whole, &error), error);
    assert_ok(gen_session_new(*state, &s, &error), error);
    assert_ok(gen_stream_open(s, "Once upon", 9, sampling, &stream, &error), error);
    assert_int_equal(gen_stream_alternatives(stream, &ids, &values), 0);
    assert_true(ids == NULL && values == NULL);
    const gen_token* token = NULL;
    int32_t pieces = 0;
    for (;;) {
      int32_t polled = GEN_STREAM_PENDING;
      if (pieces % 2 == 0) {
        assert_ok(gen_stream_next(stream, &token, &error), error);
      } else {
        while (polled == GEN_STREAM_PENDING)
          assert_ok(gen_stream_poll(stream, &token, &polled, &error), error);
      }
      const size_t n = gen_stream_alternatives(stream, &ids, &values);
      if (token->done) {
        assert_int_equal(n, 0);
        assert_true(ids == NULL && values == NULL);
        break;
      }
      assert_int_equal(n, count > 0 ? count : 0);
      const int32_t* wanted_ids = NULL;
      const float* wanted = NULL;
      assert_int_equal(gen_result_top_logprobs(whole, (size_t)pieces, &wanted_ids, &wanted), n);
      if (n > 0) {
        assert_memory_equal(ids, wanted_ids, n * sizeof *ids);
        assert_memory_equal(values, wanted, n * sizeof *values);
        assert_int_equal(gen_stream_alternatives(stream, NULL, NULL), n);
      }
      ++pieces;
    }
    assert_ok(gen_stream_next(stream, &token, &error), error);
    assert_int_equal(gen_stream_alternatives(stream, &ids, &values), 0);
    gen_stream_close(stream);
    gen_session_free(s);
    gen_result_free(whole);
    gen_sampling_free(sampling);
  }
  assert_int_equal(gen_stream_alternatives(NULL, &ids, &values), 0);
  assert_true(ids == NULL && values == NULL);
}

/* One thread drives several streams by looking by; each gives what it gives alone. */
static void polling_drives_many(void** state) {
  enum { kStreams = 5 };
  gen_session* sessions[kStreams];
  gen_stream* streams[kStreams];
  char text[kStreams][2048];
  int ended[kStreams] = {0};
  gen_sampling* sampling = greedy(12);
  for (int i = 0; i < kStreams; ++i) {
    const char* prompt = &"Once upon a time"[i];
    assert_ok(gen_session_new(*state, &sessions[i], &error), error);
    assert_ok(
        gen_stream_open(sessions[i], prompt, GEN_NUL_TERMINATED, sampling, &streams[i], &error),
        error);
    text[i][0] = '\0';
  }
  const gen_token* token = (const gen_token*)&error;
  int32_t what = 9;
  assert_ok(gen_stream_poll(streams[0], &token, &what, &error), error);
  assert_null(token);
  assert_int_equal(what, GEN_STREAM_PENDING);
  /* next() takes over what poll() has queued. */
  assert_ok(gen_stream_next(streams[0], &token, &error), error);
  assert_non_null(token);
  strcat(text[0], token->text);
  int rounds = 0;
  for (int open = kStreams; open > 0; ++rounds) {
    for (int i = 0; i < kStreams; ++i) {
      assert_ok(gen_stream_poll(streams[i], &token, &what, &error), error);
      assert_int_equal(token != NULL, what == GEN_STREAM_TOKEN);
      if (token != NULL) {
        assert_int_equal(ended[i], 0);
        strcat(text[i], token->text);
        ended[i] = token->done;
        open -= token->done;
      } else if (ended[i]) {
        assert_int_equal(what, GEN_STREAM_END);
      }
    }
  }
  /* Two rounds for a token: one marks, one takes. */
  assert_in_range(rounds, 12, 2 * 13 + 2);
  for (int i = 0; i < kStreams; ++i) {
    gen_result* own = NULL;
    assert_ok(
        gen_generate(*state, &"Once upon a time"[i], GEN_NUL_TERMINATED, sampling, &own, &error),
        error);
    assert_string_equal(text[i], gen_result_text(own, NULL));
    gen_result_free(own);
    gen_stream_close(streams[i]);
  }
  /* A stream that is closed while it is marked leaves nothing behind. */
  for (int i = 0; i < 2; ++i) {
    assert_ok(gen_stream_open(sessions[i], "", 0, sampling, &streams[i], &error), error);
    assert_ok(gen_stream_poll(streams[i], &token, &what, &error), error);
  }
  gen_stream_close(streams[1]);
  assert_ok(gen_stream_poll(streams[0], &token, &what, &error), error);
  assert_int_equal(what, GEN_STREAM_TOKEN);
  gen_session_cancel(sessions[0]);
  assert_ok(gen_stream_poll(streams[0], &token, &what, &error), error);
  assert_int_equal(token->done, 1);
  assert_fails(gen_stream_poll(streams[0], &token, &what, &error), GEN_ERROR_CANCELLED, "cancelled",
               error);
  assert_int_equal(what, GEN_STREAM_END);
  assert_fails(gen_stream_poll(NULL, &token, &what, &error), bad, "stream", error);
  assert_fails(gen_stream_poll(streams[0], NULL, &what, &error), bad, "token", error);
  assert_fails(gen_stream_poll(streams[0], &token, NULL, &error), bad, "state", error);
  gen_stream_close(streams[0]);
  for (int i = 0; i < kStreams; ++i) gen_session_free(sessions[i]);
  gen_sampling_free(sampling);
}

static void a_cancel_ends_it(void** state) {
  gen_session* s = NULL;
  gen_stream* stream = NULL;
  gen_sampling* sampling = greedy(100);
  const gen_token* token = NULL;
  assert_ok(gen_session_new(*state, &s, &error), error);
  assert_ok(gen_stream_open(s, "Once upon a time", 16, sampling, &stream, &error), error);
  for (int i = 0; i < 3; ++i) assert_ok(gen_stream_next(stream, &token, &error), error);
  gen_session_cancel(s);
  assert_ok(gen_stream_next(stream, &token, &error), error);
  assert_int_equal(token->done, 1);
  assert_int_equal(token->finish_reason, GEN_FINISH_CANCELLED);
  assert_fails(gen_stream_next(stream, &token, &error), GEN_ERROR_CANCELLED, "", error);
  assert_null(token);
  gen_result* result = NULL;
  assert_ok(gen_stream_result(stream, &result, &error), error);
  size_t n = 0;
  gen_result_tokens(result, &n);
  assert_int_equal(n, 3);
  assert_int_equal(gen_result_error(result)->code, GEN_ERROR_CANCELLED);
  gen_result_free(result);
  gen_stream_close(stream);
  gen_session_free(s);
  gen_sampling_free(sampling);
}

static void closing_half_way_keeps_the_tokens(void** state) {
  gen_session* s = NULL;
  gen_stream* stream = NULL;
  gen_sampling* sampling = greedy(100);
  const gen_token* token = NULL;
  assert_ok(gen_session_new(*state, &s, &error), error);
  assert_ok(gen_stream_open(s, "Once upon a time", 16, sampling, &stream, &error), error);
  for (int i = 0; i < 5; ++i) assert_ok(gen_stream_next(stream, &token, &error), error);
  gen_stream_close(stream);
  int64_t length = 0;
  gen_result* whole = NULL;
  assert_ok(gen_generate(*state, "Once upon a time", 16, sampling, &whole, &error), error);
  assert_ok(gen_result_usage(whole, "prompt", &length, &error), error);
  gen_result_free(whole);
  assert_int_equal(gen_session_length(s), length + 5);
  gen_result* result = NULL;
  assert_ok(gen_session_generate(s, "", 0, sampling, &result, &error), error);
  gen_result_free(result);
  gen_session_free(s);
  gen_sampling_free(sampling);
}

static void a_stream_outlives_its_handles(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* g = NULL;
  gen_session* s = NULL;
  gen_stream* stream = NULL;
  gen_sampling* sampling = greedy(4);
  const gen_token* token = NULL;
  assert_ok(gen_create(model, NULL, &g, &error), error);
  assert_ok(gen_session_new(g, &s, &error), error);
  assert_ok(gen_stream_open(s, "Once", 4, sampling, &stream, &error), error);
  gen_sampling_free(sampling);
  gen_session_free(s);
  gen_free(g);
  gen_model_free(model);
  int pieces = 0;
  do {
    assert_ok(gen_stream_next(stream, &token, &error), error);
    ++pieces;
  } while (token != NULL);
  assert_int_equal(pieces, 6); /* four tokens, done, nothing */
  gen_stream_close(stream);
}

static void open_and_next_refuse(void** state) {
  gen_session* s = NULL;
  gen_stream* stream = (gen_stream*)&error;
  const gen_token* token = NULL;
  gen_result* result = NULL;
  assert_ok(gen_session_new(*state, &s, &error), error);
  assert_fails(gen_stream_open(NULL, "a", 1, NULL, &stream, &error), bad, "session", error);
  assert_null(stream);
  assert_fails(gen_stream_open(s, "a", 1, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_stream_open(s, NULL, 3, NULL, &stream, &error), bad, "prompt", error);
  assert_fails(gen_stream_open(s, "\xff", 1, NULL, &stream, &error), GEN_ERROR_TOKENIZER, "0",
               error);
  assert_fails(gen_stream_open(s, "", 0, NULL, &stream, &error), bad, "", error);
  assert_ok(gen_stream_open(s, "a", 1, NULL, &stream, &error), error);
  gen_stream* other = (gen_stream*)&error;
  assert_fails(gen_stream_open(s, "a", 1, NULL, &other, &error), GEN_ERROR_BUSY, "in use", error);
  assert_null(other);
  assert_fails(gen_stream_next(NULL, &token, &error), bad, "stream", error);
  assert_fails(gen_stream_next(stream, NULL, &error), bad, "token", error);
  assert_fails(gen_stream_result(NULL, &result, &error), bad, "stream", error);
  assert_fails(gen_stream_result(stream, NULL, &error), bad, "result", error);
  gen_stream_close(stream);
  gen_stream_close(NULL);
  assert_int_equal(gen_session_length(s), 0); /* closed before it ran anything */
  gen_session_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces_make_the_text),
      cmocka_unit_test(alternatives_come_with_pieces),
      cmocka_unit_test(polling_drives_many),
      cmocka_unit_test(a_cancel_ends_it),
      cmocka_unit_test(closing_half_way_keeps_the_tokens),
      cmocka_unit_test(a_stream_outlives_its_handles),
      cmocka_unit_test(open_and_next_refuse),
  };
  return cmocka_run_group_tests(tests, make_draft_generator, free_draft_generator);
}

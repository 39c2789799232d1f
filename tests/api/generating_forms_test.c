/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of generating says what the headers promise: one table of failures, each run through all forms. The statuses
 * of a model's function stand for what the library's own steps may meet, which they pass on unchanged.
 */
#include "toy_model.h"


struct ask {
  gen_generator* generator;
  const char* prompt;
  size_t len;
  const int32_t* tokens; /* appended before, where the form has a session */
  size_t n_tokens;
  const gen_sampling* sampling;
};

static int go_on(void* user, const gen_token* token) {
  (void)user;
  (void)token;
  return 0;
}

static gen_session* session_of(const struct ask* ask) {
  gen_session* session = open_session(ask->generator);
  if (ask->n_tokens > 0) {
    assert_ok(gen_session_append_tokens(session, ask->tokens, ask->n_tokens, &error), error);
  }
  return session;
}

static gen_status one_shot(const struct ask* ask) {
  gen_result* result = NULL;
  const gen_status status =
      gen_generate(ask->generator, ask->prompt, ask->len, ask->sampling, &result, &error);
  gen_result_free(result);
  return status;
}

static gen_status one_shot_stream(const struct ask* ask) {
  return gen_generate_stream(ask->generator, ask->prompt, ask->len, ask->sampling, go_on, NULL, NULL,
                             &error);
}

static gen_status in_session(const struct ask* ask) {
  gen_session* session = session_of(ask);
  const int32_t before = gen_session_length(session);
  const gen_status status =
      gen_session_generate(session, ask->prompt, ask->len, ask->sampling, NULL, &error);
  if (status != GEN_OK && status != GEN_ERROR_CANCELLED) {
    assert_int_equal(gen_session_length(session), before);
  }
  gen_session_free(session);
  return status;
}

static gen_status in_session_stream(const struct ask* ask) {
  gen_session* session = session_of(ask);
  const gen_status status = gen_session_generate_stream(session, ask->prompt, ask->len, ask->sampling,
                                                        go_on, NULL, NULL, &error);
  gen_session_free(session);
  return status;
}

static gen_status pulled(const struct ask* ask) {
  gen_session* session = session_of(ask);
  gen_stream* stream = NULL;
  const gen_token* token = NULL;
  gen_status status = gen_stream_open(session, ask->prompt, ask->len, ask->sampling, &stream, &error);
  if (status == GEN_OK) {
    do {
      status = gen_stream_next(stream, &token, &error);
    } while (status == GEN_OK && token != NULL);
  }
  gen_stream_close(stream);
  gen_session_free(session);
  return status;
}

static gen_status polled(const struct ask* ask) {
  gen_session* session = session_of(ask);
  gen_stream* stream = NULL;
  const gen_token* token = NULL;
  int32_t state = GEN_STREAM_PENDING;
  gen_status status = gen_stream_open(session, ask->prompt, ask->len, ask->sampling, &stream, &error);
  while (status == GEN_OK && state != GEN_STREAM_END) {
    status = gen_stream_poll(stream, &token, &state, &error);
  }
  gen_stream_close(stream);
  gen_session_free(session);
  return status;
}

static const struct form {
  const char* name;
  gen_status (*run)(const struct ask* ask);
  int in_session;
} forms[] = {
    {"gen_generate", one_shot, 0},
    {"gen_generate_stream", one_shot_stream, 0},
    {"gen_session_generate", in_session, 1},
    {"gen_session_generate_stream", in_session_stream, 1},
    {"gen_stream_next", pulled, 1},
    {"gen_stream_poll", polled, 1},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static void assert_status(const struct form* form, const struct ask* ask, gen_status wanted) {
  memset(&error, 0, sizeof error);
  const gen_status status = form->run(ask);
  if (status != wanted) {
    fail_msg("%s gave %s (%s), not %s", form->name, gen_status_name(status), error.message,
             gen_status_name(wanted));
  }
  if (wanted == GEN_OK) return;
  assert_int_equal(error.code, wanted);
  assert_int_not_equal(error.message[0], '\0');
}

static void what_is_asked_for(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_generator* plain = NULL;
  assert_ok(gen_create(model, NULL, &plain, &error), error);
  char* many = malloc(200000);
  many[0] = '\0';
  for (size_t at = 0; at + 20 < 200000; at += 18) strcpy(many + at, "a dog and a house ");
  gen_sampling* usual = greedy(4);
  gen_sampling* outside = greedy(4);
  gen_sampling* bias = greedy(4);
  gen_sampling* stopped = greedy(4);
  gen_cancel* cancel = NULL;
  assert_ok(gen_sampling_add_stop_token(outside, 4096, &error), error);
  assert_ok(gen_sampling_set_logit_bias(bias, 4096, 1, &error), error);
  assert_ok(gen_cancel_new(&cancel, &error), error);
  assert_ok(gen_sampling_set_cancel(stopped, cancel, &error), error);
  gen_cancel_fire(cancel);

  const struct {
    struct ask ask;
    gen_status status;
  } cases[] = {
      {{plain, "Once", 4, NULL, 0, usual}, GEN_OK},
      {{plain, "Once", 4, NULL, 0, NULL}, GEN_OK},
      {{plain, NULL, 3, NULL, 0, usual}, GEN_ERROR_INVALID_ARGUMENT},
      {{plain, "", 0, NULL, 0, usual}, GEN_ERROR_INVALID_ARGUMENT},
      {{plain, "ab\xff", 3, NULL, 0, usual}, GEN_ERROR_TOKENIZER},
      {{plain, many, GEN_NUL_TERMINATED, NULL, 0, usual}, GEN_ERROR_CONTEXT_FULL},
      {{plain, "Once", 4, NULL, 0, outside}, GEN_ERROR_OUT_OF_RANGE},
      {{plain, "Once", 4, NULL, 0, bias}, GEN_ERROR_OUT_OF_RANGE},
      {{plain, "Once", 4, NULL, 0, stopped}, GEN_ERROR_CANCELLED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    for (int form = 0; form < FORMS; ++form) {
      assert_status(&forms[form], &cases[i].ask, cases[i].status);
    }
  }
  free(many);
  gen_sampling_free(usual);
  gen_sampling_free(outside);
  gen_sampling_free(bias);
  gen_sampling_free(stopped);
  gen_cancel_free(cancel);
  gen_free(plain);
  gen_model_free(model);
}

/* Whatever a step may meet comes out of the call as it is, and the next call goes on. */
static void what_a_step_may_meet(void** state) {
  (void)state;
  static const gen_status statuses[] = {GEN_ERROR_MODEL,          GEN_ERROR_IO,
                                        GEN_ERROR_FORMAT,         GEN_ERROR_POOL_EXHAUSTED,
                                        GEN_ERROR_OUT_OF_MEMORY,  GEN_ERROR_DEVICE,
                                        GEN_ERROR_UNSUPPORTED};
  const int32_t tokens[] = {3, 1, 4, 1, 5};
  for (int form = 0; form < FORMS; ++form) {
    if (!forms[form].in_session) continue; /* a model without a tokenizer takes no text */
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; ++i) {
      struct toy toy = {.at = -1, .fault = TOY_STATUS, .status = statuses[i], .message = "as told"};
      const gen_forward table = table_of(&toy, WITH_STATE);
      gen_generator* generator = toy_generator(&table, NULL);
      gen_sampling* sampling = greedy(5);
      const struct ask ask = {generator, "", 0, tokens, 5, sampling};
      toy.at = 2; /* appending is the first call */
      assert_status(&forms[form], &ask, statuses[i]);
      assert_string_equal(error.message, "as told");
      assert_status(&forms[form], &ask, GEN_OK);
      gen_sampling_free(sampling);
      gen_free(generator);
      assert_balanced(&toy);
    }
    /* And what is no number is MODEL. */
    struct toy toy = {.at = 2, .fault = TOY_NAN};
    const gen_forward table = table_of(&toy, WITH_STATE);
    gen_generator* generator = toy_generator(&table, NULL);
    const struct ask ask = {generator, "", 0, tokens, 5, NULL};
    assert_status(&forms[form], &ask, GEN_ERROR_MODEL);
    gen_free(generator);
    assert_balanced(&toy);
  }
}

/* A generator that takes no more calls says BUSY, and so does a session that is in use. */
static void what_is_busy(void** state) {
  (void)state;
  gen_model* model = load_draft();
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_max_batch(options, 1, &error), error);
  assert_ok(gen_options_set_max_queue(options, 1, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_session* sessions[2];
  gen_stream* streams[2];
  for (int i = 0; i < 2; ++i) {
    sessions[i] = open_session(generator);
    assert_ok(gen_stream_open(sessions[i], "Once", 4, NULL, &streams[i], &error), error);
  }
  const struct ask ask = {generator, "Once", 4, NULL, 0, NULL};
  for (int form = 0; form < FORMS; ++form) assert_status(&forms[form], &ask, GEN_ERROR_BUSY);

  gen_session* s = sessions[0];
  const gen_status busy = GEN_ERROR_BUSY;
  gen_session* fork = NULL;
  gen_stream* stream = NULL;
  const int32_t one = 1;
  size_t n = 0;
  assert_fails(gen_session_generate(s, "a", 1, NULL, NULL, &error), busy, "in use", error);
  assert_fails(gen_session_generate_stream(s, "a", 1, NULL, go_on, NULL, NULL, &error), busy, "in use", error);
  assert_fails(gen_session_append(s, "a", 1, &error), busy, "in use", error);
  assert_fails(gen_session_append_tokens(s, &one, 1, &error), busy, "in use", error);
  assert_fails(gen_session_score(s, "a", 1, NULL, 0, &n, &error), busy, "in use", error);
  assert_fails(gen_session_tokens(s, NULL, 0, &n, &error), busy, "in use", error);
  assert_fails(gen_session_truncate(s, 0, &error), busy, "in use", error);
  assert_fails(gen_session_reset(s, &error), busy, "in use", error);
  assert_fails(gen_session_fork(s, &fork, &error), busy, "in use", error);
  assert_fails(gen_session_save(s, "/nowhere/at/all", &error), busy, "in use", error);
  assert_fails(gen_session_save_buffer(s, NULL, 0, &n, &error), busy, "in use", error);
  assert_fails(gen_session_load_buffer(s, &one, sizeof one, &error), busy, "in use", error);
  assert_fails(gen_session_set_cancel(s, NULL, &error), busy, "in use", error);
  assert_fails(gen_stream_open(s, "a", 1, NULL, &stream, &error), busy, "in use", error);
  const kv_cache* cache = gen_session_cache(s);
  assert_fails(kv_cache_get(cache, 0, NULL, 0, NULL, 0, NULL, NULL, &error), busy, "in use", error);
  assert_fails(kv_cache_memory_bytes(cache, NULL, NULL, NULL, &error), busy, "in use", error);
  assert_fails(kv_cache_describe(cache, NULL, 0, &n, &error), busy, "in use", error);
  assert_fails(kv_cache_save_buffer(cache, NULL, 0, &n, &error), busy, "in use", error);

  for (int i = 0; i < 2; ++i) {
    gen_stream_close(streams[i]);
    gen_session_free(sessions[i]);
  }
  gen_free(generator);
  gen_options_free(options);
  gen_model_free(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_asked_for),
      cmocka_unit_test(what_a_step_may_meet),
      cmocka_unit_test(what_is_busy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* gen_sampling_set_logits_callback: what it is shown, what its edits do, and how it ends a call. */
#include "api_test.h"

#include <math.h>

static gen_model* model;
static gen_generator* generator;
static size_t vocab;

static int load(void** state) {
  (void)state;
  model = load_draft();
  vocab = (size_t)gen_tokenizer_vocab_size(gen_model_tokenizer(model));
  return gen_create(model, NULL, &generator, &error) == GEN_OK ? 0 : -1;
}
static int unload(void** state) {
  (void)state;
  gen_free(generator);
  gen_model_free(model);
  return 0;
}

struct hook {
  int calls;
  int fails_at; /* the call that gives `status`; -1: none */
  gen_status status;
  const char* message;
  int32_t forced; /* the only token that is left; -1: nothing is done */
  float value;    /* written to token 0 if it is not 0 */
  gen_session* session;
  int32_t tokens[512]; /* as last shown */
  size_t count;
};

static gen_status edit(void* user, float* logits, size_t n, const int32_t* tokens, size_t count,
                       size_t said, gen_error* failure) {
  struct hook* hook = user;
  assert_int_equal(n, vocab);
  assert_int_equal(said, hook->calls);
  assert_true(count >= said && count <= 512);
  if (hook->count > 0) { /* one more than at the call before, the others are the same */
    assert_int_equal(count, hook->count + 1);
    assert_memory_equal(tokens, hook->tokens, hook->count * sizeof *tokens);
  }
  memcpy(hook->tokens, tokens, count * sizeof *tokens);
  hook->count = count;
  if (hook->session != NULL) {
    gen_error refused;
    assert_fails(gen_session_append(hook->session, "x", 1, &refused), GEN_ERROR_BUSY, "in use",
                 refused);
    assert_int_equal(gen_session_length(hook->session), count);
  }
  if (hook->value != 0) logits[0] = hook->value;
  if (hook->forced >= 0) {
    for (size_t i = 0; i < n; ++i) {
      if (i != (size_t)hook->forced) logits[i] = -INFINITY;
    }
  }
  if (hook->calls++ != hook->fails_at) return GEN_OK;
  if (hook->message != NULL)
    snprintf(failure->message, sizeof failure->message, "%s", hook->message);
  return hook->status;
}

static struct hook quiet(void) {
  struct hook hook = {0};
  hook.fails_at = hook.forced = -1;
  return hook;
}

static gen_sampling* settings(struct hook* hook, double temperature) {
  gen_sampling* sampling = greedy(6);
  assert_ok(gen_sampling_set_temperature(sampling, temperature, &error), error);
  assert_ok(gen_sampling_set_seed(sampling, 5, &error), error);
  assert_ok(gen_sampling_set_ignore_eos(sampling, 1, &error), error);
  if (hook != NULL)
    assert_ok(gen_sampling_set_logits_callback(sampling, edit, hook, &error), error);
  return sampling;
}

static void same_tokens(const gen_result* a, const gen_result* b) {
  size_t n = 0, m = 0;
  const int32_t* left = gen_result_tokens(a, &n);
  const int32_t* right = gen_result_tokens(b, &m);
  assert_int_equal(n, m);
  assert_memory_equal(left, right, n * sizeof *left);
}

/* One that does nothing changes nothing; it sees all tokens, of this call and before. */
static void sees_every_step(void** state) {
  (void)state;
  for (int i = 0; i < 2; ++i) {
    struct hook hook = quiet();
    gen_sampling* plain = settings(NULL, i);
    gen_sampling* seen = settings(&hook, i);
    gen_result *expected = NULL, *result = NULL;
    gen_session* session = NULL;
    assert_ok(gen_generate(generator, "Once upon a time", 16, plain, &expected, &error), error);
    assert_ok(gen_session_new(generator, &session, &error), error);
    hook.session = session;
    assert_ok(gen_session_generate(session, "Once upon a time", 16, seen, &result, &error), error);
    same_tokens(result, expected);
    assert_int_equal(hook.calls, 6);
    size_t n = 0;
    const int32_t* tokens = gen_result_tokens(result, &n);
    assert_int_equal(hook.count, gen_session_length(session) - 1);
    assert_memory_equal(hook.tokens + hook.count - 5, tokens, 5 * sizeof *tokens);
    gen_result_free(result);
    /* NULL takes it back. */
    assert_ok(gen_sampling_set_logits_callback(seen, NULL, NULL, &error), error);
    assert_ok(gen_generate(generator, "Once upon a time", 16, seen, &result, &error), error);
    same_tokens(result, expected);
    assert_int_equal(hook.calls, 6);
    gen_result_free(result);
    gen_result_free(expected);
    gen_session_free(session);
    gen_sampling_free(plain);
    gen_sampling_free(seen);
  }
}

/* The first of all stages: a bias comes on top. In streams and batches, too. */
static void edits_decide(void** state) {
  (void)state;
  for (int temperature = 0; temperature < 2; ++temperature) {
    struct hook hook = quiet();
    hook.forced = 77;
    gen_sampling* sampling = settings(&hook, temperature);
    gen_session* session = NULL;
    gen_stream* stream = NULL;
    assert_ok(gen_session_new(generator, &session, &error), error);
    assert_ok(gen_stream_open(session, "Once", 4, sampling, &stream, &error), error);
    const gen_token* token = NULL;
    for (int i = 0; i < 6; ++i) {
      assert_ok(gen_stream_next(stream, &token, &error), error);
      assert_int_equal(token->id, 77);
    }
    gen_stream_close(stream);
    gen_session_free(session);
    hook = quiet();
    hook.forced = 78;
    gen_request* request = NULL;
    gen_result* result = NULL;
    assert_ok(gen_request_new(&request, &error), error);
    assert_ok(gen_request_set_prompt(request, "Once", 4, &error), error);
    assert_ok(gen_request_set_sampling(request, sampling, &error), error);
    assert_ok(
        gen_batch_generate(generator, (const gen_request* const*)&request, 1, &result, &error),
        error);
    size_t n = 0;
    const int32_t* tokens = gen_result_tokens(result, &n);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; ++i) assert_int_equal(tokens[i], 78);
    gen_result_free(result);
    gen_request_free(request);
    /* Nothing is left. */
    hook = quiet();
    hook.forced = 78;
    assert_ok(gen_sampling_set_logit_bias(sampling, 78, -INFINITY, &error), error);
    assert_fails(gen_generate(generator, "Once", 4, sampling, &result, &error), GEN_ERROR_MODEL,
                 "no token possible", error);
    gen_result_free(result);
    gen_sampling_free(sampling);
  }
}

/* The status and the message are the callback's, and the session is as before; it can go on. */
static void failures_end_the_call(void** state) {
  (void)state;
  static const struct {
    gen_status status;
    const char* message;
    gen_status wanted;
    const char* part;
  } cases[] = {{GEN_ERROR_IO, "no such table", GEN_ERROR_IO, "no such table"},
               {GEN_ERROR_GRAMMAR, NULL, GEN_ERROR_GRAMMAR, "the logits callback gave"},
               {5, "five", GEN_ERROR_MODEL, "gave 5, which is not a status: five"},
               {-1000, NULL, GEN_ERROR_MODEL, "gave -1000, which is not a status"}};
  gen_session* session = NULL;
  gen_sampling* plain = settings(NULL, 1);
  gen_result *expected = NULL, *result = NULL;
  assert_ok(gen_generate(generator, "Once upon", 9, plain, &expected, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    struct hook hook = quiet();
    hook.fails_at = (int)i;
    hook.status = cases[i].status;
    hook.message = cases[i].message;
    gen_sampling* sampling = settings(&hook, 1);
    assert_fails(gen_session_generate(session, "Once upon", 9, sampling, &result, &error),
                 cases[i].wanted, cases[i].part, error);
    assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_ERROR);
    assert_int_equal(gen_session_length(session), 0);
    gen_result_free(result);
    gen_sampling_free(sampling);
  }
  struct hook hook = quiet();
  hook.fails_at = 2;
  hook.status = GEN_ERROR_CANCELLED;
  gen_sampling* sampling = settings(&hook, 1);
  assert_fails(gen_session_generate(session, "Once upon", 9, sampling, &result, &error),
               GEN_ERROR_CANCELLED, "logits callback", error);
  assert_int_equal(gen_result_finish_reason(result), GEN_FINISH_CANCELLED);
  size_t n = 0;
  const int32_t* tokens = gen_result_tokens(result, &n);
  assert_int_equal(n, 2);
  assert_memory_equal(tokens, gen_result_tokens(expected, NULL), 2 * sizeof *tokens);
  assert_int_equal(gen_session_length(session), hook.count);
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session_reset(session, &error);
  assert_ok(gen_session_generate(session, "Once upon", 9, plain, &result, &error), error);
  same_tokens(result, expected);
  gen_result_free(result);
  gen_result_free(expected);
  gen_sampling_free(plain);
  gen_session_free(session);
}

static void wrong_logits_are_refused(void** state) {
  (void)state;
  for (int i = 0; i < 2; ++i) {
    struct hook hook = quiet();
    hook.value = i == 0 ? NAN : INFINITY;
    gen_sampling* sampling = settings(&hook, i);
    gen_result* result = NULL;
    assert_fails(gen_generate(generator, "Once", 4, sampling, &result, &error), GEN_ERROR_MODEL,
                 "token 0", error);
    gen_result_free(result);
    gen_sampling_free(sampling);
  }
  assert_fails(gen_sampling_set_logits_callback(NULL, edit, NULL, &error),
               GEN_ERROR_INVALID_ARGUMENT, "sampling", error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sees_every_step),
      cmocka_unit_test(edits_decide),
      cmocka_unit_test(failures_end_the_call),
      cmocka_unit_test(wrong_logits_are_refused),
  };
  return cmocka_run_group_tests(tests, load, unload);
}

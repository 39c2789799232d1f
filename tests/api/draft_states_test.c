/* SPDX-License-Identifier: Apache-2.0 */
/* Draft models with a state of their own: one that can go back follows its session through passes
 * that fail, forks and cuts, and any other is refused. Guesses where a context shifts. */
#include "toy_model.h"


static int64_t usage(const gen_result* result, const char* key) {
  int64_t value = -1;
  assert_ok(gen_result_usage(result, key, &value, &error), error);
  return value;
}

/* Guesses five tokens a pass, whatever that costs. */
static gen_session* drafted_session(const gen_model* target, const gen_model* draft) {
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  gen_session* session = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  assert_ok(gen_options_set_speculative_draft(options, draft, 5, &error), error);
  assert_ok(gen_create(target, options, &generator, &error), error);
  assert_ok(gen_session_new(generator, &session, &error), error);
  gen_free(generator);
  gen_options_free(options);
  return session;
}

/* Says what the target says; how many of the guesses were right, and how many there were. */
static void say(gen_session* session, int32_t more, int64_t* accepted, int64_t* drafted) {
  int32_t all[TOY_CONTEXT];
  size_t n = 0, said = 0;
  gen_result* result = NULL;
  gen_sampling* sampling = greedy(more);
  assert_ok(gen_session_tokens(session, all, TOY_CONTEXT, &n, &error), error);
  toy_expect(all, (int32_t)n, more, 0);
  assert_ok(gen_session_generate(session, "", 0, sampling, &result, &error), error);
  const int32_t* tokens = gen_result_tokens(result, &said);
  assert_int_equal(said, more);
  assert_memory_equal(tokens, all + n, said * sizeof *tokens);
  *accepted += usage(result, "accepted");
  *drafted += usage(result, "drafted");
  gen_result_free(result);
  gen_sampling_free(sampling);
}

static void states_that_go_back(void** state) {
  (void)state;
  static const int32_t text[] = {3, 4, 5, 6, 7};
  for (int clones = 0; clones < 2; ++clones) {
    for (int at = -1; at < 14; ++at) {
      struct toy toys[2];
      memset(toys, 0, sizeof toys);
      gen_forward tables[2] = {toy_table(&toys[0]), toy_table(&toys[1])};
      if (!clones) tables[1].state_clone = NULL;
      gen_model* target = toy_model(&tables[0]);
      gen_model* draft = toy_model(&tables[1]);
      gen_session* session = drafted_session(target, draft);
      gen_session* fork = NULL;
      toys[1].fault = TOY_STATUS;
      toys[1].status = GEN_ERROR_IO;
      toys[1].at = at;
      toys[1].refuse_truncate = at > 10; /* and then the state is lost, too */
      int64_t accepted = 0, drafted = 0;
      assert_ok(gen_session_append_tokens(session, text, 5, &error), error);
      say(session, 20, &accepted, &drafted);
      toys[1].refuse_truncate = 0;
      assert_ok(gen_session_fork(session, &fork, &error), error);
      assert_ok(gen_session_truncate(session, 11, &error), error);
      assert_ok(gen_session_append_tokens(session, text, 2, &error), error);
      say(session, 20, &accepted, &drafted);
      say(fork, 20, &accepted, &drafted);
      assert_int_equal(accepted, drafted); /* the two say the same */
      assert_true(drafted >= (at < 0 ? 45 : 40));
      assert_true(toys[1].calls > at);
      gen_session_free(session);
      gen_session_free(fork);
      gen_model_free(target);
      gen_model_free(draft);
      assert_balanced(&toys[0]);
      assert_balanced(&toys[1]);
    }
  }
}

static void a_state_that_cannot_go_back(void** state) {
  (void)state;
  struct toy toys[2];
  memset(toys, 0, sizeof toys);
  gen_forward tables[2] = {toy_table(&toys[0]), table_of(&toys[1], ONE_WAY)};
  gen_model* target = toy_model(&tables[0]);
  gen_model* draft = toy_model(&tables[1]);
  gen_speculative* speculative = NULL;
  assert_fails(gen_speculative_new(draft, target, 4, NULL, &speculative, &error),
               GEN_ERROR_UNSUPPORTED, "cannot go back", error);
  gen_model_free(target);
  gen_model_free(draft);
  assert_balanced(&toys[0]);
  assert_balanced(&toys[1]);
}

/* A call that says more than a context holds has guesses to its end. */
static void a_context_that_shifts(void** state) {
  (void)state;
  enum { SAID = 4 * TOY_CONTEXT };
  static const int32_t text[] = {3, 4, 5};
  struct toy toy;
  memset(&toy, 0, sizeof toy);
  gen_forward table = table_of(&toy, STATELESS);
  gen_options* options = NULL;
  gen_session* session = NULL;
  gen_result* result = NULL;
  size_t n = 0;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set_context_policy(options, "shift", 2, &error), error);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  assert_ok(gen_options_set_prompt_lookup(options, 1, 5, &error), error);
  gen_generator* generator = toy_generator(&table, options);
  gen_options_free(options);
  gen_sampling* sampling = greedy(SAID);
  assert_ok(gen_session_new(generator, &session, &error), error);
  gen_free(generator);
  assert_ok(gen_session_append_tokens(session, text, 3, &error), error);
  assert_ok(gen_session_generate(session, "", 0, sampling, &result, &error), error);
  const int32_t* said = gen_result_tokens(result, &n);
  assert_int_equal(n, SAID);
  for (size_t i = 1; i < n; ++i) assert_int_equal(said[i], toy_next(&said[i - 1], 1, 1));
  assert_true(usage(result, "dropped") > 2 * TOY_CONTEXT);
  assert_true(usage(result, "accepted") > SAID / 2); /* what follows a token is what came then */
  gen_result_free(result);
  gen_sampling_free(sampling);
  gen_session_free(session);
  assert_balanced(&toy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(states_that_go_back),
      cmocka_unit_test(a_state_that_cannot_go_back),
      cmocka_unit_test(a_context_that_shifts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

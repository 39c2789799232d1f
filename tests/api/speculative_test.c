/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts from C: what is said does not change, what they brought is told, and which draft models
 * are refused. */
#include "draft_calls.h"

static gen_sampling* drawing(double temperature) {
  gen_sampling* sampling = greedy(60);
  assert_ok(gen_sampling_set_temperature(sampling, temperature, &error), error);
  assert_ok(gen_sampling_set_logprobs(sampling, 2, &error), error);
  return sampling;
}

static void drafts_change_nothing(void** state) {
  (void)state;
  gen_model* draft = load_draft();
  gen_model* story = NULL;
  assert_ok(gen_model_load(STORY_MODEL, NULL, &story, &error), error);
  gen_generator* plain = generator_with(story, NULL);
  gen_generator* drafted[4];
  gen_options* options = options_new();
  assert_ok(gen_options_set_prompt_lookup(options, 3, 6, &error), error);
  drafted[0] = generator_with(story, options);
  options = options_new();
  assert_ok(gen_options_set(options, "suffix_lookup", "8,4096", &error), error);
  drafted[1] = generator_with(story, options);
  options = options_new();
  assert_ok(gen_options_set_speculative_draft(options, draft, 3, &error), error);
  drafted[2] = generator_with(story, options);
  options = options_new();
  assert_ok(gen_options_set_prompt_lookup(options, 3, 0, &error), error);
  assert_ok(gen_options_set_speculative_draft(options, draft, 0, &error), error);
  drafted[3] = generator_with(story, options);
  gen_model_free(draft); /* the generators keep it */
  gen_model_free(story);
  for (int t = 0; t < 2; ++t) {
    gen_sampling* sampling = drawing(0.7 * t);
    gen_result* want = said_by(plain, sampling);
    assert_int_equal(usage(want, "drafted"), 0);
    assert_int_equal(usage(want, "accepted"), 0);
    for (int i = 0; i < 4; ++i) {
      gen_result* got = said_by(drafted[i], sampling);
      assert_same(got, want);
      assert_true(usage(got, "drafted") > 0);
      if (i >= 2) assert_true(usage(got, "accepted") > 5);
      assert_true(usage(got, "accepted") <= usage(got, "drafted"));
      gen_result_free(got);
    }
    gen_result_free(want);
    gen_sampling_free(sampling);
  }
  gen_free(plain);
  for (int i = 0; i < 4; ++i) gen_free(drafted[i]);
}

/* Models of one's own with a state: one that goes back has drafts, from either lookup, and so has
 * one that can be copied. One that cannot do either is refused. */
static void states_go_back_or_are_copied(void** state) {
  (void)state;
  for (int how = 0; how < 3; ++how) {
    struct toy toy;
    memset(&toy, 0, sizeof toy);
    gen_forward table = toy_table(&toy);
    if (how == 0) table.state_clone = NULL;
    if (how == 1) table.state_truncate = NULL;
    gen_model* model = toy_model(&table);
    for (int which = 0; which < 2; ++which) {
      gen_options* options = options_new();
      assert_ok(which == 0 ? gen_options_set_prompt_lookup(options, 1, 5, &error)
                           : gen_options_set(options, "suffix_lookup", "5", &error),
                error);
      gen_generator* generator = generator_with(model, options);
      gen_session* session = NULL;
      gen_result* result = NULL;
      gen_sampling* sampling = greedy(60);
      int32_t tokens[TOY_CONTEXT] = {3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4};
      toy_expect(tokens, 11, 120, 0);
      assert_ok(gen_session_new(generator, &session, &error), error);
      assert_ok(gen_session_append_tokens(session, tokens, 11, &error), error);
      int64_t drafted = 0;
      for (int turn = 0; turn < 2; ++turn) {
        assert_ok(gen_session_generate(session, "", 0, sampling, &result, &error), error);
        size_t n = 0;
        const int32_t* said = gen_result_tokens(result, &n);
        assert_int_equal(n, 60);
        assert_memory_equal(said, tokens + 11 + 60 * turn, 60 * sizeof *said);
        drafted += usage(result, "drafted");
        gen_result_free(result);
      }
      assert_true(drafted > (which == 0 ? 10 : 0));
      assert_int_equal(toy.clones > 0, how == 1);
      gen_sampling_free(sampling);
      gen_session_free(session);
      gen_free(generator);
    }
    gen_model_free(model);
    assert_int_equal(toy.wrong, 0);
    assert_int_equal(toy.news + toy.clones, toy.frees);
  }
}

static void drafts_that_cannot_be(void** state) {
  (void)state;
  struct toy toys[3];
  gen_forward forwards[3];
  memset(toys, 0, sizeof toys);
  gen_model* model = toy_of(&toys[0], &forwards[0], TOY_VOCAB, 1);
  gen_model* other = toy_of(&toys[1], &forwards[1], TOY_VOCAB - 1, 1);
  gen_model* stuck = toy_of(&toys[2], &forwards[2], TOY_VOCAB, 0);
  gen_generator* generator = NULL;
  gen_options* options = options_new();
  assert_ok(gen_options_set_speculative_draft(options, other, 4, &error), error);
  assert_fails(gen_create(model, options, &generator, &error), bad, "60", error);
  assert_ok(gen_options_set_speculative_draft(options, stuck, 4, &error), error);
  assert_fails(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED, "draft model",
               error);
  assert_ok(gen_options_set_speculative_draft(options, NULL, 4, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_free(generator);
  assert_ok(gen_options_set_prompt_lookup(options, 3, 4, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_free(generator);
  assert_fails(gen_create(stuck, options, &generator, &error), GEN_ERROR_UNSUPPORTED,
               "neither go back nor be copied", error);

  assert_fails(gen_options_set_speculative_draft(NULL, model, 4, &error), bad, "options", error);
  assert_fails(gen_options_set_speculative_draft(options, model, 64, &error), bad, "64", error);
  assert_fails(gen_options_set_prompt_lookup(NULL, 3, 8, &error), bad, "options", error);
  assert_fails(gen_options_set_prompt_lookup(options, 65, 8, &error), bad, "65", error);
  assert_fails(gen_options_set_prompt_lookup(options, -1, 8, &error), bad, "-1", error);
  assert_fails(gen_options_set_prompt_lookup(options, 3, 64, &error), bad, "64", error);
  assert_fails(gen_options_set(options, "prompt_lookup", "3,x", &error), bad, "x", error);
  assert_fails(gen_options_set(options, "suffix_lookup", "64", &error), bad, "64", error);
  assert_fails(gen_options_set(options, "suffix_lookup", "8,-1", &error), bad, "-1", error);
  assert_fails(gen_options_set(options, "draft_policy", "never", &error), bad, "never", error);
  assert_fails(gen_options_set(options, "draft_policy", "auto,1", &error), bad, "auto,1", error);
  assert_fails(gen_options_set(options, "draft_policy", "adaptive,2", &error), bad, "2", error);
  assert_fails(gen_options_set(options, "draft_policy", "adaptive,nan", &error), bad, "nan", error);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  assert_ok(gen_options_set(options, "draft_policy", "adaptive,0.5", &error), error);
  assert_ok(gen_options_set(options, "prompt_lookup", "3", &error), error);
  assert_ok(gen_options_set(options, "suffix_lookup", "9,100", &error), error);
  char text[8192];
  size_t n = 0;
  assert_ok(gen_options_describe(options, text, sizeof text, &n, &error), error);
  assert_non_null(strstr(text, "\"value\":\"3,8\""));
  assert_non_null(strstr(text, "\"value\":\"9,100\""));
  assert_non_null(strstr(text, "\"default\":\"auto\""));
  assert_non_null(strstr(text, "\"value\":\"adaptive,0.5\""));
  gen_options_free(options);
  gen_model_free(model);
  gen_model_free(other);
  gen_model_free(stuck);
  assert_int_equal(toys[0].wrong + toys[1].wrong + toys[2].wrong, 0);
}

static double stat_of(const gen_speculative* speculative, const char* key) {
  double value = -1;
  assert_ok(gen_speculative_stats(speculative, key, &value, &error), error);
  return value;
}

static int count_pieces(void* user, const gen_token* token) {
  *(int*)user += token->done ? 0 : 1;
  return 0;
}

static int stop_at_once(void* user, const gen_token* token) {
  (void)user;
  (void)token;
  return 7;
}

/* The whole loop: the target's own text, however much is guessed, and what that brought. */
static void a_speculative_generator_says_what_its_target_says(void** state) {
  (void)state;
  gen_model* draft = load_draft();
  gen_model* story = NULL;
  gen_speculative* speculative = NULL;
  assert_ok(gen_model_load(STORY_MODEL, NULL, &story, &error), error);
  gen_generator* plain = generator_with(story, NULL);
  assert_ok(gen_speculative_new(draft, story, 3, NULL, &speculative, &error), error);
  gen_model_free(draft); /* it keeps them */
  gen_model_free(story);
  assert_ok(gen_speculative_set_adaptive(speculative, 0, &error), error);
  for (int t = 0; t < 2; ++t) {
    gen_sampling* sampling = drawing(0.8 * t);
    gen_result* want = said_by(plain, sampling);
    gen_result* got = NULL;
    int pieces = 0;
    assert_ok(
        gen_speculative_generate(speculative, kPrompt, strlen(kPrompt), sampling, &got, &error),
        error);
    assert_same(got, want);
    /* Three for each pass except the first and the last ones. */
    assert_true(usage(got, "drafted") >= 3 * (60 - usage(got, "accepted") - 4));
    gen_result_free(got);
    assert_ok(gen_speculative_generate_stream(speculative, kPrompt, strlen(kPrompt), sampling,
                                              count_pieces, &pieces, &got, &error),
              error);
    assert_same(got, want);
    assert_int_equal(pieces, 60);
    gen_result_free(got);
    gen_result_free(want);
    gen_sampling_free(sampling);
  }
  const double drafted = stat_of(speculative, "drafted");
  const double accepted = stat_of(speculative, "accepted");
  assert_true(stat_of(speculative, "tokens") == 4 * 60);
  assert_true(stat_of(speculative, "passes") == 4 * 60 - accepted);
  assert_true(stat_of(speculative, "tokens_per_pass") == 240 / (240 - accepted));
  assert_true(stat_of(speculative, "acceptance_rate") == accepted / drafted);
  assert_true(stat_of(speculative, "acceptance_at_1") > 0.3);
  assert_true(stat_of(speculative, "acceptance_at_3") > 0);
  assert_true(stat_of(speculative, "acceptance_at_4") == 0);

  double value = 5;
  gen_result* none = NULL;
  assert_fails(gen_speculative_stats(speculative, "acceptance_at_0", &value, &error), bad,
               "acceptance_at_0", error);
  assert_true(value == 0);
  assert_fails(gen_speculative_stats(speculative, "acceptance_at_64", &value, &error), bad, "64",
               error);
  assert_fails(gen_speculative_stats(speculative, "acceptance_at_2x", &value, &error), bad, "2x",
               error);
  assert_fails(gen_speculative_stats(speculative, "acceptance_at_01", &value, &error), bad, "_01",
               error);
  assert_fails(gen_speculative_stats(speculative, "acceptance_at_", &value, &error), bad, "_at_",
               error);
  assert_fails(gen_speculative_stats(NULL, "passes", &value, &error), bad, "speculative", error);
  assert_fails(gen_speculative_set_adaptive(NULL, 1, &error), bad, "speculative", error);
  assert_fails(gen_speculative_generate(NULL, "x", 1, NULL, &none, &error), bad, "speculative",
               error);
  assert_fails(
      gen_speculative_generate_stream(speculative, "x", 1, NULL, NULL, NULL, &none, &error), bad,
      "callback", error);
  assert_fails(
      gen_speculative_generate_stream(speculative, "x", 1, NULL, stop_at_once, NULL, &none, &error),
      GEN_ERROR_CANCELLED, "7", error);
  assert_int_equal(gen_result_user_code(none), 7);
  gen_result_free(none);
  assert_fails(gen_speculative_generate(speculative, "\xff", 1, NULL, &none, &error),
               GEN_ERROR_TOKENIZER, "UTF-8", error);
  assert_null(none);

  /* Plain generators have the figures, too. */
  gen_result* said = said_by(plain, NULL);
  gen_result_free(said);
  assert_ok(gen_generator_draft_stats(plain, "tokens_per_pass", &value, &error), error);
  assert_true(value == 1);
  assert_ok(gen_generator_draft_stats(plain, "acceptance_rate", &value, &error), error);
  assert_true(value == 0);
  assert_fails(gen_generator_draft_stats(plain, "rate", &value, &error), bad, "rate", error);
  assert_fails(gen_generator_draft_stats(NULL, "passes", &value, &error), bad, "generator", error);
  gen_free(plain);
  gen_speculative_free(speculative);
  gen_speculative_free(NULL);
}

static void speculative_generators_that_cannot_be(void** state) {
  (void)state;
  struct toy toys[3];
  gen_forward forwards[3];
  memset(toys, 0, sizeof toys);
  gen_model* model = toy_of(&toys[0], &forwards[0], TOY_VOCAB, 1);
  gen_model* other = toy_of(&toys[1], &forwards[1], TOY_VOCAB - 1, 1);
  gen_model* stuck = toy_of(&toys[2], &forwards[2], TOY_VOCAB, 0);
  gen_speculative* speculative = NULL;
  gen_draft* draft = NULL;
  assert_fails(gen_speculative_new(NULL, model, 4, NULL, &speculative, &error), bad, "draft",
               error);
  assert_fails(gen_speculative_new(model, NULL, 4, NULL, &speculative, &error), bad, "target",
               error);
  assert_fails(gen_speculative_new(model, model, 4, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_speculative_new(model, model, 64, NULL, &speculative, &error), bad, "64", error);
  assert_fails(gen_speculative_new(other, model, 4, NULL, &speculative, &error), bad, "60", error);
  assert_fails(gen_speculative_new(stuck, model, 4, NULL, &speculative, &error),
               GEN_ERROR_UNSUPPORTED, "state", error);
  assert_null(speculative);
  assert_fails(gen_speculative_new(model, stuck, 0, NULL, &speculative, &error),
               GEN_ERROR_UNSUPPORTED, "neither go back nor be copied", error);
  assert_null(speculative);
  assert_fails(gen_draft_new(NULL, model, NULL, &draft, &error), bad, "draft", error);
  assert_fails(gen_draft_new(model, NULL, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_draft_new(other, model, NULL, &draft, &error), bad, "60", error);
  assert_fails(gen_draft_new_self(NULL, 1, NULL, &draft, &error), bad, "target is NULL", error);
  assert_fails(gen_draft_new_self(model, 1, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_draft_new_self(model, 1, NULL, &draft, &error), GEN_ERROR_UNSUPPORTED, "exit",
               error);
  assert_null(draft);
  gen_model_free(model);
  gen_model_free(other);
  gen_model_free(stuck);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drafts_change_nothing),
      cmocka_unit_test(states_go_back_or_are_copied),
      cmocka_unit_test(drafts_that_cannot_be),
      cmocka_unit_test(a_speculative_generator_says_what_its_target_says),
      cmocka_unit_test(speculative_generators_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

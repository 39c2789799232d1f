/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts from C: what is said does not change, what they brought is told, and which draft models
 * are refused. */
#include "toy_model.h"

#define STORY_MODEL GEN_TEST_SOURCE_DIR "/examples/demo_model/story.gguf"

static gen_error error;
static const gen_status bad = GEN_ERROR_INVALID_ARGUMENT;
static const char kPrompt[] = "Once upon a time there was a dog. The dog ran. The dog ran. The dog";

static int64_t usage(const gen_result* result, const char* key) {
  int64_t value = -1;
  assert_ok(gen_result_usage(result, key, &value, &error), error);
  return value;
}

static gen_generator* generator_with(const gen_model* model, gen_options* options) {
  gen_generator* generator = NULL;
  assert_ok(gen_create(model, options, &generator, &error), error);
  gen_options_free(options);
  return generator;
}

/* With all that drafters have, whatever it costs: how much that is depends on no clock. */
static gen_options* options_new(void) {
  gen_options* options = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  return options;
}

static gen_sampling* drawing(double temperature) {
  gen_sampling* sampling = greedy(60);
  assert_ok(gen_sampling_set_temperature(sampling, temperature, &error), error);
  assert_ok(gen_sampling_set_logprobs(sampling, 2, &error), error);
  return sampling;
}

static gen_result* said_by(gen_generator* generator, const gen_sampling* sampling) {
  gen_result* result = NULL;
  assert_ok(gen_generate(generator, kPrompt, strlen(kPrompt), sampling, &result, &error), error);
  return result;
}

static void assert_same(const gen_result* got, const gen_result* want) {
  size_t n = 0, m = 0;
  const int32_t* tokens = gen_result_tokens(got, &n);
  const int32_t* wanted = gen_result_tokens(want, &m);
  assert_int_equal(n, m);
  assert_memory_equal(tokens, wanted, n * sizeof *tokens);
  const float* logprobs = gen_result_logprobs(got, &n);
  assert_memory_equal(logprobs, gen_result_logprobs(want, &m), n * sizeof *logprobs);
  assert_string_equal(gen_result_text(got, NULL), gen_result_text(want, NULL));
  assert_int_equal(gen_result_finish_reason(got), gen_result_finish_reason(want));
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

static gen_model* toy_of(struct toy* toy, gen_forward* forward, int32_t vocab, int goes_back) {
  gen_model_config* config = NULL;
  gen_model* model = NULL;
  memset(forward, 0, sizeof *forward);
  forward->struct_size = sizeof *forward;
  forward->user = toy;
  forward->forward = toy_forward;
  toy->stateless = goes_back;
  if (!goes_back) {
    forward->state_new = toy_state_new;
    forward->state_free = toy_state_free;
  }
  assert_ok(gen_model_config_new(&config, &error), error);
  assert_ok(gen_model_config_set_vocab_size(config, vocab, &error), error);
  assert_ok(gen_model_config_set_max_seq_len(config, TOY_CONTEXT, &error), error);
  assert_ok(gen_model_new_custom(forward, config, NULL, &model, &error), error);
  gen_model_config_free(config);
  return model;
}

/* Models of one's own with a state: one that goes back has drafts, from either lookup; one that
 * cannot has none, and says the same. */
static void states_go_back_or_have_no_drafts(void** state) {
  (void)state;
  for (int goes_back = 0; goes_back < 2; ++goes_back) {
    struct toy toy;
    memset(&toy, 0, sizeof toy);
    gen_forward table = toy_table(&toy);
    if (!goes_back) table.state_truncate = NULL;
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
      if (goes_back) assert_true(drafted > (which == 0 ? 10 : 0));
      if (!goes_back) assert_int_equal(drafted, 0);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drafts_change_nothing),
      cmocka_unit_test(states_go_back_or_have_no_drafts),
      cmocka_unit_test(drafts_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Guessing and judging as calls of their own: gen_draft, and rejection sampling over arrays. */
#include "draft_calls.h"

/* Guessing and judging by functions of one's own, with a state or without. */
static void drafts_by_custom_models(void** state) {
  (void)state;
  for (int goes_back = 0; goes_back < 2; ++goes_back) {
    struct toy toys[2];
    gen_forward forwards[2];
    memset(toys, 0, sizeof toys);
    gen_model* draft_model = toy_of(&toys[0], &forwards[0], TOY_VOCAB, 1);
    gen_model* target = toy_of(&toys[1], &forwards[1], TOY_VOCAB, goes_back);
    gen_draft* draft = NULL;
    assert_ok(gen_draft_new(draft_model, target, NULL, &draft, &error), error);
    gen_model_free(draft_model);
    gen_model_free(target);
    int32_t text[TOY_CONTEXT] = {3, 4, 5, 6, 7};
    int32_t n_text = 5;
    for (int round = 0; round < 6; ++round) {
      int32_t guesses[8], want[TOY_CONTEXT + 8], accepted = -1, correction = -1;
      float logprobs[8];
      size_t n = 0;
      memcpy(want, text, sizeof text);
      toy_expect(want, n_text, 6, 1);
      assert_ok(
          gen_draft_generate(draft, text, (size_t)n_text, 6, guesses, logprobs, 8, &n, &error),
          error);
      assert_int_equal(n, 6);
      assert_memory_equal(guesses, want + n_text, 6 * sizeof *guesses);
      for (int i = 0; i < 6; ++i) assert_true(logprobs[i] < 0 && logprobs[i] > -0.2F);
      /* The first is judged, too: with a state the target says something else. */
      toy_expect(want, n_text, 8, goes_back);
      int32_t right = 0;
      while (right < 6 && want[n_text + right] == guesses[right]) ++right;
      assert_ok(
          gen_draft_verify(draft, text, (size_t)n_text, guesses, 6, &accepted, &correction, &error),
          error);
      assert_int_equal(accepted, right);
      assert_int_equal(correction, want[n_text + right]);
      if (goes_back) assert_int_equal(accepted, 6);
      double rate = -1;
      assert_ok(gen_draft_acceptance_rate(draft, text, (size_t)n_text, 6, &rate, &error), error);
      assert_true(rate == right / 6.0);
      assert_ok(gen_draft_acceptance_rate(draft, text, (size_t)n_text, 0, &rate, &error), error);
      assert_true(rate == (right > 4 ? 4 : right) / 4.0);
      assert_ok(
          gen_draft_verify(draft, text, (size_t)n_text, NULL, 0, &accepted, &correction, &error),
          error);
      assert_int_equal(accepted, 0);
      assert_int_equal(correction, want[n_text]);
      /* Goes on, begins anew, or takes some back. */
      if (round % 3 == 0) memcpy(text + n_text, want + n_text, 4 * sizeof *text), n_text += 4;
      if (round % 3 == 1) n_text -= 2;
      if (round % 3 == 2) text[1] = round, n_text += 1, text[n_text - 1] = 9;
    }
    int32_t ids[8], accepted = 0, correction = 0;
    size_t n = 0;
    assert_fails(gen_draft_generate(draft, text, 0, 4, ids, NULL, 8, &n, &error), bad, "no tokens",
                 error);
    assert_fails(gen_draft_generate(draft, text, 5, 0, ids, NULL, 8, &n, &error), bad, "0", error);
    assert_fails(gen_draft_generate(draft, text, 5, 64, ids, NULL, 8, &n, &error), bad, "64",
                 error);
    assert_fails(gen_draft_generate(draft, text, 5, 8, ids, NULL, 7, &n, &error),
                 GEN_ERROR_OUT_OF_RANGE, "7", error);
    assert_int_equal(n, 8);
    assert_fails(gen_draft_generate(NULL, text, 5, 4, ids, NULL, 8, &n, &error), bad, "draft",
                 error);
    assert_fails(gen_draft_verify(draft, text, 0, text, 1, &accepted, &correction, &error), bad,
                 "no tokens", error);
    assert_fails(gen_draft_verify(draft, text, 5, ids, 64, &accepted, &correction, &error), bad,
                 "64", error);
    ids[0] = TOY_VOCAB;
    assert_fails(gen_draft_verify(draft, text, 5, ids, 1, &accepted, &correction, &error),
                 GEN_ERROR_OUT_OF_RANGE, "61", error);
    text[0] = TOY_VOCAB;
    assert_fails(gen_draft_generate(draft, text, 5, 4, ids, NULL, 8, &n, &error),
                 GEN_ERROR_OUT_OF_RANGE, "61", error);
    double share = 1;
    assert_fails(gen_draft_acceptance_rate(draft, text, 5, 4, &share, &error),
                 GEN_ERROR_OUT_OF_RANGE, "61", error);
    assert_fails(gen_draft_acceptance_rate(draft, text, 0, 4, &share, &error), bad, "no tokens",
                 error);
    text[0] = 3;
    int32_t much[TOY_CONTEXT + 1] = {0};
    assert_fails(gen_draft_generate(draft, much, TOY_CONTEXT + 1, 4, ids, NULL, 8, &n, &error),
                 GEN_ERROR_CONTEXT_FULL, "200", error);
    assert_fails(
        gen_draft_verify(draft, much, TOY_CONTEXT + 1, ids, 0, &accepted, &correction, &error),
        GEN_ERROR_CONTEXT_FULL, "200", error);
    double rate = 1;
    assert_fails(gen_draft_acceptance_rate(draft, much, TOY_CONTEXT + 1, 4, &rate, &error),
                 GEN_ERROR_CONTEXT_FULL, "200", error);
    assert_true(rate == 0);
    assert_ok(gen_draft_verify(draft, much, TOY_CONTEXT, NULL, 0, &accepted, &correction, &error),
              error);
    assert_int_equal(correction, -1);
    /* Whichever pass it is that gives no number. */
    int met[3] = {0, 0, 0};
    toys[0].fault = toys[1].fault = TOY_NAN;
    for (int later = 0; later < 3; ++later) {
      for (int which = 0; which < 3; ++which) {
        text[2] = 10 + 3 * later + which;
        toys[0].at = toys[0].calls + later;
        toys[1].at = toys[1].calls + later;
        const gen_status status =
            which == 0   ? gen_draft_generate(draft, text, 4, 4, ids, NULL, 8, &n, &error)
            : which == 1 ? gen_draft_verify(draft, text, 4, NULL, 0, &accepted, &correction, &error)
                         : gen_draft_acceptance_rate(draft, text, 4, 4, &rate, &error);
        met[which] += status == GEN_ERROR_MODEL;
        if (status != GEN_ERROR_MODEL) assert_ok(status, error);
      }
    }
    assert_true(met[0] > 0 && met[1] > 0 && met[2] > 0);
    gen_draft_free(draft);
    assert_int_equal(toys[0].wrong + toys[1].wrong, 0);
    assert_int_equal(toys[1].news + toys[1].clones, toys[1].frees);
  }
  gen_draft_free(NULL);
  assert_int_equal(gen_draft_depth(NULL), 0);
}

/* A model's own first layers; and a drafter that nobody judges. */
static void drafts_by_layers_of_the_model(void** state) {
  (void)state;
  gen_model* story = NULL;
  gen_draft* draft = NULL;
  assert_ok(gen_model_load(STORY_MODEL, NULL, &story, &error), error);
  const int32_t layers = gen_model_config_num_layers(gen_model_get_config(story));
  gen_generator* plain = generator_with(story, NULL);
  gen_sampling* sampling = greedy(30);
  gen_result* want = said_by(plain, sampling);
  int32_t text[256], guesses[4], accepted = 0, correction = 0;
  size_t n = 0, said = 0, at = 0;
  assert_ok(gen_tokenizer_encode(gen_model_tokenizer(story), kPrompt, strlen(kPrompt),
                                 GEN_ENCODE_ADD_BOS, text, 256, &n, &error),
            error);
  const int32_t* tokens = gen_result_tokens(want, &said);
  assert_ok(gen_draft_new_self(story, layers, NULL, &draft, &error), error);
  assert_int_equal(gen_draft_depth(draft), layers / 2 > 0 ? layers / 2 : 1);
  gen_draft_free(draft);
  assert_ok(gen_draft_new_self(story, 1, NULL, &draft, &error), error);
  assert_int_equal(gen_draft_depth(draft), 1);
  while (at + 5 < said) { /* a loop of one's own: the text is the model's */
    size_t drafted = 0;
    assert_ok(gen_draft_generate(draft, text, n, 4, guesses, NULL, 4, &drafted, &error), error);
    assert_ok(gen_draft_verify(draft, text, n, guesses, drafted, &accepted, &correction, &error),
              error);
    memcpy(text + n, guesses, (size_t)accepted * sizeof *text);
    text[n + (size_t)accepted] = correction;
    assert_memory_equal(text + n, tokens + at, ((size_t)accepted + 1) * sizeof *text);
    n += (size_t)accepted + 1;
    at += (size_t)accepted + 1;
  }
  gen_draft_free(draft);
  assert_ok(gen_draft_new(story, NULL, NULL, &draft, &error), error);
  assert_int_equal(gen_draft_depth(draft), layers);
  double rate = 0;
  assert_fails(gen_draft_verify(draft, text, n, guesses, 1, &accepted, &correction, &error),
               GEN_ERROR_STATE, "target", error);
  assert_fails(gen_draft_acceptance_rate(draft, text, n, 2, &rate, &error), GEN_ERROR_STATE,
               "target", error);
  gen_draft_free(draft);

  /* As an option of generators. */
  gen_options* options = options_new();
  assert_ok(gen_options_set(options, "self_draft", "1,3", &error), error);
  gen_generator* drafted = generator_with(story, options);
  gen_result* got = said_by(drafted, sampling);
  assert_same(got, want);
  assert_true(usage(got, "drafted") > 20);
  gen_result_free(got);
  gen_free(drafted);
  options = options_new();
  char beyond[16];
  snprintf(beyond, sizeof beyond, "%d", layers);
  assert_ok(gen_options_set(options, "self_draft", beyond, &error), error);
  assert_fails(gen_create(story, options, &drafted, &error), bad, beyond, error);
  assert_non_null(strstr(error.message, "self_draft"));
  assert_fails(gen_options_set(options, "self_draft", "-1", &error), bad, "-1", error);
  assert_fails(gen_options_set(options, "self_draft", "2,64", &error), bad, "64", error);
  gen_options_free(options);
  gen_result_free(want);
  gen_sampling_free(sampling);
  gen_free(plain);
  gen_model_free(story);
}

static void accepting_tokens(void** state) {
  (void)state;
  const int32_t tokens[2] = {1, 2};
  const float draft[6] = {0, 1, 0, 0, 0.5F, 0.5F};
  float target[9] = {0, 1, 0, 0, 1, 0, 0.25F, 0.5F, 0.25F};
  int32_t ids[3] = {-1, -1, -1};
  size_t n = 0;
  double rate = 0;
  /* The first is certain in both; the second is one the target never says. */
  assert_ok(
      gen_draft_accept_tokens(tokens, 2, draft, target, 3, 0, 1, 0, ids, 3, &n, &rate, &error),
      error);
  assert_int_equal(n, 2);
  assert_int_equal(ids[0], 1);
  assert_int_equal(ids[1], 1);
  assert_true(rate == 0.5);
  assert_ok(gen_draft_accept_tokens(tokens, 1, draft, target, 3, 1, 0, 0, ids, 3, &n, NULL, &error),
            error);
  assert_int_equal(n, 2);
  assert_int_equal(ids[1], 1);
  assert_ok(gen_draft_accept_tokens(tokens, 2, NULL, target, 3, 1, 0, 0, ids, 3, &n, &rate, &error),
            error);
  assert_int_equal(n, 2);
  assert_ok(gen_draft_accept_tokens(NULL, 0, NULL, NULL, 3, 0, 0, 0, ids, 3, &n, &rate, &error),
            error);
  assert_int_equal(n, 0);
  assert_true(rate == 0);
  assert_fails(
      gen_draft_accept_tokens(NULL, 1, draft, target, 3, 0, 0, 0, ids, 3, &n, &rate, &error), bad,
      "tokens", error);
  assert_fails(
      gen_draft_accept_tokens(tokens, 1, NULL, target, 3, 0, 0, 0, ids, 3, &n, &rate, &error), bad,
      "draft_probs", error);
  assert_fails(
      gen_draft_accept_tokens(tokens, 1, draft, target, 0, 0, 0, 0, ids, 3, &n, &rate, &error), bad,
      "vocab is 0", error);
  assert_fails(
      gen_draft_accept_tokens(tokens, 2, draft, target, 3, 0, 0, 0, ids, 2, &n, &rate, &error),
      GEN_ERROR_OUT_OF_RANGE, "2", error);
  assert_int_equal(n, 3);
  assert_fails(
      gen_draft_accept_tokens(tokens, 2, draft, target, 2, 1, 0, 0, ids, 3, &n, &rate, &error),
      GEN_ERROR_OUT_OF_RANGE, "2", error);
  target[4] = -1;
  assert_fails(
      gen_draft_accept_tokens(tokens, 2, draft, target, 3, 0, 0, 0, ids, 3, &n, &rate, &error), bad,
      "target row 1", error);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drafts_by_custom_models),
      cmocka_unit_test(drafts_by_layers_of_the_model),
      cmocka_unit_test(accepting_tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

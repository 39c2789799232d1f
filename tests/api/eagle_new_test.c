/* SPDX-License-Identifier: Apache-2.0 */
/* gen_eagle_new over the bundled model: what is said is what the model says alone, bit for bit;
 * what the drafts brought; which files are refused. Heads of tensors: eagle_custom_test.c and
 * eagle_tensors_test.cpp. */
#include "eagle_calls.h"

static gen_eagle* eagle_of(const char* path, int32_t length) {
  gen_eagle* eagle = NULL;
  assert_ok(gen_eagle_new(model, path, length, NULL, &eagle, &error), error);
  assert_ok(gen_eagle_set_adaptive(eagle, 0, &error), error);
  return eagle;
}

static double figure(const gen_eagle* eagle, const char* key) {
  double value = -1;
  assert_ok(gen_eagle_stats(eagle, key, &value, &error), error);
  return value;
}

static int take(void* user, const gen_token* token) {
  *(int*)user += token->done ? 0 : 1;
  return 0;
}

/* Both forms of call; `sampling` says 50 tokens. */
static void assert_alike(gen_eagle* eagle, const gen_sampling* sampling) {
  gen_result* want = said_by(plain, sampling);
  gen_result* got = NULL;
  int pieces = 0;
  size_t n = 0;
  assert_ok(gen_eagle_generate(eagle, kPrompt, strlen(kPrompt), sampling, &got, &error), error);
  assert_same(got, want);
  assert_true(usage(got, "drafted") > 0);
  gen_result_free(got);
  assert_ok(gen_eagle_generate_stream(eagle, kPrompt, strlen(kPrompt), sampling, take, &pieces,
                                      &got, &error),
            error);
  assert_same(got, want);
  gen_result_tokens(want, &n);
  assert_true(pieces > 0 && (size_t)pieces <= n);
  gen_result_free(got);
  gen_result_free(want);
}

static void texts_are_the_models(void** state) {
  (void)state;
  static const char kRule[] = "root ::= (\" \" [a-z]+){3,9} \".\"";
  gen_grammar* grammar = NULL;
  assert_ok(gen_grammar_from_gbnf(kRule, strlen(kRule), NULL, &grammar, &error), error);
  for (int i = 0; i < HEADS; ++i) {
    gen_eagle* eagle = eagle_of(kHeads[i], 3);
    for (int t = 0; t < 3; ++t) {
      gen_sampling* sampling = settings(50, 0.5 * t);
      assert_alike(eagle, sampling);
      assert_ok(gen_sampling_set_grammar(sampling, grammar, &error), error);
      assert_alike(eagle, sampling);
      gen_sampling_free(sampling);
    }
    const double drafted = figure(eagle, "drafted");
    assert_true(figure(eagle, "acceptance_rate") == figure(eagle, "accepted") / drafted);
    assert_true(figure(eagle, "acceptance_at_1") > 0.2);
    assert_true(figure(eagle, "acceptance_at_4") == 0); /* three at a time */
    assert_true(figure(eagle, "tokens_per_pass") > 1);
    gen_eagle_free(eagle);
  }
  gen_grammar_free(grammar);
}

/* It is the generator with that option, with as many tokens in a draft as were asked for. */
static void drafts_are_those_of_the_option(void** state) {
  (void)state;
  for (int i = 0; i < HEADS; ++i) {
    gen_eagle* eagle = eagle_of(kHeads[i], 0);
    gen_sampling* sampling = settings(50, 0.6);
    gen_result* want = said_by(drafting[i], sampling);
    gen_result* got = NULL;
    assert_ok(gen_eagle_generate(eagle, kPrompt, strlen(kPrompt), sampling, &got, &error), error);
    assert_same(got, want);
    assert_int_equal(usage(got, "drafted"), usage(want, "drafted"));
    assert_int_equal(usage(got, "accepted"), usage(want, "accepted"));
    gen_result_free(got);
    gen_result_free(want);
    gen_sampling_free(sampling);
    gen_eagle_free(eagle);
  }
}

/* It keeps its model, and other drafters of the options work beside it. */
static void options_and_lifetimes(void** state) {
  (void)state;
  gen_options* options = options_new();
  gen_eagle* eagle = NULL;
  gen_model* own = NULL;
  assert_ok(gen_options_set_eagle(options, NOWHERE, &error), error); /* not looked at */
  assert_ok(gen_options_set(options, "draft_heads", "off", &error), error);
  assert_ok(gen_options_set(options, "suffix_lookup", "6,64", &error), error);
  assert_ok(gen_options_set(options, "kv_dtype", "fp16", &error), error);
  assert_ok(gen_model_load(STORY_MODEL, NULL, &own, &error), error);
  assert_ok(gen_eagle_new(own, EAGLE3, 4, options, &eagle, &error), error);
  assert_ok(gen_eagle_set_adaptive(eagle, 0, &error), error);
  gen_model_free(own);
  assert_ok(gen_options_set(options, "draft_policy", "off", &error), error);
  gen_generator* same = generator_with(model, options); /* fp16, without drafts */
  gen_sampling* sampling = settings(50, 0.5);
  gen_result* want = said_by(same, sampling);
  gen_result* got = NULL;
  assert_ok(gen_eagle_generate(eagle, kPrompt, strlen(kPrompt), sampling, &got, &error), error);
  assert_same(got, want);
  assert_true(usage(got, "accepted") > 0);
  gen_result_free(got);
  gen_result_free(want);
  gen_sampling_free(sampling);
  gen_free(same);
  gen_eagle_free(eagle);
}

static void assert_refused(const char* path, gen_status status, const char* part) {
  gen_eagle* eagle = NULL;
  assert_fails(gen_eagle_new(model, path, 4, NULL, &eagle, &error), status, part, error);
  assert_null(eagle);
}

static void files_that_are_refused(void** state) {
  (void)state;
  gen_eagle* eagle = NULL;
  assert_refused(NOWHERE, GEN_ERROR_IO, NOWHERE);
  assert_refused("", GEN_ERROR_UNSUPPORTED, "has no head that drafts");
  assert_refused(GEN_TEST_SOURCE_DIR, GEN_ERROR_IO, GEN_TEST_SOURCE_DIR);
  assert_refused(GEN_TEST_SOURCE_DIR "/CMakeLists.txt", GEN_ERROR_FORMAT, "CMakeLists.txt");
  assert_refused(STORY_MODEL, GEN_ERROR_UNSUPPORTED, "no head that drafts");
  assert_refused(NULL, GEN_ERROR_UNSUPPORTED, "has no head that drafts");
  assert_fails(gen_eagle_new(NULL, EAGLE3, 4, NULL, &eagle, &error), bad, "target", error);
  assert_fails(gen_eagle_new(model, EAGLE3, 4, NULL, NULL, &error), bad, "out", error);
  assert_fails(gen_eagle_new(model, EAGLE3, 64, NULL, &eagle, &error), bad, "64", error);
  assert_null(eagle);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_the_models),
      cmocka_unit_test(drafts_are_those_of_the_option),
      cmocka_unit_test(options_and_lifetimes),
      cmocka_unit_test(files_that_are_refused),
  };
  return cmocka_run_group_tests(tests, begin, end);
}

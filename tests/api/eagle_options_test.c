/* SPDX-License-Identifier: Apache-2.0 */
/* The options of heads from files: paths, names, lengths, and what is refused. */
#include "eagle_calls.h"

static void without_a_file_there_are_no_drafts(void** state) {
  (void)state;
  gen_sampling* sampling = settings(20, 0);
  gen_result* want = said_by(plain, sampling);
  static const char* const kPaths[] = {NOWHERE, "", NULL};
  for (int i = 0; i < 3; ++i) {
    gen_generator* generator = generator_of(kPaths[i]);
    gen_result* got = said_by(generator, sampling);
    assert_enabled(generator, 0, kPaths[i] != NULL ? kPaths[i] : "");
    assert_same(got, want);
    assert_int_equal(usage(got, "drafted"), 0);
    gen_result_free(got);
    gen_free(generator);
  }
  gen_result_free(want);
  gen_sampling_free(sampling);
  /* A path can be taken back. */
  gen_options* options = options_new();
  assert_ok(gen_options_set_eagle(options, EAGLE3, &error), error);
  assert_ok(gen_options_set_eagle(options, NULL, &error), error);
  gen_generator* generator = generator_with(model, options);
  assert_enabled(generator, 0, "");
  gen_free(generator);
}

static void arguments(void** state) {
  (void)state;
  char text[8];
  size_t n = 0;
  gen_generator* generator = NULL;
  gen_options* options = options_new();
  assert_fails(gen_options_set_eagle(NULL, EAGLE3, &error), bad, "options", error);
  assert_int_equal(gen_generator_eagle_enabled(NULL), 0);
  assert_fails(gen_generator_eagle_path(NULL, text, sizeof text, &n, &error), bad, "generator",
               error);
  assert_fails(gen_generator_eagle_path(drafting[0], text, sizeof text, &n, &error),
               GEN_ERROR_OUT_OF_RANGE, "8", error);
  assert_int_equal(n, strlen(EAGLE3));
  assert_fails(gen_generator_eagle_path(drafting[0], text, sizeof text, NULL, &error), bad, "n",
               error);
  /* The model's own file has none. */
  assert_ok(gen_options_set_eagle(options, STORY_MODEL, &error), error);
  assert_fails(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED, "story.gguf",
               error);
  assert_null(generator);
  assert_ok(gen_options_set_eagle(options, EAGLE3, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_enabled(generator, 1, EAGLE3);
  gen_free(generator);
  /* "off" is for the head of the model's own file. */
  assert_ok(gen_options_set(options, "draft_heads", "off", &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_enabled(generator, 1, EAGLE3);
  gen_free(generator);
  /* The model for which it is has other states. */
  gen_model* small = load_draft();
  memset(&error, 0, sizeof error);
  assert_int_not_equal(gen_create(small, options, &generator, &error), GEN_OK);
  assert_non_null(strstr(error.message, "eagle3.gguf"));
  assert_null(strchr(error.message, '\n'));
  assert_null(generator);
  gen_model_free(small);
  gen_options_free(options);
}

/* The setting as it is described. */
static void assert_value(const gen_options* options, const char* name, const char* value) {
  static char text[32768];
  char key[64];
  char want[512];
  size_t n = 0;
  assert_ok(gen_options_describe(options, text, sizeof text, &n, &error), error);
  snprintf(key, sizeof key, "\"key\":\"%s\"", name);
  const char* at = strstr(text, key);
  assert_non_null(at);
  at = strstr(at, "\"value\":");
  assert_non_null(at);
  snprintf(want, sizeof want, "\"value\":\"%s\"", value);
  if (strncmp(at, want, strlen(want)) != 0) fail_msg("%s is %.60s, not %s", name, at, want);
}

static void settings_by_name(void** state) {
  (void)state;
  gen_options* options = NULL;
  gen_generator* generator = NULL;
  assert_ok(gen_options_new(&options, &error), error);
  assert_value(options, "eagle", "");
  assert_ok(gen_options_set(options, "eagle", EAGLE_MLP, &error), error);
  assert_value(options, "eagle", EAGLE_MLP);
  assert_ok(gen_options_set(options, "draft_heads", "on,6", &error), error);
  assert_value(options, "draft_heads", "on,6");
  assert_ok(gen_options_set(options, "draft_heads", "off", &error), error);
  assert_value(options, "draft_heads", "off,4");
  assert_ok(gen_options_set(options, "draft_heads", "auto", &error), error);
  assert_value(options, "draft_heads", "auto,4");
  assert_fails(gen_options_set(options, "draft_heads", "most", &error), bad, "most", error);
  assert_fails(gen_options_set(options, "draft_heads", "on,64", &error), bad, "64", error);
  assert_fails(gen_options_set(options, "draft_heads", "on,-1", &error), bad, "-1", error);
  assert_fails(gen_options_set(options, "draft_heads", "on,x", &error), bad, "x", error);
  assert_fails(gen_options_set(options, "draft_heads", "", &error), bad, "draft_heads", error);
  assert_fails(gen_options_set(options, "draft_policy", "of", &error), bad, "of", error);
  assert_value(options, "draft_heads", "auto,4");
  /* Nothing drafts, and no file is opened. */
  assert_ok(gen_options_set(options, "draft_policy", "off", &error), error);
  assert_value(options, "draft_policy", "off");
  assert_ok(gen_options_set(options, "eagle", STORY_MODEL, &error), error);
  assert_ok(gen_create(model, options, &generator, &error), error);
  assert_enabled(generator, 0, STORY_MODEL);
  gen_free(generator);
  assert_ok(gen_options_set(options, "draft_policy", "always", &error), error);
  assert_ok(gen_options_set(options, "eagle", "", &error), error);
  assert_ok(gen_options_set(options, "draft_heads", "on", &error), error);
  assert_fails(gen_create(model, options, &generator, &error), GEN_ERROR_UNSUPPORTED, "no head",
               error);
  assert_null(generator);
  gen_options_free(options);
}

/* As many guesses a pass as asked, and no more. */
static void drafts_are_as_long_as_asked(void** state) {
  (void)state;
  gen_sampling* sampling = settings(40, 0);
  gen_result* want = said_by(plain, sampling);
  for (int length = 1; length < 8; length += 3) {
    char text[16];
    double at = -1, beyond = -1, drafted = 0, passes = 0;
    char key[32];
    gen_options* options = options_new();
    snprintf(text, sizeof text, "on,%d", length);
    assert_ok(gen_options_set_eagle(options, EAGLE3, &error), error);
    assert_ok(gen_options_set(options, "draft_heads", text, &error), error);
    gen_generator* generator = generator_with(model, options);
    gen_result* got = said_by(generator, sampling);
    assert_same(got, want);
    assert_ok(gen_generator_draft_stats(generator, "drafted", &drafted, &error), error);
    assert_ok(gen_generator_draft_stats(generator, "passes", &passes, &error), error);
    assert_ok(gen_generator_draft_stats(generator, "acceptance_at_1", &at, &error), error);
    snprintf(key, sizeof key, "acceptance_at_%d", length + 1);
    assert_ok(gen_generator_draft_stats(generator, key, &beyond, &error), error);
    assert_true(drafted > 0 && drafted <= passes * length);
    assert_true(at > 0);
    assert_true(beyond == 0);
    gen_result_free(got);
    gen_free(generator);
  }
  gen_result_free(want);
  gen_sampling_free(sampling);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_file_there_are_no_drafts),
      cmocka_unit_test(arguments),
      cmocka_unit_test(settings_by_name),
      cmocka_unit_test(drafts_are_as_long_as_asked),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
